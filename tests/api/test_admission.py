"""The chart's roles and policies on a real API server, with a user who holds the `edit` role.

Every forgery is refused with a sentence that names what is not allowed; every write that the
operator itself makes passes, made here by the operator's own code; stock pods notice nothing.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert
from tests.api.caller import Answer, Caller

from cluster.lifecycle import down, up
from cluster.running import Running
from cluster.settings import Settings
from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.core.decision import Grant
from gpu_scheduler.jobs.path import Path as WritePath
from gpu_scheduler.jobs.place import Pin, place
from gpu_scheduler.jobs.render import RenderInput, render
from gpu_scheduler.kube.objects import Pod

CHART = Path(__file__).parents[2] / "charts" / "gpu-scheduler"
RELEASE = "gpu-scheduler"  # also its namespace, and the name of the operator's account
OPERATOR = f"system:serviceaccount:{RELEASE}:{RELEASE}"
PROJECT = "team-a"  # a namespace of a GPUProject
ELSEWHERE = "elsewhere"  # a namespace of none

ALLOCATION = "gpu-scheduler.io/allocation"
GATE = "gpu-scheduler.io/placement"
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
numbers = itertools.count()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    running = up(Settings(name="admission-tests"), recreate=True)
    try:
        yield running
    finally:
        down(running.name)


def caller(cluster: Running, user: str) -> Caller:
    return Caller(cluster.server, cluster.ca_file, cluster.token(user))


@pytest.fixture(scope="module")
def admin(cluster: Running) -> Caller:
    """A cluster administrator, after the chart was installed and the policies took effect."""
    admin = caller(cluster, "admin")
    cluster.helm("install", RELEASE, str(CHART), "-n", RELEASE, "--create-namespace")
    for namespace in (PROJECT, ELSEWHERE):
        make_namespace(admin, namespace)
    admin.create(
        "/apis/node.k8s.io/v1/runtimeclasses",
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": "nvidia"},
            "handler": "nvidia",
        },
    )
    make_project(admin, PROJECT, [PROJECT])
    forged = pod(PROJECT, annotations={ALLOCATION: "{}"})
    wait_until(lambda: refused(admin.create(pods(PROJECT) + "?dryRun=All", forged)))
    wait_until(lambda: refused(admin.create(pods(PROJECT) + "?dryRun=All", picking(PROJECT))))
    binding = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "n"}}
    binding["metadata"] = {"name": "none", "annotations": {ALLOCATION: "{}"}}
    wait_until(lambda: refused(admin.create(pods(PROJECT, "none/binding"), binding)))
    return admin


@pytest.fixture(scope="module")
def editor(cluster: Running, admin: Caller) -> Caller:
    """A user with the `edit` role in both namespaces, once it is aggregated."""
    editor = caller(cluster, "edit-user")
    wait_until(lambda: editor.may("create", "gpujobs", PROJECT, group="gpu-scheduler.io"))
    wait_until(lambda: editor.may("create", "pods", ELSEWHERE))
    return editor


@pytest.fixture(scope="module")
def operator(cluster: Running, admin: Caller) -> Caller:
    """The operator's own service account, with a token such as its pods get."""
    answer = admin.create(
        f"/api/v1/namespaces/{RELEASE}/serviceaccounts/{RELEASE}/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    )
    assert answer.ok, answer.message
    return Caller(cluster.server, cluster.ca_file, answer.body["status"]["token"])


def make_namespace(admin: Caller, name: str) -> None:
    meta = {"name": name}
    admin.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
    for level in ("edit", "view"):
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": f"{level}-user"}
        answer = admin.create(
            f"/apis/rbac.authorization.k8s.io/v1/namespaces/{name}/rolebindings",
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "metadata": {"name": level},
                "roleRef": {**role, "name": level},
                "subjects": [subject],
            },
        )
        assert answer.ok, answer.message
    # Pods are refused until the controller has made the namespace's account.
    wait_until(lambda: admin.get(f"/api/v1/namespaces/{name}/serviceaccounts/default").ok)


def make_project(admin: Caller, name: str, namespaces: list[str]) -> None:
    answer = admin.create(
        "/apis/gpu-scheduler.io/v1alpha1/gpuprojects",
        {
            "apiVersion": "gpu-scheduler.io/v1alpha1",
            "kind": "GPUProject",
            "metadata": {"name": name},
            "spec": {"namespaces": namespaces, "quota": 1},
        },
    )
    assert answer.ok, answer.message


