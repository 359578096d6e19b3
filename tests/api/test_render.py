"""What is rendered and written, judged by a real API server, Job controller and kube-scheduler.

The facts about Kubernetes that rendering, binding, ungating and evicting rest on: a test here
fails when one of them stops being true.
"""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
import pytest
from tests.api.caller import Answer, Caller
from tests.api.conftest import administrator
from tests.api.replica import operating
from tests.api.tenant import GIVE_UP_SECONDS
from tests.unit.jobs.golden_jobs import CASES, make_input

from cluster import Running
from gpu_scheduler.api import allocation
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.jobs.drift import changes, steps
from gpu_scheduler.jobs.evict import evict, mark_disrupted, mark_time_limit
from gpu_scheduler.jobs.place import Pin, place
from gpu_scheduler.jobs.render import RenderInput, render
from gpu_scheduler.jobs.write import Write
from gpu_scheduler.jobs.write_path import WritePath
from gpu_scheduler.kube.objects import Job, Pod

T = TypeVar("T")

NODE = "r7525-2"
GRANTS = (DeviceAllocation(0, "GPU-a", 500, 20224),)
STRATEGIC = "application/strategic-merge-patch+json"
SHORT: dict[str, Any] = {"image": "registry.example/quickstart:1", "gpu": 0.5}
VOID = {"gpu-scheduler.io/c0-devices": "void"}


@pytest.fixture(scope="module")
def led(control_plane: Running) -> Running:
    """The cluster once somebody has led there: before, there is no term to place pods in."""
    with operating(control_plane):
        return control_plane


@pytest.fixture
def api(led: Running) -> Caller:
    return administrator(led)


def bare(job: RenderInput, namespace: str) -> RenderInput:
    """The job in a cluster that has no classes of ours."""
    return replace(job, namespace=namespace, has_runtime_class=False, has_priority_class=False)


def jobs(namespace: str, name: str = "") -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs" + (f"/{name}" if name else "")


def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def eventually(read: Callable[[], T | None]) -> T:
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while (found := read()) is None:
        assert time.monotonic() < deadline, "did not come true in time"
        time.sleep(0.1)
    return found


def create(api: Caller, namespace: str, spec: dict[str, Any], **changes: Any) -> Pod:
    """Creates the Job of a GPUJob and gives its first pod, once that is there."""
    body = render(bare(make_input(spec, **changes), namespace))
    # There is no such GPUJob here: the garbage collector would delete what it owned.
    del body["metadata"]["ownerReferences"]
    answer = api.create(jobs(namespace), body)
    assert answer.ok, answer.message
    return eventually(lambda: next(iter(listed(api, namespace)), None))


def decoded(body: object, kind: type[T]) -> T:
    return msgspec.json.decode(json.dumps(body), type=kind)


def listed(api: Caller, namespace: str) -> list[Pod]:
    return decoded(api.get(pods(namespace)).body["items"], list[Pod])


def send(api: Caller, write: Write) -> Answer:
    return api.send(write.method, write.path, dict(write.body), write.content_type)


def raw(api: Caller, pod: Pod) -> dict[str, Any]:
    return api.get(f"{pods(pod.metadata.namespace)}/{pod.metadata.name}").body


def read(api: Caller, pod: Pod) -> Pod:
    return decoded(raw(api, pod), Pod)


def read_job(api: Caller, namespace: str) -> Job:
    return decoded(api.get(jobs(namespace, "frac05")).body, Job)


def with_meta(pod: Pod, **changes: str) -> Pod:
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, **changes))


def fail(api: Caller, pod: Pod) -> None:
    """Ends the pod as the kubelet would."""
    path = f"{pods(pod.metadata.namespace)}/{pod.metadata.name}/status"
    answer = api.send("PATCH", path, {"status": {"phase": "Failed"}}, STRATEGIC)
    assert answer.ok, answer.message


# Rendering


@pytest.mark.parametrize("case", CASES)
def test_every_golden_job_is_accepted(api: Caller, namespace: str, case: str) -> None:
    job = render(replace(CASES[case], namespace=namespace))
    answer = api.create(f"{jobs(namespace)}?dryRun=All&fieldValidation=Strict", job)
    assert answer.ok, answer.message


