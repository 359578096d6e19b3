"""What the operator, or the kubelet, has said of a job or a pod: the headline of ``why``.

Reason and message are theirs, word for word; nothing is judged here. Bodies are plain JSON, of
which any field may be missing. Pure.
"""

import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_scheduler.api import allocation, states
from gpu_scheduler.api.names import (
    ALLOCATION,
    GATE,
    GROUP,
    LABEL_JOB,
    LABEL_SHARE,
    SCHEDULER_NAME,
)
from gpu_scheduler.api.states import Group
from gpu_scheduler.api.unstructured import Body, name_of, part, text
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.units import gpu_from_milli

Json = dict[str, Any]

ENDED = ("Succeeded", "Failed")
_PLANNED = (Group.WAITS, Group.MAKING, Group.GAVE_BACK)
_UNTOLD = (
    "nothing has been said of it yet: it is new, or no operator runs; kubectl gpu check tells which"
)
# What is said of a pod that holds a share, where no GPUJob says it: ``api.condition``, whose import
# would cost more than all the rest.
_WARNINGS = ("Owned", "Protected", "DevicesHealthy")
_TOLD = 128 + signal.SIGTERM  # the exit code of who ends when told to
_NOT_OURS = "it asks for no share of a GPU, and is not placed by the GPU scheduler"


@dataclass(frozen=True, slots=True)
class Headline:
    """The headline of an explanation; what is empty is not said.

    Attributes:
        phase: of the object.
        reason: why it is in it.
        message: the same in a sentence.
        since: RFC 3339.
        position: in the queue of its project.
        holds: GPU, as a decimal string.
        places: where its pods are.
        helps: the command that shows more.
        note: what else is to be known.
    """

    phase: str
    reason: str = ""
    message: str = ""
    since: str = ""
    position: int | None = None
    holds: str | None = None
    places: Sequence[Json] = ()
    helps: str = ""
    note: str = ""

    def to_json(self) -> Json:
        """By the names that scripts use, with who moves it on."""
        state = states.of(self.reason)
        mover = state.mover if state is not None and self.phase not in ENDED else None
        return {
            "phase": self.phase,
            "reason": self.reason,
            "message": self.message,
            "since": self.since or None,
            "queuePosition": self.position,
            "holdsGPU": self.holds,
            "places": list(self.places),
            "movedOnBy": mover,
            "helps": self.helps or None,
            "note": self.note or None,
        }


@dataclass(frozen=True, slots=True)
class Maker:
    """What is known of who makes the pods of a workload.

    Attributes:
        refused: why no pod, or no further one, is made, in the words of who was refused.
        by: kind and name of who says so.
        why_none: why there is no pod where none is refused.
        hints: what of the workload does not count, and why.
    """

    refused: str = ""
    by: str = ""
    why_none: str = ""
    hints: Sequence[str] = ()

    def told(self) -> str:
        """Why there is no pod, or no further one."""
        return f"{self.by}: {self.refused}" if self.refused else self.why_none

    def notes(self, *others: str) -> str:
        """What else is to be known, in sentences."""
        return ". ".join(filter(None, (*others, *self.hints)))


def next_pod(pods: Iterable[Body]) -> Body | None:
    """The first that waits, or else the first that has a node and does not run; None: all run."""
    live = [pod for pod in pods if not _is_over(pod)]
    waits = (pod for pod in live if not node_of(pod))
    starts = (pod for pod in live if _status(pod).get("phase") != "Running")
    return next(waits, None) or next(starts, None)


def node_of(pod: Body) -> str:
    """Where a pod is; empty while it waits."""
    return text(pod, "spec", "nodeName")


def of_job(job: Body, pods: Sequence[Body]) -> Json:
    """What is said of a GPUJob, in its status."""
    status = _status(job)
    phase, reason = text(status, "phase"), text(status, "reason")
    running = [pod for pod in pods if _status(pod).get("phase") == "Running" and not _is_over(pod)]
    if phase in ENDED:
        since = _condition(job, "Complete" if phase == "Succeeded" else "Failed").get(
            "lastTransitionTime", ""
        )
    elif phase == "Running":
        since = min((str(_status(pod).get("startTime") or "") for pod in running), default="")
    else:
        since = part(job, "metadata").get("creationTimestamp") or ""
    position = status.get("queuePosition")
    return Headline(
        phase,
        reason,
        text(status, "message"),
        since=str(since),
        position=position if isinstance(position, int) else None,
        holds=text(status, "allocatedGPU") or None,
        places=_places(running),
        helps=_helps(phase, reason, part(job, "metadata").get("name", "")),
        note="" if status else _UNTOLD,
    ).to_json()


def of_pod(pod: Body, job: Body | None = None) -> Json:
    """What is said of a pod, in its conditions; of one of a GPUJob else what is said of that."""
    status, name = _status(pod), name_of(pod)
    phase = text(status, "phase")
    reason, message, note, position = "", "", "", None
    since = part(pod, "metadata").get("creationTimestamp") or ""
    if phase in ENDED:
        reason, message = _end(status)
        since = ""
    elif phase == "Running":
        since = status.get("startTime") or since
    elif node_of(pod):
        reason, message = _stuck(status)
    else:
        reason, message = said(_condition(pod, "PodScheduled"))
        if not reason and job is not None:
            known = of_job(job, ())
            reason, message, position = known["reason"], known["message"], known["queuePosition"]
        note = "" if reason else _UNTOLD
    if not is_ours(pod):
        note = _NOT_OURS
    note = note or _warnings([pod])
    places = _places([pod]) if node_of(pod) and phase not in ENDED else []
    return Headline(
        phase,
        reason,
        message,
        since=str(since),
        position=position,
        holds=_sum(places),
        places=places,
        helps=_pod_helps(phase, reason, name),
        note=note,
    ).to_json()


