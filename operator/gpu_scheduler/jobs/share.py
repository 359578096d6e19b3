"""Any pod with a share of a GPU: a pod that asks by itself, made ours.

Pure, and the only place that says what such a pod looks like: ``kubectl gpu render`` calls it,
the admission policy of the chart does the same and is tested against it, and the operator places no
pod that it would not have made (docs/adr/0049).
"""

import re
from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from gpu_scheduler.api.gpujob import Isolation
from gpu_scheduler.api.names import (
    ASK_GPU,
    ASK_ISOLATION,
    ASKED,
    GATE,
    LABEL_JOB,
    LABEL_SHARE,
    RUNTIME_CLASS,
    SCHEDULER_NAME,
    SHARE_MADE,
    VISIBLE_DEVICES,
    VOID,
)
from gpu_scheduler.api.numbering import ENDS, FIRST_INIT, numbered, with_fields
from gpu_scheduler.api.problem import Problem
from gpu_scheduler.api.share_keys import OWN, PEERS, Compat
from gpu_scheduler.api.share_request import ShareRequest, pod_group_of, request_of
from gpu_scheduler.api.share_words import of_ending, words, written
from gpu_scheduler.jobs import conflicts, equip
from gpu_scheduler.jobs.cap import CapImage
from gpu_scheduler.jobs.env import RESERVED
from gpu_scheduler.jobs.malformed import malformed
from gpu_scheduler.jobs.scheduling import schedule
from gpu_scheduler.jobs.share_size import too_long
from gpu_scheduler.jobs.write_path import WritePath, of_share

DEVICES = re.compile(r"gpu-scheduler\.io/c[0-9]+-devices")  # annotations of a pod that is ours
_NOT_THEIRS = (
    "is the scheduler's own; remove it, or leave schedulerName and schedulingGates as they were "
    "rendered"
)
_NUMBERS = range(2 * FIRST_INIT)  # of containers
_ODD_PATH = re.compile(r"(^|/)\.\.?(/|$)|//")


@dataclass(frozen=True, slots=True)
class Installation:
    """What of an installation a pod depends on.

    Attributes:
        cap_image: brings libgpucap; None: it is switched off.
        isolation: of pods that do not say.
        runtime_class: of pods that name none; empty: the cluster has none.
        has_priority_class: the chart's priority class is installed.
    """

    cap_image: CapImage | None
    isolation: Isolation = Isolation.INTERPOSER
    runtime_class: str = RUNTIME_CLASS
    has_priority_class: bool = True

    def image_for(self, asked: Isolation | None) -> CapImage | None:
        """What brings libgpucap into a pod that asks for this isolation."""
        return self.cap_image if (asked or self.isolation) is Isolation.INTERPOSER else None


def share(
    metadata: Mapping[str, Any],
    pod_spec: Mapping[str, Any],
    given: Installation,
    *,
    controlled: bool,
    compat: Compat | None = None,
) -> tuple[dict[str, Any], dict[str, Any]] | tuple[Problem, ...] | None:
    """Metadata and spec of the pod as ours; None where it does not ask, or is ours already.

    Args:
        metadata: of the pod, or of a pod template; with ``labels`` and ``annotations``.
        pod_spec: its spec as JSON. Neither is changed.
        given: the installation.
        controlled: a controller replaces the pod when it fails.
        compat: what its namespace says of other schedulers' keys.

    Returns:
        Or everything that is wrong with it.
    """
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    if found := tuple(malformed("spec", pod_spec)):
        return found
    if is_ours(labels, annotations, pod_spec):
        return None
    said = words(labels, annotations, pod_spec, compat)
    lost = tuple(of_ending(pod_spec, compat))
    if not said and not lost and ASKED not in annotations:
        return None
    request = request_of(said, labels, annotations, pod_group_of(pod_spec)) if said else ()
    image = None if isinstance(request, tuple) else given.image_for(request.isolation)
    wrong = [] if isinstance(request, ShareRequest) else [*request]
    if ASKED in annotations:
        wrong.append(Problem(f"metadata.annotations[{ASKED}]", _NOT_THEIRS))
    wrong += [
        Problem(f"metadata.annotations[{key}]", "is written by the scheduler alone; remove it")
        for key, word in annotations.items()
        if DEVICES.fullmatch(key) and word != VOID
    ]
    wrong += [
        Problem(
            f"spec.initContainers[{index}].resources.limits[{key}]",
            f"init container {container.get('name')} {ENDS}",
        )
        for index, container, key in lost
    ]
    spec, meta = deepcopy(dict(pod_spec)), deepcopy(dict(metadata))
    for index, _, key in lost:  # said already
        _take_out(spec["initContainers"][index], (key,))
    if compat is not None:
        _leave(spec, compat)
    wrong += [*_problems(spec, image), *too_long(metadata, pod_spec)]
    if isinstance(request, tuple) or wrong:
        return tuple(wrong)
    path = of_share(spec, controlled=controlled)
    equip.fill_containers(spec, request.devices, capped=True)
    equip.deliver(spec, request.devices, image)
    equip.run_by(spec, given.runtime_class)
    schedule(spec, path, has_priority_class=given.has_priority_class)
    if request.time_limit_seconds is not None and "activeDeadlineSeconds" not in spec:
        spec["activeDeadlineSeconds"] = request.time_limit_seconds
    if path is WritePath.GATE:
        for _, container in numbered(spec):
            _take_out(container, OWN.limits)
    meta["labels"] = {**labels, LABEL_SHARE: SHARE_MADE}
    own = {ASKED: written(said)} | equip.void_annotations(request.devices)
    meta["annotations"] = {**annotations, **own}
    return meta, spec


