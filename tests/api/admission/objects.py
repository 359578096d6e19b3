"""Namespaces, projects and pods for the tests of the chart's policies, and what a refusal is."""

import itertools
import time
from collections.abc import Callable
from typing import Any

from tests.api.caller import Answer, Caller
from tests.api.tenant import GIVE_UP_SECONDS

RELEASE = "gpu-scheduler"  # also its namespace, and the name of the operator's account
OPERATOR = f"system:serviceaccount:{RELEASE}:{RELEASE}"
PROJECT = "team-a"  # a namespace of a GPUProject
ELSEWHERE = "elsewhere"  # a namespace of none
EXEMPT = "nvidia-device-plugin"  # one in which pods may pick GPUs

ALLOCATION = "gpu-scheduler.io/allocation"
GATE = "gpu-scheduler.io/placement"
TERM = "gpu-scheduler.io/term"
PATH = "gpu-scheduler.io/path"
LEADER = f"/api/v1/namespaces/{RELEASE}/limitranges/gpu-scheduler-leader"
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
numbers = itertools.count()


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


def binding(name: str, term: str | None, path: str | None = "bind") -> dict[str, Any]:
    """A Binding as the operator writes it; None: it leaves that out."""
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": name,
            "labels": {} if path is None else {PATH: path},
            "annotations": {ALLOCATION: "{}"} | ({} if term is None else {TERM: term}),
        },
        "target": {"kind": "Node", "name": "node-0"},
    }


def tries(who: Caller, term: str) -> Answer:
    """The dry run by which a leader asks whether its term is known: 404 when it is."""
    path = pods(RELEASE, "nobody/binding") + "?dryRun=All"
    return who.create(path, binding("nobody", term))


def lead(admin: Caller, operator: Caller, holder: str, term: int) -> None:
    """Write the LimitRange as a new leader does, and wait until the policy has read it."""
    annotations = {TERM: f"{holder}/{term}"}
    if admin.get(LEADER).ok:
        answer = admin.patch(LEADER, {"metadata": {"annotations": annotations}})
    else:
        kind = {"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": []}}
        meta = {"name": "gpu-scheduler-leader", "annotations": annotations}
        answer = admin.create(LEADER.rpartition("/")[0], {**kind, "metadata": meta})
    assert answer.ok, answer.message
    wait_until(lambda: tries(operator, f"{holder}/{term}").status == 404)


def from_annotation(key: str) -> dict[str, Any]:
    path = f"metadata.annotations['{key}']"
    return {"name": VISIBLE, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def wait_until(done: Callable[[], bool], seconds: float = GIVE_UP_SECONDS) -> None:
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