def of_all(pods: Sequence[Body]) -> Json:
    """What is said of a workload's pods, none of which waits."""
    live = [pod for pod in pods if not _is_over(pod)]
    if not live:
        return of_pod(pods[-1])
    places = _places(live)
    starts = [str(_status(pod).get("startTime") or "") for pod in live]
    return Headline(
        "Running",
        since=min(starts),
        holds=_sum(places),
        places=places,
        note=_warnings(live) if any(map(is_ours, live)) else _NOT_OURS,
    ).to_json()


def of_none(maker: Maker) -> Json:
    """What is said of a workload that has no pods."""
    return Headline(
        "Pending",
        Reason.PODS_REFUSED if maker.refused else "",
        maker.told(),
        helps=f"kubectl describe {maker.by} shows its Events" if maker.refused else "",
        note=maker.notes(),
    ).to_json()


def beside(verdict: Json, maker: Maker) -> Json:
    """The same of pods that there are, with what is said of those that are not made."""
    further = f"no further pod is made: {maker.told()}" if maker.refused else ""
    return verdict | {"note": maker.notes(verdict["note"] or "", further) or None}


def is_ours(pod: Body) -> bool:
    """Whether the operator has a part in a pod."""
    meta, spec = part(pod, "metadata"), part(pod, "spec")
    gates = spec.get("schedulingGates") or ()
    labels = part(meta, "labels")
    return (
        spec.get("schedulerName") == SCHEDULER_NAME
        or bool(labels.keys() & {LABEL_JOB, LABEL_SHARE})
        or any(gate.get("name") == GATE for gate in gates)
        or ALLOCATION in part(meta, "annotations")
    )


def is_planned(verdict: Json) -> bool:
    """Whether it waits for something that a plan can tell of."""
    if verdict["phase"] in (*ENDED, "Suspended"):
        return False
    state = states.of(verdict["reason"])
    if state is None:
        return bool(verdict["phase"] != "Running")
    return state.group in _PLANNED


def said(condition: Body) -> tuple[str, str]:
    """Reason and message of a pod that waits; ours begin with the word for the reason."""
    if condition.get("status") != "False":
        return "", ""
    message = str(condition.get("message") or "")
    word, colon, rest = message.partition(": ")
    if colon and states.of(word) is not None:
        return word, rest
    return str(condition.get("reason") or ""), message


def _stuck(status: Body) -> tuple[str, str]:
    """What the kubelet says of the first container that does not start."""
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(kind) or ():
            waits = part(container, "state", "waiting")
            if waits.get("reason") not in (None, "", "PodInitializing"):
                return str(waits["reason"]), str(waits.get("message") or "")
    return "Starting", ""


def _end(status: Body) -> tuple[str, str]:
    if status.get("phase") == "Succeeded" or status.get("reason"):
        return text(status, "reason"), text(status, "message")
    all_ended = (
        (part(each, "state", "terminated"), each) for each in status.get("containerStatuses") or ()
    )
    bad = [(ended, each) for ended, each in all_ended if ended.get("exitCode")]
    if not bad:
        return "", ""
    # Who is told to end does so after the first that failed, maybe in the same second.
    ended, container = min(
        bad, key=lambda e: (str(e[0].get("finishedAt") or ""), e[0]["exitCode"] == _TOLD)
    )
    said = f"container {container.get('name')} ended with exit code {ended['exitCode']}"
    return str(ended.get("reason") or ""), said


def _warnings(pods: Iterable[Body]) -> str:
    """What stands on pods that run or start, each sentence once."""
    found = (
        _condition(pod, f"{GROUP}/{kind}")
        for pod in pods
        if not _is_over(pod)
        for kind in _WARNINGS
    )
    said = (text(each, "message") for each in found if each.get("status") == "False")
    return ". ".join(dict.fromkeys(filter(None, said)))


def _helps(phase: str, reason: str, name: str) -> str:
    if phase == "Failed":
        return f"kubectl gpu logs {name} shows its output, kubectl gpu retry {name} runs it again"
    if phase == "Suspended":
        return f"kubectl gpu resume {name} lets it go on"
    if states.cannot_start(reason):
        return f"kubectl gpu describe {name} shows its pods and Events"
    return ""


def _pod_helps(phase: str, reason: str, name: str) -> str:
    if phase == "Failed":
        return f"kubectl gpu logs {name} shows its output"
    return f"kubectl describe pod {name} shows its Events" if reason == "Starting" else ""


def _places(pods: Iterable[Body]) -> list[Json]:
    """Where pods are, and what they hold there."""
    found = []
    for pod in pods:
        held = allocation.of_pod(pod)
        devices = held.devices if held else ()
        found.append(
            {
                "pod": name_of(pod),
                "node": node_of(pod),
                "gpu": gpu_from_milli(sum(allocated.milli for allocated in devices)),
                "memoryMiB": sum(allocated.mib for allocated in devices),
                "devices": list(dict.fromkeys(allocated.device for allocated in devices)),
            }
        )
    return found


def _sum(places: Sequence[Json]) -> str | None:
    if not places:
        return None
    from gpu_scheduler.core.model.units import milli_from_gpu

    return gpu_from_milli(sum(milli_from_gpu(place["gpu"]) for place in places))


def _is_over(pod: Body) -> bool:
    going = bool(part(pod, "metadata").get("deletionTimestamp"))
    return going or _status(pod).get("phase") in ENDED


def _condition(body: Body, type: str) -> Body:
    found = (c for c in _status(body).get("conditions") or () if isinstance(c, Mapping))
    return next((each for each in found if each.get("type") == type), {})


def _status(body: Body) -> Body:
    return part(body, "status")
