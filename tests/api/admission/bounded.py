"""Every list that a policy walks, in a request that it would refuse anyhow: test_policy_bounds."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from tests.api.admission.objects import (
    ALLOCATION,
    ELSEWHERE,
    GATE,
    PROJECT,
    VISIBLE,
    binding,
    pod,
    pods,
)

Json = dict[str, Any]

NO_GPU = {"name": VISIBLE, "value": "void"}
JOBS = f"/apis/batch/v1/namespaces/{ELSEWHERE}/jobs"
GPUJOB = {
    "apiVersion": "gpu-scheduler.io/v1alpha1",
    "kind": "GPUJob",
    "name": "o",
    "uid": "u",
    "controller": True,
}
BY_US = "may be written by the GPU scheduler alone"
names = count()


@dataclass(frozen=True, slots=True)
class Row:
    """A list, and a request with it.

    Attributes:
        policies: that walk it.
        path: of the list, as the policies see it.
        verdict: what they say of the request while the list is short enough.
        user: who sends it.
        way: method and path, which may have the name of what exists.
        body: what is sent; the list is put into it.
        existing: what is there already; the list is put into it, where `path` is of the old object.
    """

    policies: tuple[str, ...]
    path: str
    verdict: str
    user: str
    way: tuple[str, str]
    body: Json
    existing: Json | None = None

    def __str__(self) -> str:
        return "-".join((*self.policies, self.user, self.way[0], self.path))

    @property
    def is_old(self) -> bool:
        return self.path.startswith("oldObject")

    @property
    def field(self) -> str:
        """The list's path in its object."""
        return self.path.partition(".")[2]

    @property
    def says(self) -> str:
        """How the refusal names the list."""
        return self.path.split("[].")[1] if "[]." in self.path else self.field


def rows() -> list[Row]:
    return [*_picking(), *_writing(), *_by_the_operator(), *_bindings(), *_jobs(), *_shares()]


def _picking() -> Iterator[Row]:
    """A container that leaves it to its image which GPUs it sees, behind many others."""
    lists = [
        f"{kind}{of}"
        for kind in ("containers", "initContainers")
        for of in ("", "[].env", "[].envFrom", "[].resources.limits")
    ]
    for policy, namespace, labels in (
        ("devices", PROJECT, {}),
        ("allocations", ELSEWHERE, {"gpu-scheduler.io/job": "x"}),
    ):
        body = pod(namespace, env=[NO_GPU], runtimeClassName="nvidia")
        body["metadata"]["labels"] = labels
        sly = {"name": "sly", "image": "x"}
        for path in lists:
            kind = path.partition("[]")[0]
            made = {**body, "spec": {**body["spec"], kind: [*body["spec"].get(kind, ()), sly]}}
            yield Row(
                (policy,),
                f"object.spec.{path}",
                "container sly",
                "editor",
                ("POST", pods(namespace)),
                made,
            )
        debugs = ("PUT", pods(namespace, "NAME/ephemeralcontainers"))
        debugged = {**pod(namespace), "spec": {"ephemeralContainers": [sly]}}
        for of in ("", "[].env", "[].envFrom"):
            path = f"object.spec.ephemeralContainers{of}"
            yield Row((policy,), path, "container sly", "admin", debugs, debugged, body)


def _writing() -> Iterator[Row]:
    """Annotations of ours, and our gate."""
    path, forged = "object.metadata.annotations", {ALLOCATION: "{}"}
    create, update = ("POST", pods(ELSEWHERE)), ("PATCH", pods(ELSEWHERE, "NAME"))
    yield Row(("allocations",), path, BY_US, "editor", create, pod(ELSEWHERE, annotations=forged))
    changed = {"metadata": {"annotations": forged}}
    yield Row(("allocations",), path, BY_US, "editor", update, changed, pod(ELSEWHERE))
    gated = pod(ELSEWHERE, schedulingGates=[{"name": GATE}])
    path, body = "oldObject.spec.schedulingGates", {"spec": {"schedulingGates": None}}
    yield Row(("allocations",), path, "may be removed by", "editor", update, body, gated)


def _by_the_operator() -> Iterator[Row]:
    """What it writes of pods that are none of its own."""
    there, word = pod(ELSEWHERE), {"metadata": {"annotations": {"y": "z"}}}

    def row(path: str, verdict: str, method: str, sub: str, body: Json) -> Row:
        policy = "operator" if method == "DELETE" else "allocations"
        way = (method, pods(ELSEWHERE, f"NAME{sub}"))
        return Row((policy,), path, verdict, "operator", way, body, there)

    for path in (
        "object.metadata.annotations",
        "object.metadata.labels",
        "object.metadata.ownerReferences",
        "oldObject.metadata.labels",
        "oldObject.metadata.ownerReferences",
        "oldObject.spec.schedulingGates",
    ):
        yield row(path, "may not UPDATE pods", "PATCH", "", word)
    for root in ("object", "oldObject"):
        path, body = f"{root}.status.conditions", {"status": {"reason": "x"}}
        yield row(path, "may not UPDATE pods/status", "PATCH", "/status", body)
    for field in ("metadata.labels", "metadata.ownerReferences", "spec.schedulingGates"):
        yield row(f"oldObject.{field}", "may not DELETE pods", "DELETE", "", {})


def _bindings() -> Iterator[Row]:
    way = ("POST", pods(ELSEWHERE, "nobody/binding"))
    yield Row(
        ("bindings",),
        "object.metadata.annotations",
        "in a Binding may come from",
        "admin",
        way,
        binding("nobody", None, None),
    )
    for field in ("annotations", "labels"):
        body = binding("nobody", None, None)
        yield Row(
            ("bindings",),
            f"object.metadata.{field}",
            "binds pods to nodes with an allocation alone",
            "operator",
            way,
            body,
        )


def _jobs() -> Iterator[Row]:
    """Jobs that are no GPUJob's."""
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "x", "namespace": ELSEWHERE},
        "spec": {"template": {"spec": spec}},
    }
    for field in (
        "metadata.annotations",
        "metadata.labels",
        "metadata.ownerReferences",
        "spec.template.spec.schedulingGates",
    ):
        yield Row(
            ("operator",),
            f"object.{field}",
            "may not CREATE jobs",
            "operator",
            ("POST", JOBS),
            body,
        )
        if field.startswith("metadata"):
            changed = {"spec": {"backoffLimit": 3}}
            yield Row(
                ("operator",),
                f"oldObject.{field}",
                "may not UPDATE jobs",
                "operator",
                ("PATCH", f"{JOBS}/NAME"),
                changed,
                body,
            )


def _shares() -> Iterator[Row]:
    """A pod that asks for a share that there is not, or sets what is the scheduler's."""
    both, create = ("shares", "share-requests"), ("POST", pods(ELSEWHERE))
    body = pod(
        ELSEWHERE,
        annotations={"gpu-scheduler.io/gpu": "x"},
        automountServiceAccountToken=False,  # its volume would count
        volumes=[{"name": "v", "emptyDir": {}}],
    )
    for field in (
        "metadata.annotations",
        "metadata.labels",
        "metadata.ownerReferences",
        "spec.schedulingGates",
        "spec.volumes",
    ):
        verdict = "must be a share of one GPU"
        yield Row(both, f"object.{field}", verdict, "editor", create, body)
    for kind in ("containers", "initContainers"):
        for of in ("", "[].env", "[].volumeMounts", "[].ports", "[].resources.limits"):
            verdict, path = "sets a variable that the GPU scheduler sets", f"object.spec.{kind}{of}"
            yield Row(both, path, verdict, "editor", create, body)
