"""What ifs on a cluster given as objects: who starts, who gives way, who waits, and bad files."""

import io
import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from tests.unit.state.builders import half, make_node, make_pod

from gpu_scheduler.api.allocation import annotations
from gpu_scheduler.api.names import API_VERSION, SCHEDULER_NAME
from gpu_scheduler.api.unstructured import Body
from gpu_scheduler.core.model.preemption_policy import FAIR, STRICT
from gpu_scheduler.simulate.cluster_command import ClusterRequest, simulate_objects
from gpu_scheduler.simulate.cluster_objects import Objects, SimulationError
from gpu_scheduler.simulate.cluster_report import ClusterReport
from gpu_scheduler.simulate.cluster_table import WIDTH, table
from gpu_scheduler.simulate.preemption_rules import RULES
from gpu_scheduler.state.pods.slim import INDEX

EXAMPLES = Path(__file__).parents[3] / "examples"
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def gpujob(name: str = "train", namespace: str = "team-a", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "GPUJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"image": "x", "gpu": 0.5, **spec},
    }


def project(name: str = "team-a", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "GPUProject",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"namespaces": [name], "quota": 4, **spec},
    }


def as_json(obj: object) -> dict[str, Any]:
    return dict(json.loads(msgspec.json.encode(obj)))


def node(name: str, gpus: int = 2) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", **as_json(make_node(name, gpus))}


def cluster(*bodies: Body) -> Objects:
    """Nodes a and b with two GPUs each, project team-a with a quota of 4, and these objects."""
    objects = Objects()
    for kind, body in (("Node", node("a")), ("Node", node("b")), ("GPUProject", project())):
        objects.put(kind, body)
    for body in bodies:
        objects.put(str(body["kind"]), body)
    return objects


