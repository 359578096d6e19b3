"""Whatever is in a custom resource, a record comes out."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import uvloop
from hypothesis import example, given
from hypothesis import strategies as st
from tests.unit.runtime.fake_client import FakeClient, Sent
from tests.unit.state.builders import gpujob_body, make_job, make_node, make_pod

from gpu_scheduler.api.validate import read
from gpu_scheduler.core.model.request import JobKey, ProjectName
from gpu_scheduler.kube import errors
from gpu_scheduler.runtime.informers.custom_resources import (
    CustomResources,
    gpujob_record,
    project_record,
)
from gpu_scheduler.runtime.informers.our_lists import KINDS, OurLists
from gpu_scheduler.runtime.status.job_status import gpujob_status
from gpu_scheduler.state.cluster_state import ClusterState

GROUP = "/apis/gpu-scheduler.io/v1alpha1"
KEY = JobKey("team-a/job")

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=10,
)


def specs_of(*names: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(names), json_values)


gpujob_specs = specs_of(
    *("image", "template", "gpu", "gpuMemory", "gpuDevices", "containers", "gpuModels"),
    *("minComputeCapability", "parallelism", "completions", "retries", "priority", "suspend"),
    *("env", "resources", "timeLimitSeconds", "ttlSecondsAfterFinished", "type"),
)
project_specs = specs_of("namespaces", "quota", "limit", "weight", "quotaByModel")


def project_body(
    name: str = "team-a", *, uid: str = "project-uid", version: int = 1, **spec: Any
) -> dict[str, Any]:
    meta = {
        "name": name,
        "uid": uid,
        "resourceVersion": str(version),
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {"metadata": meta, "spec": {"namespaces": [name], "quota": 2, **spec}}


def gpuclass_body() -> dict[str, Any]:
    meta = {"name": "a100", "uid": "class-uid", "resourceVersion": "1"}
    return {"metadata": meta, "spec": {"match": "A100"}}


def gpunode_body(
    name: str = "a", version: int = 1, count: int = 1, uid: str = ""
) -> dict[str, Any]:
    devices = [
        {"uuid": f"GPU-{i}", "index": i, "model": "A100", "usableMiB": 40000, "healthy": True}
        for i in range(count)
    ]
    meta = {"name": name, "uid": uid or f"gpunode-{name}", "resourceVersion": str(version)}
    return {"metadata": meta, "status": {"devices": devices}}


# --- records ---


@pytest.mark.long
@given(gpujob_specs | json_values)
@example({"image": "x", "gpu": "1e999999"})
@example({"image": "x", "gpu": 1e30})
@example({"image": "x", "gpu": 0.5, "gpuModels": [""]})
def test_a_gpujob_is_either_read_or_its_problem_is_named(spec: Any) -> None:
    body = gpujob_body()
    body["spec"] = spec
    record = gpujob_record(body)
    assert (record.spec is None) == bool(record.problem)
    if record.spec is not None:
        assert record.requests
    status = gpujob_status(record, [], [], project=None, now="2026-01-01T00:00:00Z")
    assert status.reason == ("Invalid" if record.problem else status.reason)


@given(project_specs | json_values)
@example({"namespaces": ["x"], "quota": 0.1234})
@example({"namespaces": ["x"], "quota": 1e30})
@example({"namespaces": ["x"], "quota": 1, "quotaByModel": {"A100": 0.12345}})
@example({"namespaces": ["x"], "quota": 1, "limit": 1e300})
def test_a_project_is_either_read_or_its_problem_is_named(spec: Any) -> None:
    body = project_body()
    body["spec"] = spec
    record = project_record(body)
    assert record.project.name == "team-a"
    if not record.problem:
        assert record.namespaces
        assert record.project.quota_milli >= 0


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"quota": 0.1234}, "spec.quota"),
        ({"quota": -1}, "spec.quota"),
        ({"quota": 2, "limit": 1}, "spec.limit"),
        ({"quotaByModel": {"A100": 0.1234}}, "spec.quotaByModel.A100"),
        ({"quota": "much"}, "spec.quota"),
        ({"namespaces": ["UPPER"]}, "spec.namespaces[0]"),
        ({"namespaces": []}, "spec.namespaces"),
    ],
)
def test_a_projects_problem_names_the_field(spec: dict[str, Any], field: str) -> None:
    assert project_record(project_body(**spec)).problem.startswith(f"{field}: ")


def test_a_project_that_cannot_be_used_keeps_its_namespaces() -> None:
    """Its jobs are told what is wrong, and the namespace does not go to somebody else."""
    for spec in ({"quota": 0.1234}, {"quota": "much"}):
        record = project_record(project_body("team-a", **spec))
        assert (record.namespaces, record.project.quota_milli) == (("team-a",), 0)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"gpu": 1.5}, "spec.gpu"),
        ({"gpu": 0.5, "gpuMemory": "1Gi"}, "spec"),
        ({"gpu": "much"}, "spec.gpu"),
        ({"containers": [{"name": "x"}]}, "spec.containers[0]"),
        ({"containers": [{"name": "x", "gpu": []}]}, "spec.containers[0].gpu"),
    ],
)
def test_a_gpujobs_problem_names_the_field(spec: dict[str, Any], field: str) -> None:
    problem = gpujob_record(gpujob_body(**spec)).problem
    assert problem.startswith(f"{field}: "), problem


def test_a_project_is_read_exactly() -> None:
    spec = {"quota": 2.5, "limit": 4, "weight": 3, "quotaByModel": {"A": 0.1}}
    project = project_record(project_body(**spec, minRuntimeSeconds=9))
    read = project.project
    assert (read.quota_milli, read.limit_milli, read.weight) == (2500, 4000, 3)
    assert read.min_runtime_seconds == 9
    assert read.quota_by_model == {"A": 100}


def test_a_gpujob_that_breaks_our_code_is_set_aside_with_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def breaks(name: str, *_: object) -> list[str]:
        raise RecursionError("too deep") if name == "odd" else AssertionError

    told = Intake()
    told.custom_resources.gpujob(gpujob_body())
    monkeypatch.setattr("gpu_scheduler.runtime.informers.custom_resources.name_problems", breaks)
    told.custom_resources.gpujob(gpujob_body(name="odd", uid="odd"))
    odd = told.state.gpujobs[JobKey("team-a/odd")]
    assert odd.problem == "spec: the operator cannot work with it (RecursionError: too deep)"
    assert odd.spec is None and told.state.gpujobs[KEY].spec is not None
    status = gpujob_status(odd, [], [], project=None, now="2026-01-01T00:00:00Z")
    assert status.reason == "Invalid"


@pytest.mark.parametrize("kind", ["gpujob", "project", "node", "gpuclass"])
def test_an_object_that_breaks_our_code_keeps_no_other_from_being_taken_in(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    told = Intake()
    state, nodes = told.state, told.state.nodes
    target: object
    target, method = {
        "gpujob": (state, "gpujob_changed"),
        "project": (state, "project_changed"),
        "node": (nodes, "reported"),
        "gpuclass": (state, "class_changed"),
    }[kind]
    take = getattr(target, method)
    broken: list[object] = []

    def breaks(*given: object) -> object:
        if not broken:  # the first of two
            broken.append(given)
            raise KeyError("odd")
        return take(*given)

    monkeypatch.setattr(target, method, breaks)
    second_class = gpuclass_body()
    second_class["metadata"] |= {"name": "b100", "uid": "b"}
    client = lists(
        [project_body("other", uid="o"), project_body()],
        [gpunode_body("b"), gpunode_body()],
        [gpujob_body(name="odd", uid="odd"), gpujob_body()],
        [gpuclass_body(), second_class],
    )
    uvloop.run(OurLists(client, told.custom_resources).all())  # type: ignore[arg-type]
    assert broken
    assert KEY in told.state.gpujobs and ProjectName("team-a") in told.state.projects.records
    assert "a" in told.state.nodes.agents.devices and "b100" in told.state.classes.records


# --- events ---


class Intake:
    def __init__(self) -> None:
        self.state = ClusterState()
        self.changed: list[JobKey] = []
        self.custom_resources = CustomResources(self.state, changed=self.changed.append)


def test_a_gpujob_is_taken_in_and_looked_at() -> None:
    told = Intake()
    told.custom_resources.gpujob(gpujob_body())
    assert told.changed == [KEY]
    assert told.state.changes.some.is_set()
    assert told.state.gpujobs[KEY].uid == "gpujob-uid"


def test_old_news_are_ignored() -> None:
    told = Intake()
    told.custom_resources.gpujob(gpujob_body(version=5, generation=2, gpu=0.25))
    told.custom_resources.gpujob(gpujob_body(version=4, generation=1))
    assert told.state.gpujobs[KEY].generation == 2
    told.custom_resources.project(project_body(version=5, quota=3))
    told.custom_resources.project(project_body(version=4, quota=1))
    assert told.state.projects.records[ProjectName("team-a")].project.quota_milli == 3000
    told.state.nodes.changed(make_node("a"))
    told.custom_resources.node(gpunode_body(version=5, count=2))
    told.custom_resources.node(gpunode_body(version=4, count=1))
    assert told.state.snapshot().dev_id == ["GPU-0", "GPU-1"]


@pytest.mark.parametrize("kind", ["problem", "unfollowed"])
def test_a_status_update_does_not_forget_what_was_found_wrong_later(kind: str) -> None:
    told = Intake()
    told.custom_resources.gpujob(gpujob_body(version=1))
    setattr(told.state.gpujobs[KEY], kind, "no project")
    told.custom_resources.gpujob(gpujob_body(version=2, status={"phase": "Pending"}))
    assert getattr(told.state.gpujobs[KEY], kind) == "no project"
    told.custom_resources.gpujob(gpujob_body(version=3, generation=2))
    assert told.state.gpujobs[KEY].complaint == ""


def test_our_own_status_is_compared_and_nothing_else_happens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told, reads = Intake(), 0

    def counting(*args: Any) -> Any:
        nonlocal reads
        reads += 1
        return read(*args)

    monkeypatch.setattr("gpu_scheduler.runtime.informers.specs.read", counting)
    told.custom_resources.gpujob(gpujob_body(version=1))
    assert (reads, len(told.changed), told.state.changes.some.is_set()) == (1, 1, True)
    told.state.changes.take_touched()
    told.state.changes.some.clear()
    known = told.state.gpujobs[KEY]
    for version in range(2, 1000):
        said = {"phase": "Pending", "message": f"{version}"}
        known.status = known.shown = said  # as the writer notes it
        told.custom_resources.gpujob(gpujob_body(version=version, status=dict(known.status)))
    assert (reads, len(told.changed), told.state.changes.some.is_set()) == (1, 1, False)
    assert told.state.gpujobs[KEY] is known and not told.state.changes.touched
    # A status that somebody else wrote is put right, still without another look at the spec.
    told.custom_resources.gpujob(gpujob_body(version=1000, status={"phase": "Running"}))
    assert (reads, len(told.changed), told.state.changes.touched) == (1, 2, {KEY})
    told.custom_resources.gpujob(gpujob_body(version=1001, generation=2, gpu=0.25))
    assert (reads, len(told.changed)) == (2, 3)


def test_that_a_gpujob_is_being_deleted_is_news_of_the_same_generation() -> None:
    told = Intake()
    told.custom_resources.gpujob(gpujob_body(version=1))
    version = told.state.changes.version
    body = gpujob_body(version=2)
    body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    told.custom_resources.gpujob(body)
    assert told.state.gpujobs[KEY].deleting and told.state.changes.version > version
    assert told.changed == [KEY, KEY]


def test_a_new_gpujob_of_the_same_name_is_judged_anew() -> None:
    told = Intake()
    told.custom_resources.gpujob(gpujob_body(version=1))
    told.state.gpujobs[KEY].problem = "no project"
    told.custom_resources.gpujob(gpujob_body(version=2, uid="second"))
    assert told.state.gpujobs[KEY].problem == ""


def test_the_deletion_of_an_earlier_gpujob_does_not_delete_its_successor() -> None:
    told = Intake()
    told.custom_resources.gpujob(gpujob_body(version=2, uid="second"))
    told.custom_resources.gpujob_gone("team-a", "job", "first")
    assert told.state.gpujobs[KEY].uid == "second"
    told.custom_resources.gpujob_gone("team-a", "job", "second")
    assert told.state.gpujobs == {}


def test_old_news_of_an_object_do_not_displace_its_successor() -> None:
    """Objects of one name are told of side by side: what is old shows by its version."""
    told = Intake()
    told.state.nodes.changed(make_node("a", gpus=0))
    told.custom_resources.gpujob(gpujob_body(version=9, uid="second", gpu=0.25))
    told.custom_resources.project(project_body(version=9, uid="second", quota=3))
    told.custom_resources.node(gpunode_body(version=9, uid="second", count=2))
    told.custom_resources.gpujob(gpujob_body(version=8))
    told.custom_resources.project(project_body(version=8, quota=1))
    told.custom_resources.node(gpunode_body(version=8))
    told.custom_resources.node_gone("a", "gpunode-a")
    assert told.state.gpujobs[KEY].uid == "second"
    assert told.state.projects.records[ProjectName("team-a")].uid == "second"
    assert told.state.snapshot().dev_id == ["GPU-0", "GPU-1"]


async def test_what_is_gone_stays_gone_whatever_was_listed_since() -> None:
    """The watch may be minutes behind a list, and tell of changes before it tells of the end."""
    told = Intake()
    bodies: list[tuple[Callable[[Any], None], Any]] = [
        (told.custom_resources.project, project_body()),
        (told.custom_resources.node, gpunode_body()),
        (told.custom_resources.gpuclass, gpuclass_body()),
        (told.custom_resources.gpujob, gpujob_body()),
    ]
    for take, body in bodies:
        take(body)
    for _ in range(2):
        await OurLists(lists(classes=[]), told.custom_resources).all()  # type: ignore[arg-type]
    for take, body in bodies:
        body["metadata"]["resourceVersion"] = "7"
        take(body)
    assert told.state.gpujobs == {} and told.state.projects.records == {}
    assert told.state.nodes.agents.devices == {} and told.state.classes.records == {}


def test_a_projects_news_concern_every_job_and_every_project() -> None:
    told = Intake()
    told.custom_resources.gpujob(gpujob_body())
    told.custom_resources.project(project_body("other", uid="o"))
    told.changed.clear()
    told.state.projects.touched.clear()
    told.custom_resources.project(project_body())
    assert told.changed == [KEY]
    assert told.state.projects.touched == {"team-a", "other"}
    told.changed.clear()
    told.custom_resources.project(project_body(version=2))  # its status changed, nothing else
    assert told.changed == []
    told.custom_resources.project_gone("team-a", "another-uid")
    assert told.changed == []
    told.custom_resources.project_gone("team-a", "project-uid")
    assert told.changed == [KEY]
    assert set(told.state.projects.records) == {"other"}


# --- resync ---


def lists(
    projects: list[Any] | None = None,
    nodes: list[Any] | None = None,
    jobs: list[Any] | None = None,
    classes: list[Any] | None = None,
) -> FakeClient:
    items = {"gpuprojects": projects or [], "gpunodes": nodes or [], "gpujobs": jobs or []}
    items["gpuclasses"] = classes or []

    def reply(sent: Sent) -> Any:
        plural = sent.path.rsplit("/", 1)[1]
        if plural == "gpuclasses" and classes is None:  # its CRD is not installed
            return errors.NotFound()
        return {"items": copy.deepcopy(items[plural])}

    return FakeClient(reply)


async def test_a_resync_takes_in_what_is_new_and_forgets_what_is_gone() -> None:
    told = Intake()
    for body in (project_body(), project_body("stays", uid="stays")):
        told.custom_resources.project(body)
    told.custom_resources.gpujob(gpujob_body())
    told.custom_resources.gpujob(gpujob_body("stays", uid="stays"))
    told.custom_resources.node(gpunode_body("a"))
    client = lists(
        [project_body("stays", uid="stays"), project_body("new", uid="n")],
        [gpunode_body("b")],
        [gpujob_body("stays", uid="stays"), gpujob_body("new", uid="new")],
    )
    await OurLists(client, told.custom_resources).all()  # type: ignore[arg-type]
    assert set(told.state.projects.records) == {"stays", "new"}
    assert set(told.state.gpujobs) == {"team-a/stays", "team-a/new"}
    assert set(told.state.nodes.agents.devices) == {"b"}


async def test_a_long_list_is_read_in_pages() -> None:
    told = Intake()
    jobs = [gpujob_body(f"job-{number}", uid=f"uid-{number}") for number in range(1201)]
    told.custom_resources.gpujob(jobs[-1])

    def pages(sent: Sent) -> Any:
        if not sent.path.endswith("gpujobs"):
            return {"metadata": {}, "items": []}
        start, size = int(sent.params.get("continue", 0)), sent.params["limit"]
        assert size <= 500
        more = {"continue": str(start + size)} if start + size < len(jobs) else {}
        return {"metadata": more, "items": copy.deepcopy(jobs[start : start + size])}

    await OurLists(FakeClient(pages), told.custom_resources).all()  # type: ignore[arg-type]
    assert set(told.state.gpujobs) == {f"team-a/job-{number}" for number in range(1201)}


def kinds(client: FakeClient) -> list[str]:
    """What was listed, in order."""
    return [sent.path.rsplit("/", 1)[1] for sent in client.sent]


async def test_the_first_lists_say_once_as_of_when_each_kind_is_known() -> None:
    told = Intake()
    client = FakeClient(lambda sent: {"metadata": {"resourceVersion": "77"}, "items": None})
    ours = OurLists(client, told.custom_resources)  # type: ignore[arg-type]
    await ours.all()
    await ours.all()
    assert len(client.sent) == 8
    for kind in KINDS:
        assert await ours.version(f"{GROUP}/{kind}") == "77"
    assert len(client.sent) == 8


async def test_who_has_lost_its_place_gets_a_list_of_its_own_which_forgets_what_is_gone() -> None:
    told = Intake()
    full = lists([project_body()], [gpunode_body()], [gpujob_body()], [gpuclass_body()])
    ours = OurLists(full, told.custom_resources)  # type: ignore[arg-type]
    await ours.all()
    for kind in KINDS:
        await ours.version(f"{GROUP}/{kind}")
    empty = lists(classes=[])
    full.reply, full.sent[:] = empty.reply, []
    await ours.version(f"{GROUP}/gpuprojects")
    assert kinds(full) == ["gpuprojects"]
    assert told.state.projects.records == {}
    assert told.state.gpujobs and told.state.nodes.agents.devices and told.state.classes.records
    told.changed.clear()
    await ours.version(f"{GROUP}/gpujobs")
    assert told.state.gpujobs == {}


async def test_of_a_kind_that_cannot_be_listed_nothing_is_forgotten() -> None:
    told = Intake()
    client = lists([project_body()], [gpunode_body()], [gpujob_body()], [gpuclass_body()])
    ours = OurLists(client, told.custom_resources)  # type: ignore[arg-type]
    await ours.all()
    client.reply = lambda sent: errors.NotFound(404, "", "404 page not found")
    for kind in KINDS:
        with pytest.raises(errors.NotFound):
            await ours.version(f"{GROUP}/{kind}")
    assert told.state.gpujobs and told.state.projects.records
    assert told.state.nodes.agents.devices and told.state.classes.records


async def test_a_first_list_that_cannot_be_had_is_lost_and_no_later_one() -> None:
    """Then a watch is open, and says what there is; one that is refused says so itself."""
    client = FakeClient(lambda sent: errors.Forbidden(403, "Forbidden", "no"))
    ours = OurLists(client, Intake().custom_resources)  # type: ignore[arg-type]
    with pytest.raises(errors.Forbidden):
        await ours.all()
    path = f"{GROUP}/gpuclasses"
    assert f"watch of {path}: lost" in client.watches.missing()
    client.reply = lists(classes=[]).reply
    await ours.all()
    client.watches.followed(path)
    client.reply = lambda sent: errors.Forbidden(403, "Forbidden", "no")
    with pytest.raises(errors.Forbidden):
        await ours.all()
    assert client.watches.missing() == ""


async def test_a_kind_that_need_not_be_installed_is_passed_over_and_forgets_nothing() -> None:
    told = Intake()
    told.custom_resources.gpuclass(gpuclass_body())
    ours = OurLists(lists(), told.custom_resources)  # type: ignore[arg-type]
    await ours.all()
    assert told.state.classes.records
    with pytest.raises(errors.NotFound):
        await ours.version(f"{GROUP}/gpuclasses")


async def test_a_list_that_cannot_be_read_forgets_nothing() -> None:
    told = Intake()
    told.custom_resources.project(project_body())
    told.custom_resources.gpujob(gpujob_body())
    client = FakeClient(
        lambda sent: errors.Unavailable() if sent.path.endswith("gpujobs") else {"items": []}
    )
    with pytest.raises(errors.Unavailable):
        await OurLists(client, told.custom_resources).all()  # type: ignore[arg-type]
    assert set(told.state.gpujobs) == {KEY}
    assert set(told.state.projects.records) == {"team-a"}


async def test_a_successor_of_the_same_name_survives_a_resync() -> None:
    told = Intake()
    told.custom_resources.gpujob(gpujob_body(uid="first"))
    client = lists(jobs=[gpujob_body(uid="second", version=2)])
    await OurLists(client, told.custom_resources).all()  # type: ignore[arg-type]
    assert told.state.gpujobs[KEY].uid == "second"


async def test_what_is_deleted_while_the_lists_are_read_stays_gone() -> None:
    told = Intake()
    told.custom_resources.project(project_body())
    told.custom_resources.node(gpunode_body())
    told.custom_resources.gpuclass(gpuclass_body())
    told.custom_resources.gpujob(gpujob_body())
    everything = lists([project_body()], [gpunode_body()], [gpujob_body()], [gpuclass_body()])

    def deleted_after_it_was_listed(sent: Sent) -> Any:
        if sent.path.endswith("gpujobs"):  # the last list
            told.custom_resources.gpujob_gone("team-a", "job", "gpujob-uid")
            told.custom_resources.project_gone("team-a", "project-uid")
            told.custom_resources.node_gone("a", "gpunode-a")
            told.custom_resources.gpuclass_gone("a100", "class-uid")
        return everything.reply(sent)

    client = FakeClient(deleted_after_it_was_listed)
    await OurLists(client, told.custom_resources).all()  # type: ignore[arg-type]
    assert told.state.gpujobs == {} and told.state.projects.records == {}
    assert told.state.nodes.agents.devices == {} and told.state.classes.records == {}


def test_the_deletion_of_an_earlier_gpunode_leaves_its_successors_devices() -> None:
    told = Intake()
    told.state.nodes.changed(make_node("a", gpus=0))
    told.custom_resources.node(gpunode_body(uid="second"))
    told.custom_resources.node_gone("a", "first")
    assert told.state.snapshot().dev_id == ["GPU-0"]
    told.custom_resources.node_gone("a", "second")
    assert told.state.snapshot().dev_id == []


def test_whoever_tells_the_agents_hears_of_gpunodes_and_of_projects() -> None:
    heard: list[str] = []
    custom_resources = CustomResources(
        ClusterState(), changed=lambda key: None, node_changed=heard.append
    )
    assert custom_resources.node_version("a") is None
    custom_resources.node(gpunode_body(version=5, uid="u"))
    assert (heard, custom_resources.node_version("a")) == (["a"], ("u", "5"))
    custom_resources.node(gpunode_body(version=4, uid="u"))
    assert len(heard) == 1
    custom_resources.node_gone("a", "u")
    assert (heard, custom_resources.node_version("a")) == (["a", "a"], None)
    custom_resources.project(project_body())
    assert heard[2:] == [""]


def test_a_gpujob_may_come_after_its_job_and_pod() -> None:
    told = Intake()
    told.state.pod_changed(make_pod())
    told.state.job_changed(make_job())
    told.custom_resources.project(project_body())
    told.custom_resources.gpujob(gpujob_body())
    assert [job.key for job in told.state.waiting_jobs()] == [KEY]


def test_a_gpunode_without_a_report_yet_leaves_the_nodes_labels_in_force() -> None:
    state = ClusterState()
    state.nodes.changed(make_node("a", gpus=2))
    custom_resources = CustomResources(state, changed=lambda key: None)
    body = gpunode_body(count=1)
    custom_resources.node({"metadata": body["metadata"]})
    assert state.snapshot().dev_id == ["0", "1"]
    custom_resources.node(body)
    assert state.snapshot().dev_id == ["GPU-0"]
    custom_resources.node({**body, "status": {"devices": []}})  # it has none: that is a report
    assert state.snapshot().dev_id == []


@pytest.mark.parametrize(
    "odd",
    [{"conditions": 1}, {"conditions": [7]}, {"pods": {"failed": "x"}}, {"phase": "Flying"}],
    ids=str,
)
def test_what_a_status_could_not_say_was_never_said(odd: dict[str, Any]) -> None:
    """Else nothing could be written about the job ever again."""
    body = gpujob_body() | {"status": {"message": "kept", **odd}}
    assert gpujob_record(body).status == {"message": "kept"}
