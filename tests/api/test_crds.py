"""The CRDs on a real API server: what is right passes, what is wrong is refused by name.

The specs are those of ``tests/unit/api/cases.py``, which Python judges in the unit tests. All
creates are dry runs, so nothing has to be cleaned up but what the tests of changes store.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.api.caller import Answer, Caller
from tests.api.conftest import administrator
from tests.api.tenant import until
from tests.unit.api.cases import (
    RIGHT_JOBS,
    RIGHT_PROJECTS,
    WRONG_FOR_SCHEMA,
    WRONG_JOBS,
    WRONG_PROJECTS,
    WRONG_PROJECTS_FOR_SCHEMA,
    Spec,
    Wrong,
    job,
    long_job,
    pod,
    project,
    saving,
)

from cluster import Running
from gpu_scheduler.api.names import API_VERSION
from gpu_scheduler.api.rules import IMMUTABLE_FIELDS

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))
CUSTOM = f"/apis/{API_VERSION}"
DRY = "?dryRun=All&fieldValidation=Strict"


@pytest.fixture(scope="module")
def admin(control_plane: Running) -> Caller:
    return administrator(control_plane)


def gpujob(spec: Spec, name: str = "train") -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "GPUJob", "metadata": {"name": name}, "spec": spec}


def try_job(admin: Caller, spec: Spec) -> Answer:
    return admin.create(f"{CUSTOM}/namespaces/default/gpujobs{DRY}", gpujob(spec))


def try_project(admin: Caller, spec: Spec) -> Answer:
    body = {"apiVersion": API_VERSION, "kind": "GPUProject", "metadata": {"name": "p"}}
    return admin.create(f"{CUSTOM}/gpuprojects{DRY}", body | {"spec": spec})


def refusals(answer: Answer) -> dict[str, str]:
    """Field and sentence of each thing that the API server refuses."""
    assert not answer.ok, "was not refused"
    causes = answer.body.get("details", {}).get("causes", ())
    return {cause.get("field", ""): cause["message"] for cause in causes}


def assert_refused(answer: Answer, wrong: Wrong) -> None:
    """The refusal names the field, as does the line that kubectl prints, and says what is right."""
    assert not answer.ok, "was not refused"
    assert wrong.field in answer.message
    assert wrong.says in answer.message
    if answer.status == 422:
        assert wrong.says in refusals(answer)[wrong.field]


@pytest.mark.parametrize("spec", RIGHT_JOBS.values(), ids=RIGHT_JOBS)
def test_a_right_job_is_accepted(admin, spec):
    answer = try_job(admin, spec)
    assert answer.ok, answer.message


JOBS = WRONG_JOBS | WRONG_FOR_SCHEMA


@pytest.mark.parametrize("wrong", JOBS.values(), ids=JOBS)
def test_a_wrong_job_is_refused_with_a_message_that_names_the_field(admin, wrong):
    assert_refused(try_job(admin, wrong.spec), wrong)


@pytest.mark.parametrize("spec", RIGHT_PROJECTS.values(), ids=RIGHT_PROJECTS)
def test_a_right_project_is_accepted(admin, spec):
    answer = try_project(admin, spec)
    assert answer.ok, answer.message


PROJECTS = WRONG_PROJECTS | WRONG_PROJECTS_FOR_SCHEMA


@pytest.mark.parametrize("wrong", PROJECTS.values(), ids=PROJECTS)
def test_a_wrong_project_is_refused_with_a_message_that_names_the_field(admin, wrong):
    assert_refused(try_project(admin, wrong.spec), wrong)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_accepted(admin, path):
    for body in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        if body["apiVersion"] != API_VERSION:
            continue
        body["metadata"].pop("namespace", None)
        scope = "namespaces/default/" if body["kind"] == "GPUJob" else ""
        kind = body["kind"].lower()
        plural = kind + ("es" if kind.endswith("s") else "s")
        answer = admin.create(f"{CUSTOM}/{scope}{plural}{DRY}", body)
        assert answer.ok, answer.message


def shares_of_one_pod(shares: list[float]) -> Spec:
    """As many shares as one object holds, one container each: fewer requests than one by one."""
    names = [f"c{i}" for i in range(len(shares))]
    listed = [{"name": name, "gpu": gpu} for name, gpu in zip(names, shares, strict=True)]
    return long_job(pod(*names), gpu=None, containers=listed)


def batches(shares: list[float]) -> list[list[float]]:
    return [shares[start : start + 16] for start in range(0, len(shares), 16)]


def test_every_share_in_thousandths_passes_although_most_are_no_doubles(admin):
    for shares in batches([milli / 1000 for milli in range(1, 1000)]):
        answer = try_job(admin, shares_of_one_pod(shares))
        assert answer.ok, answer.message


def test_every_share_with_more_decimals_is_refused_at_its_own_field(admin):
    chance = random.Random(20)
    shares = [chance.randrange(1, 10**d) / 10**d for d in (4, 5, 6, 9) for _ in range(100)]
    finer = [share for share in shares if round(share, 3) != share]
    assert len(finer) > 300
    for batch in batches(finer):
        refused = refusals(try_job(admin, shares_of_one_pod(batch)))
        assert set(refused) == {f"spec.containers[{i}].gpu" for i in range(len(batch))}
        assert all("three decimals" in message for message in refused.values())


def test_a_refusal_is_one_sentence_not_a_cascade(admin):
    for spec in (job(gpu=0), job(gpu=-1), job(gpu=1.5), job(gpu=0.3333), job(gpu=None)):
        assert len(refusals(try_job(admin, spec))) == 1


# Changes of a stored job.

FULL = job(
    imagePullPolicy="Always",
    command=["python"],
    args=["train.py"],
    env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
    workingDir="/src",
    resources={"limits": {"cpu": "1"}},
    gpuDevices=2,
    gpuModels=["A100"],
    minComputeCapability="8.0",
    completions=4,
    timeLimitSeconds=60,
)
CONTAINERS = long_job(
    pod("a", "b"), gpu=None, containers=[{"name": "a", "gpu": 0.5}, {"name": "b", "gpu": 0.2}]
)

Change = Callable[[Spec, dict[str, Any]], Answer]


@pytest.fixture
def change(admin: Caller, namespace: str) -> Change:
    """Store a spec, then try a merge patch on it."""

    def change(spec: Spec, patch: dict[str, Any]) -> Answer:
        path = f"{CUSTOM}/namespaces/{namespace}/gpujobs"
        created = admin.create(path, gpujob(spec))
        assert created.ok, created.message
        return admin.patch(f"{path}/train", {"spec": patch})

    return change


@pytest.mark.parametrize(
    ("spec", "field", "value"),
    [
        (FULL, "image", "trainer:2"),
        (FULL, "imagePullPolicy", None),
        (FULL, "command", ["bash"]),
        (FULL, "args", ["train.py", "--fast"]),
        (FULL, "env", [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]),
        (FULL, "workingDir", "/"),
        (FULL, "resources", {"limits": {"memory": "1Gi"}}),
        (FULL, "gpu", 0.501),
        (FULL, "gpuDevices", None),
        (FULL, "gpuModels", ["A30"]),
        (FULL, "minComputeCapability", "7.0"),
        (FULL, "type", "interactive"),
        (FULL, "completions", 5),
        (FULL, "completions", None),
        (FULL, "retries", 0),
        (FULL, "timeLimitSeconds", 61),
        (job(), "gpuModels", ["A100"]),
        (job(), "completions", 1),
        (job(gpu=None, gpuMemory="1Gi"), "gpuMemory", "2Gi"),
        (CONTAINERS, "containers", [{"name": "a", "gpu": 0.5}, {"name": "b", "gpu": 0.3}]),
        (CONTAINERS, "containers", [{"name": "a", "gpu": 0.5}]),
        (saving(), "checkpoint", {"mountPath": "/elsewhere"}),
        (saving(), "checkpoint", None),
        (job(), "checkpoint", saving()["checkpoint"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_change_of_what_a_job_is_is_refused(change, spec, field, value):
    refused = refusals(change(spec, {field: value}))
    comes_or_goes = field not in {"type", "retries", *spec} or value is None  # two have defaults
    said = refused["spec" if comes_or_goes else f"spec.{field}"]
    assert f"{field} cannot be changed; delete the job" in said


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"nodeSelector": None, "tolerations": [{"operator": "Exists"}]}},
        {"spec": {"nodeSelector": {"zone": "b"}}},
        {"spec": {"nodeSelector": {"zone": None, "rack": "a"}}},
        {"spec": {"restartPolicy": "Never"}},
        {"metadata": {"labels": {"a": "b"}}},
        {"spec": {"containers": [{"name": "a", "image": "a:2"}]}},
        {"spec": {"containers": [{"name": "a", "command": ["a:1"]}]}},
        {"spec": {"containers": [{"name": "a", "image": "a:1", "tty": True}]}},
    ],
)
def test_a_change_anywhere_in_the_template_is_refused(change, patch):
    spec = long_job(pod("a", nodeSelector={"zone": "a"}))
    refused = refusals(change(spec, {"template": patch}))
    assert "template cannot be changed" in refused["spec.template"]


def test_the_order_of_a_templates_containers_cannot_change(change):
    swapped = pod("b", "a")
    assert "spec.template" in refusals(change(long_job(pod("a", "b")), {"template": swapped}))


@pytest.mark.parametrize(
    "patch",
    [
        {"parallelism": 3},
        {"suspend": True},
        {"priority": 90},
        {"ttlSecondsAfterFinished": 60},
        {"gpu": 0.5},
    ],
    ids=str,
)
def test_how_a_job_runs_may_change(change, patch):
    answer = change(FULL, patch)
    assert answer.ok, answer.message


def test_without_completions_parallelism_cannot_change(change):
    refused = refusals(change(job(parallelism=2), {"parallelism": 3}))
    assert "set completions" in refused["spec.parallelism"]


def test_no_immutable_field_is_forgotten(admin):
    """Every field of the spec is either listed as immutable or known to be changeable."""
    crd = admin.get(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gpujobs.gpu-scheduler.io"
    )
    schema = crd.body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    fields = set(schema["properties"]["spec"]["properties"])
    changeable = {"parallelism", "suspend", "priority", "ttlSecondsAfterFinished"}
    assert fields == set(IMMUTABLE_FIELDS) | changeable


def test_a_projects_quota_may_change(admin):
    body = {"apiVersion": API_VERSION, "kind": "GPUProject", "metadata": {"name": "changing"}}
    path = f"{CUSTOM}/gpuprojects"
    assert admin.create(path, body | {"spec": project()}).ok
    try:
        answer = admin.patch(f"{path}/changing", {"spec": {"quota": 1, "namespaces": ["a", "b"]}})
        assert answer.ok, answer.message
    finally:
        admin.send("DELETE", f"{path}/changing")


# What people see.


def test_kubectl_can_apply_the_crds(control_plane):
    """It keeps a copy of what it applies in an annotation, which has a limit."""
    said = control_plane.kubectl("apply", "-f", str(ROOT / "crds")).stdout.splitlines()
    assert len(said) == len(list((ROOT / "crds").glob("*.yaml")))
    assert all(line.endswith(" configured") for line in said), said


def wait_for_openapi(admin: Caller) -> None:
    """The API server publishes a new CRD's documentation a moment after it serves the kind."""
    until(lambda: admin.get(f"/openapi/v3{CUSTOM}").ok, "the documentation is published")