def pods(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/pods" + (f"/{name}" if name else "")


def pod(
    namespace: str,
    *,
    annotations: dict[str, str] | None = None,
    env: list[dict[str, Any]] | None = None,
    limits: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "main", "image": "example", "env": env or []}
    if limits:
        container["resources"] = {"limits": limits}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{next(numbers)}",
            "namespace": namespace,
            "annotations": annotations or {},
        },
        "spec": {"containers": [container], **spec},
    }


def picking(namespace: str, value: str = "all") -> dict[str, Any]:
    """A pod that asks for GPUs by hand."""
    return pod(namespace, env=[{"name": VISIBLE, "value": value}])


def from_annotation(key: str) -> dict[str, Any]:
    path = f"metadata.annotations['{key}']"
    return {"name": VISIBLE, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def wait_until(done: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, "did not come true in time"
        time.sleep(0.1)


def refused(answer: Answer) -> bool:
    return answer.status == 403 and "ValidatingAdmissionPolicy" in answer.message


def created(who: Caller, body: dict[str, Any]) -> str:
    """The path of a pod that `who` could create."""
    namespace = body["metadata"]["namespace"]
    answer = who.create(pods(namespace), body)
    assert answer.ok, answer.message
    return pods(namespace, body["metadata"]["name"])


def test_the_api_server_finds_no_wrong_type_in_the_policies(admin: Caller) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"

    def checked() -> bool:
        found = admin.get(path).body["items"]
        return len(found) == 3 and all("typeChecking" in p.get("status", {}) for p in found)

    wait_until(checked)
    for policy in admin.get(path).body["items"]:
        assert not policy["status"]["typeChecking"].get("expressionWarnings")


# Annotations


@pytest.mark.parametrize("namespace", [PROJECT, ELSEWHERE])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        (ALLOCATION, '{"v":1,"n":"n","c":{}}'),
        (ALLOCATION, "void"),
        ("gpu-scheduler.io/c0-devices", "GPU-0"),
        ("gpu-scheduler.io/c0-devices", ""),
        ("gpu-scheduler.io/c0-memory-mib", "void"),
        ("gpu-scheduler.io/cx-devices", "void"),
        ("gpu-scheduler.io/c0-devices-more", "void"),
    ],
)
def test_a_pod_with_a_forged_annotation_is_refused(
    editor: Caller, namespace: str, key: str, value: str
) -> None:
    answer = editor.create(pods(namespace), pod(namespace, annotations={key: value, "own": "1"}))
    assert refused(answer)
    assert f"metadata.annotations: {key} may be written by the GPU scheduler" in answer.message
    assert OPERATOR in answer.message


def test_the_harmless_default_of_a_template_may_be_created(editor: Caller) -> None:
    created(editor, pod(PROJECT, annotations={"gpu-scheduler.io/c12-devices": "void"}))


@pytest.mark.parametrize(
    ("change", "verb"),
    [
        ({ALLOCATION: "{}"}, "written"),
        ({"gpu-scheduler.io/c0-devices": "GPU-0"}, "written"),
        ({"gpu-scheduler.io/c1-devices": "void"}, "written"),
        ({"gpu-scheduler.io/c0-devices": None}, "removed"),
    ],
)
@pytest.mark.parametrize("subresource", ["", "/status"])
def test_nobody_else_changes_an_allocation(
    admin: Caller, editor: Caller, change: dict[str, str | None], verb: str, subresource: str
) -> None:
    path = created(editor, pod(PROJECT, annotations={"gpu-scheduler.io/c0-devices": "void"}))
    # The edit role does not hold pods/status; an administrator does and is refused all the same.
    who = admin if subresource else editor
    answer = who.patch(path + subresource, {"metadata": {"annotations": change}})
    assert refused(answer)
    assert f"{next(iter(change))} may be {verb} by the GPU scheduler alone" in answer.message


def test_other_annotations_of_a_placed_pod_stay_free(editor: Caller) -> None:
    path = created(editor, pod(PROJECT, annotations={"gpu-scheduler.io/c0-devices": "void"}))
    assert editor.patch(path, {"metadata": {"annotations": {"own": "1"}}}).ok
    assert editor.patch(path, {"metadata": {"labels": {"own": "1"}}}).ok