@pytest.mark.parametrize("case", CASES)
def test_every_golden_pod_is_accepted(api: Caller, namespace: str, case: str) -> None:
    template = render(bare(CASES[case], namespace))["spec"]["template"]
    body = {"apiVersion": "v1", "kind": "Pod", **template}
    body["metadata"] = {**template["metadata"], "name": "try"}
    answer = api.create(f"{pods(namespace)}?dryRun=All&fieldValidation=Strict", body)
    assert answer.ok, answer.message


@pytest.mark.parametrize(
    "change",
    [
        {"parallelism": 3, "suspend": True},
        {"parallelism": 1, "completions": 2},
        {"parallelism": 3, "completions": 9},
    ],
)
def test_changes_are_accepted_and_leave_nothing_to_do(
    api: Caller, namespace: str, change: dict[str, int | bool]
) -> None:
    spec = {**SHORT, "parallelism": 2, "completions": 4}
    create(api, namespace, spec)
    wanted = render(bare(make_input({**spec, **change}), namespace))["spec"]
    seen = read_job(api, namespace).spec
    assert changes(seen, wanted) == change
    for step in steps(seen, change):
        answer = api.patch(jobs(namespace, "frac05"), {"spec": step})
        assert answer.ok, answer.message
    assert changes(read_job(api, namespace).spec, wanted) == {}


# The bind path


def test_binding_sets_node_and_allocation_at_once(api: Caller, namespace: str) -> None:
    pod = create(api, namespace, SHORT)
    assert VOID.items() <= pod.metadata.annotations.items()
    answer = send(api, place(pod, NODE, GRANTS))
    assert answer.ok, answer.message
    bound = read(api, pod)
    assert bound.spec.node_name == NODE
    assert bound.metadata.annotations["gpu-scheduler.io/c0-devices"] == "GPU-a"
    assert bound.metadata.annotations["gpu-scheduler.io/c0-memory-mib"] == "20224"
    ledger = allocation.parse(bound.metadata.annotations["gpu-scheduler.io/allocation"])
    assert (ledger.node, ledger.devices) == (NODE, GRANTS)
    index = "batch.kubernetes.io/job-completion-index"
    assert bound.metadata.annotations[index] == "0"  # what GPUJOB_INDEX reads


def test_binding_refuses_another_pod_of_that_name_and_a_second_time(
    api: Caller, namespace: str
) -> None:
    pod = create(api, namespace, SHORT)
    assert send(api, place(with_meta(pod, uid="another"), NODE, GRANTS)).status == 409
    assert read(api, pod).spec.node_name == ""
    assert send(api, place(pod, NODE, GRANTS)).ok
    assert send(api, place(pod, "r7525-0", GRANTS)).status == 409
    assert read(api, pod).spec.node_name == NODE


# The gate path


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    weight = {"weight": 1, "preference": {"matchExpressions": [exists("example.com/fast")]}}
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)},
            "preferredDuringSchedulingIgnoredDuringExecution": [weight],
        },
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname"}}
            ]
        },
    }


def exists(key: str) -> dict[str, Any]:
    return {"key": key, "operator": "Exists"}


def gated(api: Caller, namespace: str, **spec: Any) -> Pod:
    container = {"name": "main", "image": "registry.example/quickstart:1"}
    template = {"spec": {"containers": [container], **spec}}
    return create(api, namespace, {"template": template, "gpu": 0.5}, path=WritePath.GATE)


def test_ungating_pins_every_term_and_kube_scheduler_follows(api: Caller, namespace: str) -> None:
    # A term without requirements matches nothing, and the API server lets nobody add to it.
    terms = [{"matchExpressions": [exists("kubernetes.io/arch")]}, {}]
    terms.append({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["x"]}]})
    pod = gated(api, namespace, affinity=affinity(*terms))
    before = raw(api, pod)["spec"]["affinity"]
    answer = send(api, place(read(api, pod), NODE, GRANTS))
    assert answer.ok, answer.message
    eventually(lambda: read(api, pod).spec.node_name or None)
    after = raw(api, pod)
    assert after["spec"]["nodeName"] == NODE
    assert "schedulingGates" not in after["spec"]
    assert after["metadata"]["annotations"]["gpu-scheduler.io/c0-devices"] == "GPU-a"
    assert "managedFields" not in after["metadata"]  # nor did binding and status bring them back
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    pin = {"key": "metadata.name", "operator": "In", "values": [NODE]}
    assert after["spec"]["affinity"]["nodeAffinity"].pop(required)["nodeSelectorTerms"] == [
        {**terms[0], "matchFields": [pin]},
        {},
        {"matchFields": [*terms[2]["matchFields"], pin]},
    ]
    del before["nodeAffinity"][required]
    assert after["spec"]["affinity"] == before


