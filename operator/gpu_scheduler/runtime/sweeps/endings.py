"""How the pod of a trial ended: what its containers left behind, read off the pod.

Container statuses stay undecoded JSON until a pod has ended, so the pods of everybody else cost
nothing. Called by ``trials``.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass

import msgspec

from gpu_scheduler.api.gpujob import MAIN_CONTAINER, GPUJobSpec
from gpu_scheduler.api.numbering import numbered
from gpu_scheduler.api.requests import device_requests
from gpu_scheduler.core.sweeps.outcome import excerpt
from gpu_scheduler.kube.objects import ContainerStatus, Pod, Terminated

_STATUS = msgspec.json.Decoder(ContainerStatus)


@dataclass(frozen=True, slots=True)
class Ending:
    """Of a pod that has ended: what each container said last, and what went wrong."""

    messages: Mapping[str, str]  # by container, where there is one
    failure: str  # one sentence; empty if the pod succeeded
    codes: tuple[int, ...]  # exit codes other than 0


def result_container(spec: GPUJobSpec) -> str:
    """The container that says the result: the first one with a GPU."""
    if spec.template is None:
        return MAIN_CONTAINER
    containers = dict(numbered(spec.template.get("spec") or {}))
    requests = device_requests(spec)
    index = requests[0].container if requests else 0
    return str(containers.get(index, {}).get("name", MAIN_CONTAINER))


def ending(pod: Pod) -> Ending:
    """What is left of an ended pod."""
    found: dict[str, Terminated] = {}
    # The Job's rules for exit codes look at init containers as well.
    for raw in (*pod.status.container_statuses, *pod.status.init_container_statuses):
        try:
            status = _STATUS.decode(raw)
        except msgspec.DecodeError:
            continue  # not what an API server lets anybody write
        if status.state.terminated is not None:
            found[status.name] = status.state.terminated
    messages = {name: each.message for name, each in found.items() if each.message}
    codes = tuple(each.exit_code for each in found.values() if each.exit_code)
    failure = "" if pod.status.phase == "Succeeded" else _failure(pod, found)
    return Ending(messages, failure, codes)


def fatal_code(ended: Ending, fatal: Container[int]) -> int | None:
    """The first exit code that is one of ``fatal``."""
    return next((code for code in ended.codes if code in fatal), None)


def _failure(pod: Pod, found: dict[str, Terminated]) -> str:
    bad = {name: each for name, each in found.items() if each.exit_code}
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    name = next((c.name for c in containers if c.name in bad), "")
    if not name or pod.status.reason:
        why = ": ".join(filter(None, (pod.status.reason, excerpt(pod.status.message))))
        return why or "the pod failed"
    reason = f" ({bad[name].reason})" if bad[name].reason not in ("", "Error") else ""
    said = excerpt(bad[name].message)
    text = f"container {name} ended with exit code {bad[name].exit_code}{reason}"
    return f"{text}: {said}" if said else text
