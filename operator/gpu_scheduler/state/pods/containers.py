"""What the containers of a pod say: why they do not start, and why the pod failed.

Container statuses stay undecoded JSON unless a pod is on its node and has not started, or has
failed, so the pods of everybody else cost nothing. Every text that a program or a node wrote is
bounded and on one line. Called when a pod's record is built, and for trials.
"""

import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from sys import intern

import msgspec

from gpu_scheduler.api import names
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.wording import clip
from gpu_scheduler.kube.objects import ContainerStateWaiting, ContainerStatus, Pod, Terminated

KUBELET_CHARS = 600  # of a sentence of the kubelet's
SAID_CHARS = 300  # of what a program said last

_STATUS = msgspec.json.Decoder(ContainerStatus)
_BEGINNING = {"", "ContainerCreating", "PodInitializing"}  # nothing is wrong yet
_IMAGE = {
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
}
_SANDBOX = {"CreatePodSandboxError", "ConfigPodSandboxError", "NetworkPluginNotReady"}
_NO_PROGRAM = {"StartError", "ContainerCannotRun"}
_HINTS = {
    126: "the program cannot be executed",
    127: "no such program",
}
DEADLINE = "DeadlineExceeded"  # what a kubelet calls the end of a time limit
_SIGNALS = frozenset(signal.valid_signals())  # asked anew it makes an enum of each


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a pod does not start, or why it failed.

    ``at``: when it failed, RFC 3339, as the kubelet wrote it; may be empty.
    """

    reason: Reason
    message: str
    at: str = ""


def statuses(raw: Iterable[msgspec.Raw]) -> Iterator[ContainerStatus]:
    """Those that can be read."""
    for each in raw:
        try:
            yield _STATUS.decode(each)
        except msgspec.DecodeError:
            continue  # not what an API server lets anybody write


def trouble(pod: Pod) -> Trouble | None:
    """The first container that cannot start; None while all is well, or nothing is known."""
    for raw in (pod.status.init_container_statuses, pod.status.container_statuses):
        for status in statuses(raw):
            waiting = status.state.waiting
            if waiting is not None and waiting.reason not in _BEGINNING:
                return _trouble(pod, status, waiting)
    return None


def finished_at(pod: Pod) -> str:
    """When the last container that has ended did, RFC 3339; empty: none says so."""
    ended = (status.state.terminated for status in statuses(pod.status.container_statuses))
    return max((each.finished_at or "" for each in ended if each is not None), default="")


def initializing(pod: Pod) -> str:
    """Name of the init container that runs; empty: none does, but for sidecars."""
    sidecars = _sidecars(pod)
    found = (s for s in statuses(pod.status.init_container_statuses) if s.name not in sidecars)
    return next((s.name for s in found if s.state.running is not None), "")


def _sidecars(pod: Pod) -> frozenset[str]:
    """Init containers that run as long as the others do: the kubelet ends them after these."""
    inits = pod.spec.init_containers
    return frozenset(each.name for each in inits if each.restart_policy == "Always")


def _trouble(pod: Pod, status: ContainerStatus, waiting: ContainerStateWaiting) -> Trouble:
    said = line(waiting.message, KUBELET_CHARS)
    if waiting.reason in _IMAGE:
        # Between two tries the kubelet says the same behind words that say that it waits.
        _, tried, cause = said.partition("ErrImagePull: ")
        said = cause if tried and cause else said
        reason, what = Reason.IMAGE_NOT_PULLED, f"image {_image(status)} cannot be had"
        word = "ErrImagePull" if waiting.reason == "ImagePullBackOff" else waiting.reason
    else:
        reason = (
            Reason.SANDBOX_NOT_CREATED
            if waiting.reason in _SANDBOX
            else Reason.CONTAINER_NOT_STARTED
        )
        what, word = "it cannot start", waiting.reason
    text = f"container {clip(status.name, 63)} of pod {pod.metadata.name} on "
    text += f"{pod.spec.node_name}: {what}: {clip(word, 63)}"
    return Trouble(reason, f"{text}: {said}" if said else text)


def failure(pod: Pod) -> Trouble | None:
    """Why a pod failed, the first container that did before the others; None if it has not."""
    if pod.status.phase != "Failed":
        return None
    sidecars = _sidecars(pod)
    inits = [s for s in statuses(pod.status.init_container_statuses) if s.name not in sidecars]
    ended = [
        (status.name, status.state.terminated)
        for status in (*inits, *statuses(pod.status.container_statuses))
        if status.state.terminated is not None
    ]
    bad = [each for each in ended if each[1].exit_code or each[1].signal]
    at = min((e.finished_at for _, e in bad if e.finished_at), default="")
    if pod.status.reason or not bad:
        late = pod.status.reason == DEADLINE
        limit = f"it ran longer than {time_limit(pod) or 'its time limit'}"
        said = pod.status.reason, line(pod.status.message, KUBELET_CHARS)
        why = ": ".join(filter(None, (limit if late else "", *said)))
        reason = Reason.TIME_LIMIT_EXCEEDED if late else Reason.POD_FAILED
        return Trouble(reason, why or "the pod failed, and no container says why", at)
    name, first = min(bad, key=lambda each: (each[1].finished_at or "", _was_told(each[1])))
    return Trouble(_kind(first), f"container {clip(name, 63)} {_ending(first)}", at)


def time_limit(pod: Pod) -> str:
    """What limits how long a pod runs: 'spec.timeLimitSeconds (60 s)'; empty: nothing does.

    It is a field of the GPUJob or of its template, or the pod's own where it has no GPUJob.
    """
    seconds, notes = pod.spec.active_deadline_seconds, pod.metadata.annotations
    if seconds is None:
        return ""
    if names.ASKED in notes:
        field = "spec.activeDeadlineSeconds"
    elif names.LIMIT_OF_TEMPLATE in notes:
        field = "template.spec.activeDeadlineSeconds"
    else:
        field = "spec.timeLimitSeconds"
    return intern(f"{field} ({seconds} s)")


def _was_told(ended: Terminated) -> bool:
    """Whether it ended as one that is told to: others in the same second have done so before."""
    return ended.exit_code == 128 + signal.SIGTERM or ended.signal == signal.SIGTERM


def _kind(ended: Terminated) -> Reason:
    if ended.reason == "OOMKilled":
        return Reason.OOM_KILLED
    if ended.reason in _NO_PROGRAM or ended.exit_code in _HINTS:
        return Reason.PROGRAM_NOT_FOUND
    return Reason.PROGRAM_FAILED


def _ending(ended: Terminated) -> str:
    """How a container ended: 'ended with exit code 137 (OOMKilled, SIGKILL): last words'."""
    notes = [ended.reason] if ended.reason not in ("", "Error") else []
    number = ended.signal or (ended.exit_code - 128 if ended.exit_code > 128 else 0)
    if number in _SIGNALS:
        notes.append(_signal(number))
    elif ended.exit_code in _HINTS:
        notes.append(_HINTS[ended.exit_code])
    text = f"ended with exit code {ended.exit_code}"
    if notes:
        text += f" ({clip(', '.join(notes), 100)})"
    most = KUBELET_CHARS if ended.reason in _NO_PROGRAM else SAID_CHARS
    said = last_line(ended.message, most)
    return f"{text}: {said}" if said else text


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _image(status: ContainerStatus) -> str:
    return clip(line(status.image, KUBELET_CHARS), 200) or "of the container"


def line(text: str, most_chars: int) -> str:
    """A text on one line and fit for a status."""
    shown = "".join(c if c.isprintable() else " " for c in text[: 4 * most_chars])
    return clip(" ".join(shown.split()), most_chars)


def last_line(text: str, most_chars: int) -> str:
    """The last line that says anything: of a log it has the error, of a traceback what it was."""
    for each in reversed(text[-4 * 1024 :].replace("\r", "\n").split("\n")):
        if shown := line(each, most_chars):
            return shown
    return ""
