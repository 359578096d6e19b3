"""How the pod of a trial ended: what its containers left behind, read off the pod.

Container statuses stay undecoded JSON until a pod has ended, so the pods of everybody else cost
nothing.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass

from gpu_scheduler.api.gpujob import MAIN_CONTAINER, GPUJobSpec
from gpu_scheduler.api.numbering import numbered
from gpu_scheduler.api.requests import device_requests
from gpu_scheduler.core.model.wording import clip
from gpu_scheduler.kube.objects import Pod, Terminated
from gpu_scheduler.state.pods.containers import failure, statuses

_FAILURE_CHARS = 300  # as it is kept with a trial


@dataclass(frozen=True, slots=True)
class Ending:
    """Of a pod that has ended: what each container said last, and what went wrong."""

    messages: Mapping[str, str]  # by container, where there is one
    failure: str  # one sentence; empty if the pod succeeded
    codes: Mapping[str, int]  # exit codes other than 0, by container


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
    for status in statuses((*pod.status.container_statuses, *pod.status.init_container_statuses)):
        if status.state.terminated is not None:
            found[status.name] = status.state.terminated
    messages = {name: each.message for name, each in found.items() if each.message}
    codes = {name: each.exit_code for name, each in found.items() if each.exit_code}
    why = failure(pod)
    failed = "" if pod.status.phase == "Succeeded" else why.message if why else "the pod failed"
    return Ending(messages, clip(failed, _FAILURE_CHARS), codes)


def fatal_code(ended: Ending, fatal: Container[int], containers: Container[str]) -> int | None:
    """The first exit code that is one of ``fatal``; ``containers``: whose count."""
    found = (code for name, code in ended.codes.items() if name in containers)
    return next((code for code in found if code in fatal), None)
