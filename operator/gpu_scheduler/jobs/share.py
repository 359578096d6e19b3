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
    LABEL_SHARE,
    RUNTIME_CLASS,
    SHARE_MADE,
    VISIBLE_DEVICES,
)
from gpu_scheduler.api.numbering import FIRST_INIT, numbered, with_fields
from gpu_scheduler.api.problem import Problem
from gpu_scheduler.api.share_keys import OWN, PEERS, Compat
from gpu_scheduler.api.share_request import ShareRequest, request_of
from gpu_scheduler.api.share_words import words, written
from gpu_scheduler.jobs import conflicts, equip
from gpu_scheduler.jobs.cap import CapImage
from gpu_scheduler.jobs.env import RESERVED
from gpu_scheduler.jobs.malformed import malformed
from gpu_scheduler.jobs.scheduling import schedule
from gpu_scheduler.jobs.write_path import WritePath, of_share

DEVICES = re.compile(r"gpu-scheduler\.io/c[0-9]+-devices")  # annotations of a pod that is ours
_NUMBERS = range(2 * FIRST_INIT)  # of containers
_ODD_PATH = re.compile(r"(^|/)\.\.?(/|$)|//")
MOST_VARIABLES = 2000  # of all containers, these counted in: what a policy may look through


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
    if any(DEVICES.fullmatch(key) for key in annotations):
        return None
    if found := tuple(malformed("spec", pod_spec)):
        return found
    said = words(labels, annotations, pod_spec, compat)
    if not said:
        return None
    request = request_of(said, labels, annotations)
    image = None if isinstance(request, tuple) else given.image_for(request.isolation)
    wrong = [] if isinstance(request, ShareRequest) else [*request]
    if ASKED in annotations:
        wrong.append(Problem(f"metadata.annotations[{ASKED}]", "is the scheduler's own; remove it"))
    spec, meta = deepcopy(dict(pod_spec)), deepcopy(dict(metadata))
    if compat is not None:
        _leave(spec, compat)
    wrong += _problems(spec, image)
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
        _take_out(spec, OWN.limits)
    meta["labels"] = {**labels, LABEL_SHARE: SHARE_MADE}
    own = {ASKED: written(said)} | equip.void_annotations(request.devices)
    meta["annotations"] = {**annotations, **own}
    return meta, spec


def _problems(spec: Mapping[str, Any], image: CapImage | None) -> list[Problem]:
    """What is in the way: of all containers the same is asked, as a policy does not tell them."""
    where = conflicts.Where("spec", f"the annotation {ASK_ISOLATION}", ASK_GPU)
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
    for kind in ("containers", "initContainers"):
        if (count := len(spec.get(kind) or ())) > FIRST_INIT:
            found.append(Problem(f"spec.{kind}", f"has {count}; at most {FIRST_INIT} are possible"))
    variables = sum(1 + len(container.get("env") or ()) for _, container in everyone)
    if variables > MOST_VARIABLES:
        found.append(
            Problem(
                "spec",
                f"has {variables} environment variables, containers counted in; at most "
                f"{MOST_VARIABLES} are possible where a pod asks for a share of a GPU",
            )
        )
    return found


def _leave(spec: dict[str, Any], compat: Compat) -> None:
    """Take the pod from another scheduler: what was said to that one is ours to read."""
    peer = PEERS[compat]
    if spec.get("schedulerName") in peer.schedulers:
        del spec["schedulerName"]
    _take_out(spec, peer.limits)


def _take_out(spec: Mapping[str, Any], keys: Collection[str]) -> None:
    """Of limits what no node has, or what somebody else would give: kube-scheduler looks for it."""
    for _, container in numbered(spec):
        resources = container.get("resources") or {}
        for kind in ("limits", "requests"):
            for key in keys:
                (resources.get(kind) or {}).pop(key, None)
