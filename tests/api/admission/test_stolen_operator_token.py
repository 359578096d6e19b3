"""Whoever holds the operator's token can do with it what the operator's code does, and not more.

Each attack has a legitimate write beside it, made by the operator's own code: a policy that refused
everything would pass no test here.
"""

from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import convert
from tests.api.admission.objects import (
    ALLOCATION,
    ELSEWHERE,
    GATE,
    PROJECT,
    RELEASE,
    created,
    pod,
    pods,
    refused,
    wait_until,
)
from tests.api.caller import Answer, Caller

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.names import RESULTS_KEY, TERM, results_name
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.jobs.evict import evict, mark_disrupted, mark_moved, mark_time_limit
from gpu_scheduler.jobs.owner import owner_reference
from gpu_scheduler.jobs.place import Pin, place
from gpu_scheduler.jobs.render import RenderInput, render
from gpu_scheduler.jobs.service import service
from gpu_scheduler.jobs.write import Write
from gpu_scheduler.jobs.write_path import WritePath
from gpu_scheduler.kube.media_types import STRATEGIC_MERGE_PATCH
from gpu_scheduler.kube.objects import Meta, Pod

Json = dict[str, Any]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
GPUJOBS = f"/apis/gpu-scheduler.io/v1alpha1/namespaces/{PROJECT}/gpujobs"
JOBS = f"/apis/batch/v1/namespaces/{PROJECT}/jobs"
CONFIGMAPS = f"/api/v1/namespaces/{PROJECT}/configmaps"
SERVICES = f"/api/v1/namespaces/{PROJECT}/services"
DEVICES = [DeviceAllocation(0, "GPU-0", 500, 20224)]


def gpujob(editor: Caller, name: str, **spec: Any) -> Json:
    body = {
        "apiVersion": "gpu-scheduler.io/v1alpha1",
        "kind": "GPUJob",
        "metadata": {"name": name},
        "spec": {"image": "example", "gpu": 0.5, **spec},
    }
    answer = editor.create(GPUJOBS, body)
    assert answer.ok, answer.message
    return answer.body


def rendered(owner: Json, path: WritePath = WritePath.BIND) -> Json:
    """The Job of a GPUJob, as the operator makes it."""
    return render(
        RenderInput(
            name=owner["metadata"]["name"],
            namespace=owner["metadata"]["namespace"],
            uid=owner["metadata"]["uid"],
            spec=GPUJobSpec.model_validate(owner["spec"]),
            project=PROJECT,
            path=path,
            has_runtime_class=True,
            has_priority_class=True,
        )
    )


def running(operator: Caller, editor: Caller, name: str, path: WritePath = WritePath.BIND) -> Json:
    """A pod of a GPUJob that waits for the operator."""
    answer = operator.create(JOBS, rendered(gpujob(editor, name), path))
    assert answer.ok, answer.message
    found = f"{pods(PROJECT)}?labelSelector=job-name={name}"
    wait_until(lambda: len(operator.get(found).body["items"]) == 1)
    (made,) = operator.get(found).body["items"]
    return dict(made)


def sent(caller: Caller, write: Write) -> Answer:
    return caller.send(write.method, write.path, dict(write.body), write.content_type)


def path_of(found: Json) -> str:
    return pods(found["metadata"]["namespace"], found["metadata"]["name"])


def meta(found: Json) -> Meta:
    return convert(found["metadata"], Meta)


def strategic(caller: Caller, path: str, body: Json) -> Answer:
    return caller.send("PATCH", path, body, STRATEGIC_MERGE_PATCH)


def told(answer: Answer) -> None:
    """Refused by the policy, in words that say whom it is about."""
    assert refused(answer), (answer.status, answer.message)
    assert "the account of the GPU scheduler" in answer.message


@pytest.mark.parametrize("namespace", [PROJECT, ELSEWHERE, "kube-system", RELEASE])
def test_it_creates_pods_as_a_dry_run_alone(operator: Caller, namespace: str) -> None:
    body = pod(namespace)
    assert operator.create(pods(namespace) + "?dryRun=All", body).ok
    told(operator.create(pods(namespace), body))


def test_it_reads_no_secret_and_lists_no_configmap(operator: Caller) -> None:
    for path in (f"/api/v1/namespaces/{PROJECT}/secrets", CONFIGMAPS):
        assert operator.get(path).status == 403
    assert operator.get(f"/api/v1/namespaces/{PROJECT}/secrets/any").status == 403