def running(job: str = "low", pods: int = 4, **spec: Any) -> list[dict[str, Any]]:
    """A GPUJob whose pods hold a GPU each, from the first on."""
    uid, job_uid = f"uid-{job}", f"uid-job-{job}"
    owner = {"kind": "GPUJob", "name": job, "uid": uid, "controller": True}
    meta = {"namespace": "team-a", "name": job, "creationTimestamp": "2026-01-01T00:00:00Z"}
    template = {
        "metadata": {},
        "spec": {"schedulerName": SCHEDULER_NAME, "containers": [{"name": "main"}]},
    }
    found = [
        {**gpujob(job, gpu=1, parallelism=pods, **spec), "metadata": {**meta, "uid": uid}},
        {
            "kind": "Job",
            "metadata": {**meta, "uid": job_uid, "ownerReferences": [owner]},
            "spec": {"parallelism": pods, "completions": pods, "template": template},
            "status": {},
        },
    ]
    for i in range(pods):
        name, device = "ab"[i // 2], str(i % 2)
        pod = make_pod(
            f"{job}-{i}-x",
            job=job_uid,
            index=i,
            node=name,
            devices=half(device, 1000),
            phase="Running",
            cpu="0",
            memory="0",
        )
        found.append({"kind": "Pod", **as_json(pod)})
    return found


def scattered() -> list[dict[str, Any]]:
    """The same with one half of a GPU on each node."""
    job, batch, *pods = running("part", 4)
    job["spec"] |= {"gpu": 0.5, "parallelism": 2}
    batch["spec"] |= {"parallelism": 2, "completions": 2}
    for index, pod in enumerate(kept := pods[::2]):
        pod["metadata"]["annotations"] |= annotations("ab"[index], half("0"))
        pod["metadata"]["annotations"][INDEX] = str(index)
    return [job, batch, *kept]


def imagined(**allocatable: object) -> dict[str, Any]:
    """A node that does not exist, as somebody writes it down."""
    body = node("new")
    return {**body, "status": {"allocatable": {"cpu": 64, "memory": "256Gi", **allocatable}}}


def agent(*devices: object) -> dict[str, Any]:
    """The GPUNode of node a with these devices."""
    meta = {"name": "a"}
    status = {"devices": list(devices)}
    return {"apiVersion": API_VERSION, "kind": "GPUNode", "metadata": meta, "status": status}


class What:
    """Runs what-ifs on objects, with files of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def file(self, *bodies: object) -> Path:
        path = self._folder / f"{len(list(self._folder.iterdir()))}.yaml"
        text = bodies[0] if isinstance(bodies[0], str) else yaml.safe_dump_all(bodies)
        path.write_text(str(text))
        return path

    def __call__(
        self, objects: Objects, *add: object, remove: tuple[str, ...] = (), **more: Any
    ) -> ClusterReport:
        files = [self.file(*add)] if add else []
        request = ClusterRequest(add=files, remove=remove, **more)
        return simulate_objects(request, objects, "https://example", "team-a", NOW)


@pytest.fixture
def what(tmp_path: Path) -> What:
    return What(tmp_path)


def nodes(report: ClusterReport) -> list[str]:
    return [start["node"] for start in report.starts]


def test_a_job_that_is_added_gets_the_pods_that_its_job_would_make(what: What):
    report = what(cluster(), gpujob(parallelism=3, completions=9, gpu=1))
    assert [start["pod"] for start in report.starts] == [f"train-{i}-new" for i in range(3)]
    assert report.after.allocated_milli - report.before.allocated_milli == 3000
    (each,) = report.projects
    assert (each["allocatedBefore"], each["allocatedAfter"]) == ("0", "3")


def test_limits_count_as_requests_as_they_do_in_a_cluster(what: What):
    greedy = {"limits": {"cpu": "40"}}
    report = what(cluster(), gpujob(parallelism=3, gpu=0.1, resources=greedy))
    assert sorted(nodes(report)) == ["a", "b"]
    assert [wait["reason"] for wait in report.waits] == ["WaitingForResources"]


def test_pods_give_way_and_their_indexes_wait_or_start_elsewhere(what: What):
    objects = cluster(*running(priority=10))
    report = what(objects, gpujob("urgent", gpu=2, priority=90))
    assert len(report.gives_way) == 2
    assert {each["for"] for each in report.gives_way} == {"team-a/urgent"}
    assert [s["afterEvictions"] for s in report.starts] == [True]
    assert [(w["job"], w["reason"]) for w in report.waits] == [("team-a/low", "WaitingForGPU")]
    assert report.settled

    report = what(cluster(*running(priority=10)), gpujob("urgent", gpu=2, priority=90), node("c"))
    assert report.gives_way == [] and nodes(report) == ["c"]


def test_time_goes_on_until_what_is_promised_is_due(what: What):
    """Pods of a lower priority ran for long: they go after ten times the patience."""
    urgent = gpujob("urgent", gpu=2, priority=90)
    report = what(cluster(*running(priority=10)), urgent)
    assert [s["afterSeconds"] for s in report.starts] == [600]
    assert "once others gave way, 600 s later" in table(report)
    report = what(
        cluster(*running(priority=10)), urgent, preemption_policy=replace(FAIR, patience_seconds=6)
    )
    assert [s["afterSeconds"] for s in report.starts] == [60]
    report = what(cluster(*running(priority=10)), urgent, preemption_policy=STRICT)
    assert [s["afterSeconds"] for s in report.starts] == [0]
    assert "once others gave way\n" in table(report)
    report = what(cluster(*running(priority=10)), urgent, preemption_policy=RULES["never"])
    assert (report.starts, report.gives_way, report.settled) == ([], [], True)


def test_parts_of_gpus_would_move_where_the_operator_moves_them(what: What):
    pair = gpujob("pair", gpu=2)
    report = what(cluster(*scattered()), pair)
    assert report.gives_way == [] and [w["job"] for w in report.waits] == ["team-a/pair"]

    report = what(cluster(*scattered()), pair, consolidation=True)
    (move,) = report.gives_way
    assert (move["job"], move["reason"], move["for"]) == (
        "team-a/part",
        "consolidate",
        "team-a/pair",
    )
    assert {start["job"]: start["node"] for start in report.starts} == {
        "team-a/pair": move["node"],
        "team-a/part": "b" if move["node"] == "a" else "a",
    }
    assert report.waits == [] and report.settled
    shown = table(report)
    assert "Would move: 1 pod" in shown and "Would give way" not in shown


def test_what_moved_within_the_hour_would_stay(what: What):
    objects = cluster(*scattered())
    (batch,) = objects.of("Job")
    batch["metadata"]["annotations"] = {
        f"gpu-scheduler.io/moved-{i}": "2026-01-01T23:30:00Z uid-of-the-pod-before" for i in (0, 1)
    }
    report = what(objects, gpujob("pair", gpu=2), consolidation=True)
    assert report.gives_way == [] and [w["job"] for w in report.waits] == ["team-a/pair"]


def test_pods_of_a_node_that_is_lost_start_elsewhere(what: What):
    report = what(cluster(*running(pods=3)), remove=("node/b",))
    assert [wait["job"] for wait in report.waits] == ["team-a/low"]
    assert (report.before.gpus, report.after.gpus) == (4, 2)
    report = what(cluster(*running(pods=2)), remove=("node/a",))
    assert [(s["pod"], s["node"]) for s in report.starts] == [
        ("low-0-again", "b"),
        ("low-1-again", "b"),
    ]


def test_a_node_may_give_its_cpus_as_a_number(what: What):
    report = what(cluster(), imagined(), gpujob(gpu=1, parallelism=6, completions=6))
    assert report.after.gpus == 6


def test_a_copy_of_a_job_that_has_ended_is_a_new_job(what: What):
    copied = gpujob("copy")
    copied["metadata"] |= {"resourceVersion": "x", "generation": 7, "uid": "uid-of-the-other"}
    report = what(cluster(), {**copied, "status": {"phase": "Succeeded"}})
    assert [start["pod"] for start in report.starts] == ["copy-0-new"]


def test_devices_known_by_their_numbers_have_the_model_of_their_node(what: What):
    other = node("c")
    other["metadata"]["labels"]["nvidia.com/gpu.product"] = "NVIDIA-A30"
    report = what(cluster(), other, gpujob(gpuModels=["A100"]))
    (start,) = report.starts
    assert [(start["node"], d["device"], d["model"]) for d in start["devices"]] == [
        ("a", "0", "NVIDIA-A100-PCIE-40GB")
    ]


def test_a_job_that_is_gone_leaves_its_gpus(what: What):
    report = what(cluster(*running()), gpujob(gpu=2), remove=("gpujob/low",))
    assert len(report.starts) == 1 and report.waits == []
    assert report.changes == ["without GPUJob team-a/low", "with GPUJob team-a/train (0.yaml)"]


def test_every_example_can_be_tried(what: What):
    files = sorted(EXAMPLES.rglob("*.yaml"))
    jobs = [path for path in files if "kind: GPUJob" in path.read_text()]
    assert len(jobs) > 8
    projects = [EXAMPLES / "project.yaml", EXAMPLES / "demo" / "projects.yaml"]
    for path in files:
        request = ClusterRequest(add=[*projects, path])
        report = simulate_objects(request, cluster(), "https://example", "default", NOW)
        assert bool(report.starts or report.waits) == (path in jobs), path
        assert "Invalid" not in {wait["reason"] for wait in report.waits}, path


def test_a_shape_may_be_of_a_class_that_comes_later_and_else_is_named(what: What):
    job = gpujob(shape="pair")
    del job["spec"]["gpu"]
    pair = {
        "apiVersion": API_VERSION,
        "kind": "GPUClass",
        "metadata": {"name": "any"},
        "spec": {"shapes": {"pair": 2}},
    }
    assert [len(start["devices"]) for start in what(cluster(), job, pair).starts] == [2]
    waits = what(cluster(), job).waits
    assert [wait["reason"] for wait in waits] == ["Invalid"]
    assert "no GPUClass has a shape pair" in waits[0]["message"]


def test_a_quota_is_changed_by_a_project_of_the_same_name(what: What):
    report = what(cluster(), project(quota=1, limit=1), gpujob(gpu=1, parallelism=2))
    assert [wait["reason"] for wait in report.waits] == ["WaitingForQuota"]
    assert len(report.starts) == 1


def test_the_roles_of_a_gang_start_together_or_not_at_all(what: What):
    roles = [
        {"name": "master", "replicas": 1, "gpu": 1},
        {"name": "worker", "replicas": 3, "gpu": 1},
    ]
    gang = gpujob("gang", roles=roles)
    del gang["spec"]["gpu"]
    report = what(cluster(), gang)
    assert sorted(start["pod"] for start in report.starts) == [
        "gang-master-0-new",
        *[f"gang-worker-{i}-new" for i in range(3)],
    ]
    assert len(report.starts) == 4
    report = what(cluster(*running("other", 1)), gang)
    assert report.starts == [] and [wait["job"] for wait in report.waits] == ["team-a/gang"]


def test_a_sweep_starts_as_many_trials_as_it_may_at_once(what: What):
    parameters = {"lr": {"values": [0.1, 0.2, 0.3]}}
    objective = {"metric": "loss", "goal": "minimize"}
    sweep = {"algorithm": "grid", "objective": objective, "parameters": parameters}
    report = what(cluster(), gpujob("hpo", gpu=1, parallelism=2, sweep=sweep))
    assert len(report.starts) == 2


def test_who_cannot_start_as_things_are_is_named_with_the_reason(what: What):
    report = what(
        cluster(),
        gpujob("orphan", namespace="nowhere"),
        gpujob("later", suspend=True),
        gpujob("huge", gpu=7),
    )
    found = {wait["job"]: wait for wait in report.waits}
    assert found["nowhere/orphan"]["reason"] == "Invalid"
    assert "belongs to no project." in found["nowhere/orphan"]["message"]
    assert found["team-a/later"]["reason"] == "Suspended"
    assert found["team-a/huge"]["reason"] == "Unsatisfiable"
    assert report.waits[0]["job"] == "team-a/huge"  # what a plan can say comes first


def test_what_the_operator_refused_stays_refused(what: What):
    refused = gpujob("bad")
    refused["metadata"]["uid"] = "uid-bad"
    refused["status"] = {"reason": "Invalid", "message": "spec.image: no such thing"}
    (wait,) = what(cluster(refused)).waits
    assert (wait["reason"], wait["message"]) == ("Invalid", "spec.image: no such thing")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("a: [", "0.yaml: line 1: "),
        ("", "0.yaml: there is no object in it"),
        ("- 1", "not an object with kind and metadata"),
        ({"kind": "Pod", "apiVersion": "v1"}, "kind: Pod; one of GPUJob, GPUProject"),
        ({**gpujob(), "apiVersion": "v1"}, f"apiVersion: v1; of a GPUJob it is {API_VERSION}"),
        ({**gpujob(), "metadata": {}}, "metadata.name: is missing"),
        (gpujob(gpu=1.5), "GPUJob team-a/train: spec.gpu: "),
        (gpujob(gpus=1), "GPUJob team-a/train: spec.gpus: there is no such field"),
        (project(quota=-1), "GPUProject team-a: spec.quota: "),
        ({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}, "status.allocatable: "),
        ({"kind": ["GPUJob"], "apiVersion": API_VERSION}, "kind: ['GPUJob']; one of GPUJob"),
        (
            {**gpujob(), "metadata": {"name": "x", "namespace": ["a"]}},
            "metadata.namespace: is not a text",
        ),
        (
            imagined(cpu="many"),
            "0.yaml: Node new: status.allocatable.cpu: 'many' is not a quantity",
        ),
        (imagined(cpu=["1"]), "0.yaml: Node new: Expected `str`, got `array`"),
        (agent({"uuid": "GPU-1"}), "GPUNode a: status.devices[0].index: Field required"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_field(what: What, body: Any, told: str):
    with pytest.raises(SimulationError) as error:
        what(cluster(), body)
    assert told in str(error.value)


def test_of_several_documents_the_wrong_one_is_named(what: What):
    with pytest.raises(SimulationError, match=r"0\.yaml: document 2: GPUJob team-a/b: spec"):
        what(cluster(), gpujob("a"), gpujob("b", image=None))


def test_a_job_that_exists_is_not_added_again(what: What):
    with pytest.raises(SimulationError, match="--remove gpujob/team-a/low"):
        what(cluster(*running()), gpujob("low"))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("node", "KIND/NAME"),
        ("pod/x", "KIND/NAME with one of the kinds GPUJob"),
        ("node/c", "there is no Node c; there are a, b"),
        ("gj/team-b/x", "there is no GPUJob team-b/x"),
    ],
)
def test_what_is_not_there_cannot_be_removed(what: What, given: str, told: str):
    with pytest.raises(SimulationError) as error:
        what(cluster(), remove=(given,))
    assert told in str(error.value)


def test_the_table_has_a_hundred_columns_whatever_the_names(what: What):
    long = "a-name-that-is-quite-long-" * 2 + "x"
    objects = cluster(*running(priority=10), project("team-b", quota=1))
    report = what(objects, gpujob(long, gpu=2, priority=90), gpujob("b", "team-b", gpu=7))
    text = table(report)
    assert max(len(line) for line in text.splitlines()) <= WIDTH
    for words in ("Would start: 1 pod", "Would give way: 2 pods", "Would wait: 2 jobs", "team-b"):
        assert words in text


def test_long_tables_are_cut_and_say_so(what: What):
    jobs = [gpujob(f"j{i:02}", gpu=2) for i in range(60)]
    text = table(what(cluster(), *jobs))
    assert "Would wait: 58 jobs" in text
    assert "and 18 more (-o json has them all)" in text


def test_a_job_that_is_asked_about_comes_first(what: What):
    there = []
    for i in range(60):
        job = gpujob(f"j{i:02}", gpu=0.05)
        job["metadata"] |= {"uid": f"uid-{i}", "creationTimestamp": "2026-01-01T00:00:00Z"}
        there.append(job)
    report = what(cluster(*there), gpujob("mine", gpu=0.5))
    assert report.starts[-1]["job"] == "team-a/mine"
    assert table(report).splitlines()[5].split()[0] == "team-a/mine"


def test_nothing_to_do_is_said(what: What):
    assert "Nothing waits." in table(what(cluster()))


def test_what_is_added_may_come_from_standard_input(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(yaml.safe_dump(gpujob("piped"))))
    request = ClusterRequest(add=[Path("-")])
    found = simulate_objects(request, cluster(), "https://x", "team-a", NOW).to_json()
    assert [start["job"] for start in found["starts"]] == ["team-a/piped"]


def test_what_cannot_be_read_as_a_pod_is_never_planned(what: What):
    main = {"name": "main", "image": "x"}
    for spec, field in (
        ({"nodeSelector": {"fast": True}}, "spec.template.spec.nodeSelector"),
        ({"volumes": "none"}, "spec.template.spec.volumes"),
        ({"tolerations": {"key": "a"}}, "spec.template.spec.tolerations"),
    ):
        job = gpujob(template={"spec": {"containers": [main], **spec}})
        del job["spec"]["image"]
        report = what(cluster(), job)
        (wait,) = report.waits
        assert report.starts == [] and wait["reason"] == "Invalid"
        assert wait["message"].startswith(field), wait