def test_kubectl_explain_tells_what_gpu_means(admin, control_plane):
    wait_for_openapi(admin)
    text = " ".join(control_plane.kubectl("explain", "gpujob.spec.gpu").stdout.split())
    assert "FIELD: gpu <number>" in text
    assert "a share of one GPU" in text


@pytest.mark.parametrize(
    ("short", "header"),
    [
        ("gj", "NAME PROJECT TYPE STATUS GPU(ALLOC/REQ) PODS(RUN/DONE/TOTAL) BEST REASON NODE AGE"),
        ("gp", "NAME QUOTA LIMIT ALLOCATED BORROWED PENDING ACCEPTED PROBLEM AGE"),
        ("gn", "NAME MODEL GPUS DRIVER ISOLATION AGE"),
    ],
)
def test_kubectl_get_prints_the_columns(admin, control_plane, namespace, short, header):
    metadata = {"name": "columns"}
    made = {
        "gj": (f"namespaces/{namespace}/gpujobs", "GPUJob", {"spec": job()}),
        "gp": ("gpuprojects", "GPUProject", {"spec": project()}),
        "gn": ("gpunodes", "GPUNode", {}),
    }
    path, kind, rest = made[short]
    body = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, **rest}
    assert admin.create(f"{CUSTOM}/{path}", body).ok
    try:
        printed = control_plane.kubectl("get", short, "-n", namespace).stdout.splitlines()[0]
        assert " ".join(printed.split()) == header
    finally:
        admin.send("DELETE", f"{CUSTOM}/{path}/columns")