@pytest.mark.parametrize("path", [WritePath.BIND, WritePath.GATE])
def test_it_places_and_marks_the_pods_of_gpujobs(
    operator: Caller, editor: Caller, term: str, path: WritePath
) -> None:
    found = running(operator, editor, f"placed-{path.value}", path)
    touch = operator.patch(path_of(found), {"metadata": {"annotations": {f"{GATE}-touch": "1"}}})
    assert touch.ok, touch.message
    waiting = convert(touch.body, Pod)
    write = place(waiting, "node-0", DEVICES, pin=Pin.AFFINITY, more={TERM: term})
    assert (answer := sent(operator, write)).ok, answer.message
    for mark in (
        mark_disrupted(meta(found), "OutOfcpu", "no room", NOW),
        mark_time_limit(meta(found), "too long", NOW),
    ):
        assert (answer := sent(operator, mark)).ok, answer.message
    assert (answer := sent(operator, evict(meta(found)))).ok, answer.message


def test_it_binds_to_a_node_whose_place_the_api_server_writes_on_the_pod(
    operator: Caller, admin: Caller, editor: Caller, term: str
) -> None:
    labels = {"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "b"}
    node = {"metadata": {"name": "in-a-zone", "labels": labels}}
    assert (answer := admin.create("/api/v1/nodes", node)).ok, answer.message
    found = running(operator, editor, "in-a-zone")
    write = place(convert(found, Pod), "in-a-zone", DEVICES, more={TERM: term})
    assert (answer := sent(operator, write)).ok, answer.message


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"spec": {"containers": [{"name": "main", "image": "evil"}]}}, id="image"),
        pytest.param({"spec": {"activeDeadlineSeconds": 1}}, id="deadline"),
        pytest.param({"spec": {"tolerations": [{"operator": "Exists"}]}}, id="tolerations"),
        pytest.param({"metadata": {"labels": {"app": "victim"}}}, id="labels"),
        pytest.param({"metadata": {"labels": {"gpu-scheduler.io/job": "x"}}}, id="own label"),
        pytest.param({"metadata": {"annotations": {"a": "b"}}}, id="foreign annotation"),
        pytest.param({"metadata": {"finalizers": ["example.com/stay"]}}, id="finalizers"),
        pytest.param({"metadata": {"ownerReferences": [{"$patch": "replace"}]}}, id="owner"),
        pytest.param({"metadata": {"labels": {"gpu-scheduler.io/leader": "true"}}}, id="leader"),
    ],
)
def test_of_a_gpujobs_pod_it_changes_nothing_else(
    operator: Caller, editor: Caller, change: Json, request: pytest.FixtureRequest
) -> None:
    name = f"kept-{request.node.callspec.id.replace(' ', '-')}"
    found = running(operator, editor, name, WritePath.GATE)
    change = deepcopy(change)
    for container in change.get("spec", {}).get("containers", ()):
        container["name"] = found["spec"]["containers"][0]["name"]
    if "tolerations" in change.get("spec", {}):  # the API server lets them become more
        change["spec"]["tolerations"] += found["spec"]["tolerations"]
    told(strategic(operator, path_of(found), change))


def test_a_gate_of_somebody_else_stays(operator: Caller, editor: Caller) -> None:
    owner = gpujob(editor, "gated")
    job = rendered(owner, WritePath.GATE)
    job["spec"]["template"]["spec"]["schedulingGates"].append({"name": "example.com/theirs"})
    assert (answer := operator.create(JOBS, job)).ok, answer.message
    found = f"{pods(PROJECT)}?labelSelector=job-name=gated"
    wait_until(lambda: len(operator.get(found).body["items"]) == 1)
    (made,) = operator.get(found).body["items"]
    told(operator.patch(path_of(made), {"spec": {"schedulingGates": None}}))


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"phase": "Failed"}, id="phase"),
        pytest.param({"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}, id="address"),
        pytest.param({"conditions": [{"type": "Ready", "status": "True"}]}, id="Ready"),
    ],
)
def test_of_its_status_it_writes_its_own_conditions_alone(
    operator: Caller, editor: Caller, status: Json, request: pytest.FixtureRequest
) -> None:
    found = running(operator, editor, f"status-{request.node.callspec.id.lower()}")
    told(strategic(operator, f"{path_of(found)}/status", {"status": status}))
    labels = {"metadata": {"labels": {"app": "victim"}}}
    told(strategic(operator, f"{path_of(found)}/status", labels))


def test_it_leaves_pods_of_others_alone(operator: Caller, editor: Caller) -> None:
    theirs = created(editor, pod(ELSEWHERE))
    found = editor.get(theirs).body
    annotation = {"metadata": {"annotations": {ALLOCATION: "{}"}}}
    told(operator.patch(theirs, annotation))
    image = {"spec": {"containers": [{"name": "main", "image": "evil"}]}}
    told(strategic(operator, theirs, image))
    told(sent(operator, mark_disrupted(meta(found), "OutOfcpu", "no room", NOW)))
    bound = place_on(theirs, {"app": "victim"}, {})
    told(operator.create(f"{theirs}/binding", bound))
    told(operator.create(f"{theirs}/binding", place_on(theirs, {}, {"example.com/a": "b"})))
    told(operator.create(f"{theirs}/binding", place_on(theirs, {}, {})))


