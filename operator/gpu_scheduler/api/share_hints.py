"""What of a workload looks as if its pods asked for a share, and does not: a sentence for each.

A key that nobody knows does nothing and says nothing, and neither does one beside the pod template
instead of in it. The chart's policy ``share-hints`` has the same tables, and warns whoever writes
such an object. Pure.
"""

import re
from collections.abc import Iterator, Mapping

from gpu_scheduler.api import names
from gpu_scheduler.api.problem import Problem
from gpu_scheduler.api.unstructured import Body, listed, part

LABELS = (names.ASK_GPU, names.LABEL_GANG)
ANNOTATIONS = (
    names.ASK_GPU,
    names.ASK_MEMORY,
    names.ASK_DEVICES,
    names.ASK_CONTAINER,
    names.ASK_MODELS,
    names.ASK_TYPE,
    names.ASK_PRIORITY,
    names.ASK_ISOLATION,
    names.ASK_TIME_LIMIT,
    names.GANG_SIZE,
    names.DISTINCT_GPUS,
)
ASKS = tuple(dict.fromkeys((*LABELS, *ANNOTATIONS)))
# What others call it, in capitals and without what stands between words.
MEANT: Mapping[str, str] = {
    **{key.partition("/")[2].upper().replace("-", ""): key for key in ASKS},
    **dict.fromkeys(("GPUS", "GPUSHARE", "GPUFRACTION", "FRACTION", "GPUCOUNT"), names.ASK_GPU),
    **dict.fromkeys(("GPUMEM", "MEMORY", "MEM", "VRAM", "GPUMEMORIES"), names.ASK_MEMORY),
    **dict.fromkeys(("GPUDEVICE", "DEVICES", "NUMDEVICES"), names.ASK_DEVICES),
    **dict.fromkeys(("GPUCONTAINERS", "CONTAINER", "CONTAINERNAME"), names.ASK_CONTAINER),
    **dict.fromkeys(("GPUMODEL", "MODEL", "MODELS", "GPUTYPE"), names.ASK_MODELS),
    **dict.fromkeys(("JOBTYPE", "WORKLOADTYPE"), names.ASK_TYPE),
    **dict.fromkeys(("TIMELIMITSECONDS", "TIMEOUT"), names.ASK_TIME_LIMIT),
    **dict.fromkeys(("GANGNAME", "PODGROUP"), names.LABEL_GANG),
    **dict.fromkeys(("DISTINCTGPU",), names.DISTINCT_GPUS),
}
# Prefixes that are ours, or were meant so.
ALIKE = re.compile(r"gpu-?sched[a-z]*(?:[.][a-z]+)?/")
# Keys that we write on Jobs and pods, so what was rendered or copied has them.
WRITTEN = re.compile(
    rf"{re.escape(names.GROUP)}/(?:allocation|asked|checkpoint-url|checkpointed-at|component|"
    r"first-rank|first-trial|holds|hparams|job|leader|narrowed|orders|path|project|rank|rendered|"
    r"report-url|role|segment|share|term|time-limit-of-template|touched|trial|trials|"
    r"c[0-9]+-(?:devices|memory-mib|memory-bytes|context-mib)|hparam[.].+|moved-.+)"
)
_LIMITS = (names.RESOURCE_MILLI, names.RESOURCE_MIB)
NO_LIMIT = (
    f"no node has it; write {names.RESOURCE_MILLI}: 500 or {names.RESOURCE_MIB}: 8192, or the "
    f"label {names.ASK_GPU} on the pod"
)
_LONGEST = 80  # characters of a key of ours


def hints(
    metadata: Body, template: Body | None = None, field: str = "spec.template"
) -> Iterator[Problem]:
    """What does not count, with where it would.

    Args:
        metadata: of the workload, or of a pod.
        template: from which it makes its pods; None: it is a pod.
        field: the template's path.
    """
    if template is None:
        yield from _of_pod(metadata, "metadata")
        return
    inside = part(template, "metadata")
    yield from _of_pod(inside, f"{field}.metadata")
    yield from of_limits(part(template, "spec"), f"{field}.spec")
    for kind, known in (("labels", LABELS), ("annotations", ANNOTATIONS)):
        there = part(metadata, kind)
        for key in known:
            if key in there and not any(
                key in part(inside, of) for of in ("labels", "annotations")
            ):
                yield Problem(
                    f"metadata.{kind}[{key}]",
                    f"counts on pods alone; write it into {field}.metadata.{kind}",
                )


def of_limits(pod_spec: Body, field: str = "spec") -> Iterator[Problem]:
    """Limits of containers under our prefix that no node has, and no pod asks with.

    Args:
        pod_spec: of a pod, or of a template.
        field: its path.
    """
    for index, container in enumerate(listed(pod_spec, "containers")):
        for key in part({"of": container}, "of", "resources", "limits"):
            if key.startswith(f"{names.GROUP}/") and key not in _LIMITS:
                yield Problem(
                    f"{field}.containers[{index}].resources.limits[{key[:_LONGEST]}]", NO_LIMIT
                )


def _of_pod(metadata: Body, field: str) -> Iterator[Problem]:
    for kind, known in (("labels", LABELS), ("annotations", ANNOTATIONS)):
        for key in part(metadata, kind):
            where = f"{field}.{kind}[{key[:_LONGEST]}]"
            if key in known or not ALIKE.match(key):
                continue
            if key in ASKS:
                other = "annotations" if kind == "labels" else "labels"
                yield Problem(where, f"does not count there; write it into {field}.{other}")
            elif meant := nearest(key):
                yield Problem(where, f"is unknown; write {meant}")


def nearest(key: str) -> str:
    """Which of our keys was meant; empty where this is one, or somebody else's."""
    if len(key) > _LONGEST or WRITTEN.fullmatch(key):
        return ""
    word = key.partition("/")[2].upper()
    for between in "-_.":
        word = word.replace(between, "")
    if found := MEANT.get(word):
        return found
    return f"one of {', '.join(ASKS)}" if key.startswith(f"{names.GROUP}/") else ""