def is_ours(
    labels: Mapping[str, str], annotations: Mapping[str, str], spec: Mapping[str, Any]
) -> bool:
    """Whether a pod was made ours before: rendered, in another round of admission, or a GPUJob's.

    Anybody may write what looks like it. So it has to wait for the operator as well, which alone
    can start such a pod and looks at it before: who forges that has gained nothing.
    """
    gates = (gate.get("name") for gate in spec.get("schedulingGates") or ())
    return (
        any(DEVICES.fullmatch(key) for key in annotations)
        and (ASKED in annotations or (LABEL_JOB in labels and not _asks_the_plugin(spec)))
        and (spec.get("schedulerName") == SCHEDULER_NAME or GATE in gates)
    )


def _asks_the_plugin(spec: Mapping[str, Any]) -> bool:
    limits = (
        (container.get("resources") or {}).get("limits") or {} for _, container in with_fields(spec)
    )
    return any(conflicts.PLUGIN_RESOURCES.fullmatch(key) for each in limits for key in each)


def _problems(spec: Mapping[str, Any], image: CapImage | None) -> list[Problem]:
    """What is in the way: of all containers the same is asked, as a policy does not tell them."""
    where = conflicts.FieldPath("spec", f"the annotation {ASK_ISOLATION}", ASK_GPU)
    capped, everyone = image is not None, list(with_fields(spec))
    found = [*conflicts.problems(spec, _NUMBERS, interposer=capped, where=where)]
    numbered_ones = {id(container) for _, container in numbered(spec)}
    for field, container in everyone:
        if id(container) not in numbered_ones:
            found += conflicts.mount_problems(field, container, capped, where)
        found += [
            Problem(where, "write it without //, . and ..")
            for where, path in conflicts.written_paths(field, container)
            if _ODD_PATH.search(path)
        ]
    found += [
        Problem(f"{field}.env[{index}].name", f"{entry['name']} is set by the scheduler; remove it")
        for field, container in everyone
        for index, entry in enumerate(container.get("env") or ())
        if entry.get("name") in RESERVED - {VISIBLE_DEVICES}  # that one was said already
    ]
    return found


def _leave(spec: dict[str, Any], compat: Compat) -> None:
    """Take the pod from another scheduler: what was said to that one is ours to read."""
    peer = PEERS[compat]
    if spec.get("schedulerName") in peer.schedulers:
        del spec["schedulerName"]
    for _, container in numbered(spec):
        _take_out(container, peer.limits)


def _take_out(container: Mapping[str, Any], keys: Collection[str]) -> None:
    """Of limits what no node has, or what somebody else would give: kube-scheduler looks for it."""
    resources = container.get("resources") or {}
    for kind in ("limits", "requests"):
        for key in keys:
            (resources.get(kind) or {}).pop(key, None)