def place_on(path: str, labels: dict[str, str], annotations: dict[str, str]) -> Json:
    name = path.rsplit("/", 1)[1]
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node-0"},
    }


def test_it_deletes_pods_that_it_placed_and_no_others(
    operator: Caller, editor: Caller, term: str
) -> None:
    found = running(operator, editor, "deleted")
    told(operator.send("DELETE", created(editor, pod(PROJECT))))
    told(operator.send("DELETE", path_of(found)))
    write = place(convert(found, Pod), "node-0", DEVICES, more={TERM: term})
    assert (answer := sent(operator, write)).ok, answer.message
    assert (answer := operator.send("DELETE", path_of(found))).ok, answer.message


def test_beside_itself_it_deletes_holders_alone(operator: Caller, admin: Caller) -> None:
    plain, holder = pod(RELEASE), pod(RELEASE)
    holder["metadata"]["labels"] = {"gpu-scheduler.io/component": "holder"}
    told(operator.send("DELETE", created(admin, plain)))
    answer = operator.send("DELETE", created(admin, holder))
    assert answer.ok, answer.message


def without_owner(job: Json) -> None:
    del job["metadata"]["ownerReferences"]


def of_another_kind(job: Json) -> None:
    job["metadata"]["ownerReferences"][0]["kind"] = "GPUProject"


def of_another_name(job: Json) -> None:
    job["metadata"]["name"] = "backup"


def on_the_stock_scheduler(job: Json) -> None:
    job["spec"]["template"]["spec"]["schedulerName"] = "default-scheduler"


def on_a_node(job: Json) -> None:
    job["spec"]["template"]["spec"]["nodeName"] = "node-0"


@pytest.mark.parametrize(
    "change",
    [without_owner, of_another_kind, of_another_name, on_the_stock_scheduler, on_a_node],
)
def test_it_creates_jobs_of_gpujobs_alone(
    operator: Caller, editor: Caller, change: Callable[[Json], None]
) -> None:
    job = rendered(gpujob(editor, change.__name__.replace("_", "-")))
    assert operator.create(f"{JOBS}?dryRun=All", deepcopy(job)).ok
    change(job)
    told(operator.create(JOBS, job))


@pytest.mark.parametrize("namespace", ["kube-system", RELEASE])
def test_it_creates_none_where_accounts_may_do_much(
    operator: Caller, editor: Caller, namespace: str
) -> None:
    job = rendered(gpujob(editor, f"in-{namespace}"))
    job["metadata"]["namespace"] = namespace
    told(operator.create(JOBS.replace(PROJECT, namespace), job))


def test_of_a_job_it_changes_width_and_suspension_alone(operator: Caller, editor: Caller) -> None:
    job = rendered(gpujob(editor, "wide", parallelism=2, completions=2))
    assert (answer := operator.create(JOBS, job)).ok, answer.message
    path = f"{JOBS}/wide"
    move = mark_moved(meta(answer.body), 0, PodUID("u"), NOW, ())
    assert (answer := sent(operator, move)).ok, answer.message
    for spec in ({"parallelism": 1}, {"suspend": True}):
        assert (answer := operator.patch(path, {"spec": spec})).ok, answer.message
    assert editor.patch(path, {"metadata": {"labels": {"gpu-scheduler.io/job": None}}}).ok
    label = {"metadata": {"labels": {"gpu-scheduler.io/job": "wide"}}}
    assert (answer := operator.patch(path, label)).ok, answer.message
    told(operator.patch(path, {"spec": {"activeDeadlineSeconds": 1}}))
    told(operator.patch(path, {"metadata": {"labels": {"a": "b"}}}))
    told(operator.patch(path, {"metadata": {"ownerReferences": None}}))


def test_it_leaves_the_template_of_a_job_that_sleeps_alone(
    operator: Caller, editor: Caller
) -> None:
    """Where the API server itself lets some of it change."""
    job = rendered(gpujob(editor, "asleep", suspend=True))
    assert (answer := operator.create(JOBS, job)).ok, answer.message
    template = {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}
    told(operator.patch(f"{JOBS}/asleep", template))
    assert (answer := editor.patch(f"{JOBS}/asleep", template)).ok, answer.message


def test_it_leaves_jobs_of_others_alone(operator: Caller, editor: Caller) -> None:
    job = rendered(gpujob(editor, "template-of-theirs"))
    del job["metadata"]["ownerReferences"]
    job["metadata"]["name"] = "theirs"
    assert (answer := editor.create(JOBS, job)).ok, answer.message
    told(operator.patch(f"{JOBS}/theirs", {"spec": {"suspend": True}}))
    adopt = {"metadata": {"ownerReferences": [owner_reference("theirs", "u")]}}
    told(operator.patch(f"{JOBS}/theirs", adopt))