def test_status_is_stored_through_its_own_door_only(admin, namespace):
    path = f"{CUSTOM}/namespaces/{namespace}/gpujobs"
    created = admin.create(path, gpujob(job()) | {"status": {"phase": "Running"}})
    assert created.ok and "status" not in created.body
    status = {"phase": "Running", "podSummary": "1/0/1", "allocatedGPU": "0.5"}
    assert admin.patch(f"{path}/train/status", {"status": status}).body["status"] == status


@pytest.mark.parametrize(
    ("name", "spec", "says"),
    [
        ("train.v2", job(), "has a dot"),
        ("a" * 62, job(), "at most 61"),
        ("a" * 61, job(parallelism=11), "at most 60"),
        ("a" * 60, job(parallelism=2, completions=1000), "at most 59"),
    ],
    ids=["dot", "one pod", "eleven pods", "completions"],
)
def test_a_name_that_pods_cannot_have_is_refused_at_once(admin, name, spec, says):
    path = f"{CUSTOM}/namespaces/default/gpujobs{DRY}"
    answer = admin.create(path, gpujob(spec, name))
    assert answer.status == 422, answer.message
    assert "metadata.name" in answer.message
    assert says in answer.message
    shorter = admin.create(path, gpujob(spec, name.replace(".", "-")[:59]))
    assert shorter.ok, shorter.message