def test_the_job_controller_may_not_carry_a_forgery_in(editor: Caller) -> None:
    template = pod(PROJECT, annotations={ALLOCATION: "{}"}, restartPolicy="Never")
    template["metadata"] = {"annotations": template["metadata"]["annotations"]}
    answer = editor.create(
        f"/apis/batch/v1/namespaces/{PROJECT}/jobs",
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "forged"},
            "spec": {"template": {"metadata": template["metadata"], "spec": template["spec"]}},
        },
    )
    assert answer.ok, answer.message

    def told() -> bool:
        events = editor.get(
            f"/api/v1/namespaces/{PROJECT}/events?fieldSelector=involvedObject.name=forged"
        )
        return any(
            f"{ALLOCATION} may be written by the GPU scheduler alone" in event["message"]
            for event in events.body["items"]
        )

    wait_until(told)
    found = editor.get(pods(PROJECT) + "?labelSelector=job-name=forged")
    assert found.body["items"] == []


# Gate and node


def test_nobody_else_removes_the_gate(editor: Caller) -> None:
    gates = [{"name": GATE}, {"name": "example.com/foreign"}]
    path = created(editor, pod(PROJECT, schedulingGates=gates))
    answer = editor.patch(path, {"spec": {"schedulingGates": None}})
    assert refused(answer)
    assert f"spec.schedulingGates: {GATE} may be removed by the GPU scheduler" in answer.message
    assert editor.patch(path, {"spec": {"schedulingGates": [{"name": GATE}]}}).ok


def test_a_pod_of_our_scheduler_may_not_choose_its_node(editor: Caller) -> None:
    body = pod(PROJECT, schedulerName="gpu-scheduler", nodeName="node-0")
    answer = editor.create(pods(PROJECT), body)
    assert refused(answer)
    assert "spec.nodeName: a pod with schedulerName gpu-scheduler cannot choose" in answer.message


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"nodeName": "node-0"},
        {"schedulerName": "gpu-scheduler"},
        {"schedulerName": "another", "nodeName": "node-0"},
    ],
)
def test_stock_pods_are_untouched(editor: Caller, spec: dict[str, str]) -> None:
    path = created(editor, pod(PROJECT, **spec))
    assert editor.patch(path, {"metadata": {"annotations": {"own": "1"}}}).ok


# Bindings


@pytest.mark.parametrize("endpoint", ["pods/{}/binding", "bindings"])
@pytest.mark.parametrize(
    ("annotations", "passes"), [({ALLOCATION: "{}"}, False), ({"own": "1"}, True), ({}, True)]
)
def test_only_a_binding_without_an_allocation_comes_from_others(
    admin: Caller, editor: Caller, endpoint: str, annotations: dict[str, str], passes: bool
) -> None:
    name = created(editor, pod(PROJECT)).rpartition("/")[2]
    path = f"/api/v1/namespaces/{PROJECT}/{endpoint.format(name)}"
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "annotations": annotations},
        "target": {"kind": "Node", "name": "node-0"},
    }
    answer = admin.create(path, body)
    assert answer.ok is passes, answer.message
    assert refused(answer) is not passes
    assert passes or f"{ALLOCATION} in a Binding may come from" in answer.message


# Devices