def results(owner: Json, name: str) -> Json:
    reference = owner_reference(owner["metadata"]["name"], owner["metadata"]["uid"])
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": [reference]},
        "data": {RESULTS_KEY: "rows"},
    }


def test_it_writes_results_and_no_configmap_of_others(operator: Caller, editor: Caller) -> None:
    owner = gpujob(editor, "searched")
    name = results_name("searched", 0)
    assert (answer := operator.create(CONFIGMAPS, results(owner, name))).ok, answer.message
    path = f"{CONFIGMAPS}/{name}"
    assert (answer := operator.patch(path, {"data": {RESULTS_KEY: "more"}})).ok, answer.message
    told(operator.patch(path, {"data": {"evil": "yes"}}))
    told(operator.patch(path, {"metadata": {"ownerReferences": None}}))

    told(operator.create(CONFIGMAPS, results(owner, "kube-root-ca.crt")))
    ownerless = results(owner, results_name("searched", 1))
    del ownerless["metadata"]["ownerReferences"]
    told(operator.create(CONFIGMAPS, ownerless))

    foreign = {"metadata": {"name": results_name("searched", 2)}, "data": {"a": "b"}}
    assert editor.create(CONFIGMAPS, foreign).ok
    for path in (f"{CONFIGMAPS}/{foreign['metadata']['name']}", f"{CONFIGMAPS}/kube-root-ca.crt"):
        told(operator.patch(path, {"data": {RESULTS_KEY: "mine"}}))
        told(operator.patch(path, results(owner, path.rsplit("/", 1)[1])))


def test_it_makes_headless_services_of_gpujobs_alone(operator: Caller, editor: Caller) -> None:
    owner = gpujob(editor, "gang")
    body = service("gang", PROJECT, owner["metadata"]["uid"], PROJECT)
    assert operator.create(f"{SERVICES}?dryRun=All", body).ok
    for change in (
        {"clusterIP": "", "ports": [{"port": 443}]},
        {"externalIPs": ["10.0.0.1"]},
        {"selector": {"app": "victim"}},
        {"ports": [{"port": 443}]},
    ):
        told(operator.create(SERVICES, body | {"spec": body["spec"] | change}))
    told(operator.create(SERVICES, body | {"metadata": {"name": "gang"}}))


def test_it_deletes_gpujobs_only_when_their_time_is_over(
    operator: Caller, admin: Caller, editor: Caller
) -> None:
    gpujob(editor, "precious")
    gpujob(editor, "short-lived", ttlSecondsAfterFinished=1)
    for name in ("precious", "short-lived"):
        told(operator.send("DELETE", f"{GPUJOBS}/{name}"))
    ended = {"status": {"phase": "Succeeded"}}
    for name in ("precious", "short-lived"):
        answer = operator.patch(f"{GPUJOBS}/{name}/status", ended)
        assert answer.ok, answer.message
    told(operator.send("DELETE", f"{GPUJOBS}/precious"))
    assert (answer := operator.send("DELETE", f"{GPUJOBS}/short-lived")).ok, answer.message


def test_it_takes_no_lease_but_the_leaders(operator: Caller) -> None:
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{RELEASE}/leases"
    body = {"metadata": {"name": "gpu-node-forged"}, "spec": {"holderIdentity": "me"}}
    told(operator.create(leases, body))
    body["metadata"]["name"] = "gpu-scheduler-leader"
    assert (answer := operator.create(f"{leases}?dryRun=All", body)).ok, answer.message


def test_it_says_that_it_leads_of_its_own_pod_alone(
    operator: Caller, replica: tuple[str, Caller]
) -> None:
    path, bound = replica
    label = {"metadata": {"labels": {"gpu-scheduler.io/leader": "true"}}}
    assert (answer := bound.patch(path, label)).ok, answer.message
    told(bound.patch(path, {"metadata": {"labels": {"app": "victim"}}}))
    told(bound.patch(path, {"metadata": {"annotations": {"a": "b"}}}))
    told(operator.patch(path, label | {"metadata": {"labels": {"gpu-scheduler.io/leader": "no"}}}))


def test_nobody_else_is_held_to_that(editor: Caller) -> None:
    theirs = created(editor, pod(PROJECT))
    assert editor.patch(theirs, {"metadata": {"labels": {"a": "b"}}}).ok
    assert editor.send("DELETE", theirs).ok
    plain = {"metadata": {"name": "plain"}, "data": {"a": "b"}}
    assert editor.create(CONFIGMAPS, plain).ok
    assert editor.patch(f"{CONFIGMAPS}/plain", {"data": {"a": "c"}}).ok