@pytest.mark.parametrize("pin", Pin)
def test_ungating_a_pod_without_affinity(api: Caller, namespace: str, pin: Pin) -> None:
    pod = gated(api, namespace)
    answer = send(api, place(read(api, pod), NODE, GRANTS, pin=pin, hostname=NODE))
    assert answer.ok, answer.message
    assert eventually(lambda: read(api, pod).spec.node_name or None) == NODE


def test_ungating_refuses_another_pod_of_that_name_and_a_stale_version(
    api: Caller, namespace: str
) -> None:
    pod = read(api, gated(api, namespace))
    assert send(api, place(with_meta(pod, uid="another"), NODE, GRANTS)).status == 422
    path = f"{pods(namespace)}/{pod.metadata.name}"
    assert api.patch(path, {"metadata": {"labels": {"seen": "yes"}}}).ok
    assert send(api, place(pod, NODE, GRANTS)).status == 409
    assert read(api, pod).spec.scheduling_gates == pod.spec.scheduling_gates


# Failures that are charged, and those that are not


def test_a_disrupted_pod_is_replaced_without_a_charge(api: Caller, namespace: str) -> None:
    pod = create(api, namespace, {**SHORT, "retries": 0})
    assert send(api, place(pod, "no-such-node", GRANTS)).ok
    kept = {c.type for c in read(api, pod).status.conditions}
    answer = send(api, mark_disrupted(pod.metadata, "OutOfcpu", "full", datetime.now(UTC)))
    assert answer.ok, answer.message
    marked = {c.type for c in read(api, pod).status.conditions}
    assert kept
    assert marked == kept | {"DisruptionTarget"}
    fail(api, pod)
    successor = eventually(
        lambda: next(
            (p for p in listed(api, namespace) if p.metadata.uid != pod.metadata.uid), None
        )
    )
    assert successor.metadata.annotations["gpu-scheduler.io/c0-devices"] == "void"
    assert "gpu-scheduler.io/allocation" not in successor.metadata.annotations
    status = read_job(api, namespace).status
    assert (status.failed, status.failed_indexes) == (0, "")


def test_a_pod_past_its_time_limit_is_not_tried_again(api: Caller, namespace: str) -> None:
    pod = create(api, namespace, {**SHORT, "retries": 3, "timeLimitSeconds": 60})
    assert send(api, place(pod, "no-such-node", GRANTS)).ok
    assert send(api, mark_time_limit(pod.metadata, "ran 60 s", datetime.now(UTC))).ok
    fail(api, pod)
    indexes = eventually(lambda: read_job(api, namespace).status.failed_indexes or None)
    assert indexes == "0"
    assert {p.metadata.uid for p in listed(api, namespace)} == {pod.metadata.uid}


def test_marking_another_pod_of_that_name_is_refused(api: Caller, namespace: str) -> None:
    pod = with_meta(create(api, namespace, SHORT), uid="another")
    answer = send(api, mark_disrupted(pod.metadata, "OutOfcpu", "full", datetime.now(UTC)))
    assert answer.status in (409, 422)


def test_an_evicted_pod_is_replaced_without_a_charge(api: Caller, namespace: str) -> None:
    pod = create(api, namespace, {**SHORT, "retries": 0}, path=WritePath.GATE)
    assert send(api, evict(with_meta(pod, uid="another").metadata)).status == 409
    answer = send(api, evict(pod.metadata))
    assert answer.ok, answer.message
    eventually(
        lambda: next(
            (p for p in listed(api, namespace) if p.metadata.uid != pod.metadata.uid), None
        )
    )
    status = read_job(api, namespace).status
    assert (status.failed, status.failed_indexes) == (0, "")
