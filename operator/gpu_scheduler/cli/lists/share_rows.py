"""Pods that ask for a share by themselves, as lines beside GPUJobs: one for each owner.

Pure. What the scheduler wrote on the pods is read with care: another version may have.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpu_scheduler.api import allocation
from gpu_scheduler.api.names import ASK_TYPE, ASKED, LABEL_PROJECT
from gpu_scheduler.api.unstructured import Body, labels_of, name_of
from gpu_scheduler.cli.holders.left_behind import OutlivingPod
from gpu_scheduler.cli.one_pod.choosing import phase_of, scheduled
from gpu_scheduler.core.model.units import MIB, gpu_from_milli
from gpu_scheduler.core.model.wording import memory
from gpu_scheduler.simulate.verdict import said

_SHORT = {
    "deployment": "deploy",
    "statefulset": "sts",
    "daemonset": "ds",
    "replicaset": "rs",
    "cronjob": "cj",
}
_HASH = "pod-template-hash"  # label of a Deployment's pods; ends their ReplicaSet's name
_ENDED = ("Succeeded", "Failed")


@dataclass(slots=True)
class PodOwner:
    """The pods of one owner, or a pod by itself.

    Attributes:
        namespace: where it is.
        name: as on a command line: deploy/server, pod/notebook.
        pods: its pods, in the order in which they came.
    """

    namespace: str
    name: str
    pods: dict[str, Body] = field(default_factory=dict)

    def cells(self, project: str = "") -> dict[str, str]:
        """What is known of it, by the columns of a GPUJob, without what is in brackets there."""
        pods = list(self.pods.values())
        counts = {
            phase: sum(phase_of(pod) == phase for pod in pods) for phase in (*_ENDED, "Running")
        }
        nodes = list(dict.fromkeys(filter(None, map(_node, pods))))
        return {
            "NAME": self.name,
            "PROJECT": project,
            "TYPE": _type(pods[0]) if pods else "",
            "STATUS": status_of(pods),
            "GPU": _gpu(pods),
            "PODS": f"{counts['Running']}/{counts['Succeeded']}/{len(pods)}",
            "REASON": next(filter(None, map(reason_of, pods)), ""),
            "NODE": nodes[0]
            if len(nodes) == 1
            else f"{nodes[0]} +{len(nodes) - 1} more"
            if nodes
            else "",
        }

    def created(self) -> str:
        """When its oldest pod was made."""
        return min(
            (str(pod["metadata"].get("creationTimestamp") or "") for pod in self.pods.values()),
            default="",
        )


def left_cells(left: OutlivingPod, age: str) -> dict[str, str]:
    """What is known of a pod that is no GPUJob's any more, by the columns of one."""
    held = gpu_from_milli(left.milli)
    return {
        "NAME": f"pod/{name_of(left.pod)}",
        "PROJECT": labels_of(left.pod).get(LABEL_PROJECT, ""),
        "STATUS": phase_of(left.pod) if left.orphaned else "Terminating",
        "GPU": f"{held}/{held}",
        "REASON": left.reason,
        "NODE": left.node,
        "AGE": age,
    }


def workloads(pods: Iterable[Body]) -> dict[tuple[str, str], PodOwner]:
    """Pods by what made them, by namespace and name."""
    found = dict[tuple[str, str], PodOwner]()
    for pod in pods:
        key = owner_of(pod)
        found.setdefault(key, PodOwner(*key)).pods[str(pod["metadata"].get("uid"))] = pod
    return found


def owner_of(pod: Body) -> tuple[str, str]:
    """Namespace, and kind/name of what made a pod: of a ReplicaSet its Deployment."""
    meta = pod["metadata"]
    namespace = str(meta.get("namespace") or "")
    owners = meta.get("ownerReferences") or ()
    owner = next((each for each in owners if each.get("controller")), None)
    if owner is None:
        return namespace, f"pod/{meta['name']}"
    kind, name = str(owner.get("kind") or "").lower(), str(owner.get("name") or "")
    part = f"-{(meta.get('labels') or {}).get(_HASH) or ''}"
    if kind == "replicaset" and len(part) > 1 and name.endswith(part):
        kind, name = "deployment", name.removesuffix(part)
    return namespace, f"{_SHORT.get(kind, kind)}/{name}"


def status_of(pods: Iterable[Body]) -> str:
    """As the phase of a GPUJob: it runs as soon as a pod of it does."""
    phases = [phase_of(pod) for pod in pods]
    if "Running" in phases:
        return "Running"
    if phases and all(phase in _ENDED for phase in phases):
        return "Failed" if "Failed" in phases else "Succeeded"
    return "Pending"


def reason_of(pod: Body) -> str:
    """Why a pod waits, in one word; empty where it does not."""
    status = pod.get("status") or {}
    if phase_of(pod) in _ENDED:
        return str(status.get("reason") or "") if phase_of(pod) == "Failed" else ""
    condition = scheduled(pod)
    if condition.get("status") == "False":
        return said(condition)[0]
    for each in status.get("containerStatuses") or ():
        waiting = (each.get("state") or {}).get("waiting") or {}
        if reason := waiting.get("reason"):
            return str(reason)
    return ""


def held(pod: Body) -> allocation.Allocation | None:
    """What a pod that has not ended holds; None: nothing, or nothing that can be read."""
    return None if phase_of(pod) in _ENDED else allocation.of_pod(pod)


def _gpu(pods: list[Body]) -> str:
    """GPUs held and asked for by those that have not ended; device memory where that is asked."""
    devices = [allocated for pod in pods if (has := held(pod)) for allocated in has.devices]
    asked_milli = asked_mib = 0
    for pod in pods:
        if phase_of(pod) in _ENDED:
            continue
        for milli, mib in _asked(pod):
            asked_milli, asked_mib = asked_milli + milli, asked_mib + mib
    if asked_mib and not asked_milli:
        has_mib = sum(allocated.mib for allocated in devices)
        return f"{memory(has_mib * MIB)}/{memory(asked_mib * MIB)}"
    more = f"+{memory(asked_mib * MIB)}" if asked_mib else ""
    return f"{gpu_from_milli(sum(g.milli for g in devices))}/{gpu_from_milli(asked_milli)}{more}"


def _asked(pod: Body) -> Iterable[tuple[int, int]]:
    """Milli-GPU and MiB that a pod asks for; nothing where its words mean nothing."""
    from gpu_scheduler.api.share_request import pod_group_of, request_of
    from gpu_scheduler.api.share_words import read

    meta = pod["metadata"]
    notes = meta.get("annotations") or {}
    try:
        words = read(str(notes.get(ASKED) or ""))
    except ValueError:
        return
    group = pod_group_of(pod.get("spec") or {})
    request = request_of(words, meta.get("labels") or {}, notes, group)
    for each in () if isinstance(request, tuple) else request.devices:
        yield each.count * each.milli, each.count * each.mib


def _type(pod: Body) -> str:
    kind = (pod["metadata"].get("annotations") or {}).get(ASK_TYPE)
    restarts = (pod.get("spec") or {}).get("restartPolicy") in (None, "Always")
    return str(kind or ("interactive" if restarts else "training"))


def _node(pod: Body) -> str:
    has = held(pod)
    return str((pod.get("spec") or {}).get("nodeName") or (has.node if has else ""))