@pytest.mark.parametrize(
    "entry",
    [
        {"name": VISIBLE, "value": "all"},
        {"name": VISIBLE, "value": "GPU-0"},
        {"name": VISIBLE, "value": "$(OTHER)"},
        {"name": VISIBLE},
        from_annotation("own"),
        from_annotation("gpu-scheduler.io/c0-devices-more"),
        {"name": VISIBLE, "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
        {"name": VISIBLE, "valueFrom": {"secretKeyRef": {"name": "c", "key": "k"}}},
        {"name": VISIBLE, "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}},
    ],
)
@pytest.mark.parametrize("where", ["containers", "initContainers"])
def test_nobody_picks_gpus_by_hand_in_a_project(
    editor: Caller, entry: dict[str, Any], where: str
) -> None:
    def body(namespace: str) -> dict[str, Any]:
        made = pod(namespace, env=[{"name": VISIBLE, "value": "void"}])
        # The last of two entries wins in a container, so none of them may be wrong.
        env = [{"name": VISIBLE, "value": "void"}, entry, {"name": "A", "value": "b"}]
        made["spec"].setdefault(where, []).append({"name": "sly", "image": "example", "env": env})
        return made

    answer = editor.create(pods(PROJECT), body(PROJECT))
    assert refused(answer)
    assert f"container sly sets {VISIBLE}" in answer.message
    assert "use a GPUJob" in answer.message
    created(editor, body(ELSEWHERE))


@pytest.mark.parametrize(
    "env",
    [
        [],
        [{"name": VISIBLE, "value": "void"}],
        [from_annotation("gpu-scheduler.io/c0-devices")],
        [{"name": "CUDA_VISIBLE_DEVICES", "value": "0"}],
    ],
)
def test_what_gives_no_gpu_may_be_set(editor: Caller, env: list[dict[str, Any]]) -> None:
    created(editor, pod(PROJECT, env=env))


def test_a_container_on_the_gpu_runtime_says_what_it_sees(editor: Caller) -> None:
    answer = editor.create(pods(PROJECT), pod(PROJECT, runtimeClassName="nvidia"))
    assert refused(answer)
    assert "container main of a pod with runtimeClassName nvidia leaves" in answer.message
    void = [{"name": VISIBLE, "value": "void"}]
    created(editor, pod(PROJECT, runtimeClassName="nvidia", env=void))
    created(editor, pod(PROJECT, runtimeClassName="nvidia", limits={"nvidia.com/gpu": "1"}))
    created(editor, pod(ELSEWHERE, runtimeClassName="nvidia"))


@pytest.mark.parametrize(
    ("env", "word"), [([{"name": VISIBLE, "value": "all"}], "sets"), ([], "leaves")]
)
def test_a_debug_container_gets_no_gpu_either(
    admin: Caller, editor: Caller, env: list[dict[str, str]], word: str
) -> None:
    placed_by_us = [from_annotation("gpu-scheduler.io/c0-devices")]
    path = created(editor, pod(PROJECT, runtimeClassName="nvidia", env=placed_by_us))

    def debug(env: list[dict[str, str]]) -> Answer:
        container = {"name": "debug", "image": "example", "env": env}
        return admin.patch(
            f"{path}/ephemeralcontainers", {"spec": {"ephemeralContainers": [container]}}
        )

    answer = debug(env)
    assert refused(answer)
    assert "container debug " in answer.message
    assert f"{word} " in answer.message
    assert debug([{"name": VISIBLE, "value": "void"}]).ok


@pytest.mark.parametrize("namespace", [PROJECT, ELSEWHERE])
@pytest.mark.parametrize(
    ("env", "passes"),
    [
        ([from_annotation("gpu-scheduler.io/c0-devices")], True),
        ([{"name": VISIBLE, "value": "void"}], True),
        ([{"name": VISIBLE, "value": "all"}], False),
        ([], False),
    ],
)
def test_the_label_of_a_gpujob_opens_no_way_around(
    editor: Caller, namespace: str, env: list[dict[str, Any]], passes: bool
) -> None:
    body = pod(namespace, runtimeClassName="nvidia", env=env)
    body["metadata"]["labels"] = {"gpu-scheduler.io/job": "sly"}
    answer = editor.create(pods(namespace), body)
    assert answer.ok is passes, answer.message
    assert refused(answer) is not passes
    assert passes or "in a pod with the label gpu-scheduler.io/job" in answer.message


def test_a_debug_container_in_a_gpujobs_pod_gets_no_gpu_either(
    admin: Caller, editor: Caller
) -> None:
    body = pod(PROJECT, runtimeClassName="nvidia", env=[{"name": VISIBLE, "value": "void"}])
    body["metadata"]["labels"] = {"gpu-scheduler.io/job": "mine"}
    path = f"{created(editor, body)}/ephemeralcontainers"
    container: dict[str, Any] = {"name": "debug", "image": "example"}
    answer = admin.patch(path, {"spec": {"ephemeralContainers": [container]}})
    assert refused(answer)
    assert "container debug of a pod" in answer.message
    container["env"] = [{"name": VISIBLE, "value": "void"}]
    assert admin.patch(path, {"spec": {"ephemeralContainers": [container]}}).ok


def test_a_namespace_that_joins_a_project_is_guarded_from_then_on(
    admin: Caller, editor: Caller
) -> None:
    make_namespace(admin, "joins")
    wait_until(lambda: editor.may("create", "pods", "joins"))
    created(editor, picking("joins"))
    make_project(admin, "joins", ["somewhere", "joins"])
    wait_until(lambda: refused(editor.create(pods("joins") + "?dryRun=All", picking("joins"))))


# The operator's own work


@pytest.mark.parametrize("path", [WritePath.BIND, WritePath.GATE])
def test_the_operators_own_writes_pass_from_the_job_to_the_placement(
    operator: Caller, editor: Caller, path: WritePath
) -> None:
    name = f"honest-{path.value}"
    job = render(
        RenderInput(
            name=name,
            namespace=PROJECT,
            uid="00000000-0000-0000-0000-000000000000",
            spec=GPUJobSpec.model_validate({"image": "example", "gpu": 0.5}),
            project=PROJECT,
            path=path,
            has_runtime_class=True,
            has_priority_class=True,
        )
    )
    del job["metadata"]["ownerReferences"]  # the GPUJob is not there, and would be missed
    answer = operator.create(f"/apis/batch/v1/namespaces/{PROJECT}/jobs", job)
    assert answer.ok, answer.message
    selector = f"{pods(PROJECT)}?labelSelector=job-name={name}"
    wait_until(lambda: len(operator.get(selector).body["items"]) == 1)
    (made,) = operator.get(selector).body["items"]
    assert made["metadata"]["annotations"]["gpu-scheduler.io/c0-devices"] == "void"

    write = place(convert(made, Pod), "node-0", [Grant(0, "GPU-0", 500, 20224)], pin=Pin.AFFINITY)
    refusal = editor.send(write.method, write.path, dict(write.body), write.content_type)
    assert refusal.status == 403
    answer = operator.send(write.method, write.path, dict(write.body), write.content_type)
    assert answer.ok, answer.message
    placed = operator.get(pods(PROJECT, made["metadata"]["name"])).body
    assert placed["metadata"]["annotations"]["gpu-scheduler.io/c0-devices"] == "GPU-0"
    assert "schedulingGates" not in placed["spec"]


# Roles


@pytest.mark.parametrize(
    ("verb", "resource", "group"),
    [
        ("watch", "gpujobs", "gpu-scheduler.io"),
        ("delete", "gpujobs", "gpu-scheduler.io"),
        ("patch", "gpujobs/status", "gpu-scheduler.io"),
        ("patch", "gpuprojects/status", "gpu-scheduler.io"),
        ("create", "jobs", "batch"),
        ("create", "pods", ""),
        ("create", "pods/binding", ""),
        ("create", "pods/eviction", ""),
        ("patch", "pods/status", ""),
        ("get", "persistentvolumeclaims", ""),
        ("list", "customresourcedefinitions", "apiextensions.k8s.io"),
    ],
)
def test_the_operator_may(operator: Caller, verb: str, resource: str, group: str) -> None:
    assert operator.may(verb, resource, PROJECT, group=group)


@pytest.mark.parametrize(
    ("verb", "resource", "group"),
    [
        ("get", "secrets", ""),
        ("list", "configmaps", ""),
        ("delete", "pods", ""),
        ("create", "pods/exec", ""),
        ("patch", "nodes", ""),
        ("patch", "gpujobs", "gpu-scheduler.io"),
        ("create", "gpuprojects", "gpu-scheduler.io"),
        ("get", "leases", "coordination.k8s.io"),
        ("create", "clusterrolebindings", "rbac.authorization.k8s.io"),
        ("impersonate", "users", ""),
    ],
)
def test_the_operator_may_not(operator: Caller, verb: str, resource: str, group: str) -> None:
    assert not operator.may(verb, resource, PROJECT, group=group)


def test_the_operator_holds_leases_in_its_own_namespace_alone(operator: Caller) -> None:
    assert operator.may("create", "leases", RELEASE, group="coordination.k8s.io")
    assert not operator.may("create", "leases", PROJECT, group="coordination.k8s.io")


def test_people_write_jobs_but_neither_status_nor_projects_nor_bindings(editor: Caller) -> None:
    ours = "gpu-scheduler.io"
    for verb in ("create", "patch", "delete", "list"):
        assert editor.may(verb, "gpujobs", PROJECT, group=ours)
    assert not editor.may("patch", "gpujobs/status", PROJECT, group=ours)
    assert not editor.may("create", "gpuprojects", group=ours)
    assert not editor.may("patch", "gpunodes", group=ours)
    assert not editor.may("create", "pods/binding", PROJECT)
    assert not editor.may("create", "bindings", PROJECT)


def test_viewers_read_jobs(cluster: Running, editor: Caller) -> None:
    viewer = caller(cluster, "view-user")
    assert viewer.may("list", "gpujobs", PROJECT, group="gpu-scheduler.io")
    assert not viewer.may("create", "gpujobs", PROJECT, group="gpu-scheduler.io")
