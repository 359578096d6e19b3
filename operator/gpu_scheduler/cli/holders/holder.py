"""Who holds what: devices put together by node, holder and project. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_scheduler.cli.holders.held import HeldDevice, HeldFraction, naturally


@dataclass(frozen=True, slots=True)
class Holder:
    """What one holder has on all devices.

    Attributes:
        key: its ``namespace/name``.
        milli: milli-GPU.
        pods: names of its pods.
        nodes: on which they are, each once.
        project: that is charged; empty: not known.
        percent: mean utilisation over its pods; None: not known of one of them.
        mib: memory caps, of all its GPUs together.
        kind: such as GPUJob.
    """

    key: str
    milli: int
    pods: set[str]
    nodes: list[str]
    project: str
    percent: int | None
    mib: int = 0
    kind: str = ""

    @property
    def namespace(self) -> str:
        """Where it is."""
        return self.key.partition("/")[0]

    @property
    def name(self) -> str:
        """What it is called there."""
        return self.key.partition("/")[2]

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "namespace": self.namespace,
            "name": self.name,
            "project": self.project or None,
            "milliGPU": self.milli,
            "pods": sorted(self.pods),
            "nodes": self.nodes,
        }


def by_project(devices: Iterable[HeldDevice]) -> dict[str, list[HeldFraction]]:
    """The shares that each project is charged for, of those that can be seen."""
    found: dict[str, list[HeldFraction]] = {}
    for device in devices:
        for share in device.shares:
            found.setdefault(share.project, []).append(share)
    return found


def used_parts(shares: Iterable[HeldFraction]) -> tuple[int, int, int]:
    """Milli-GPU that is used, held and not used, and of which nobody knows."""
    used = unused = unknown = 0
    for share in shares:
        if share.used is None:
            unknown += share.milli
        else:
            used += share.used
            unused += share.milli - share.used
    return used, unused, unknown


def by_node(devices: Iterable[HeldDevice]) -> dict[str, list[HeldDevice]]:
    """The devices of each node."""
    nodes: dict[str, list[HeldDevice]] = {}
    for device in devices:
        nodes.setdefault(device.node, []).append(device)
    return nodes


def by_holder(devices: Iterable[HeldDevice]) -> list[Holder]:
    """Who holds anything, who holds most first."""
    found: dict[str, list[tuple[HeldDevice, HeldFraction]]] = {}
    for device in devices:
        for share in device.shares:
            found.setdefault(share.key, []).append((device, share))
    return sorted(
        (_holder(key, held) for key, held in found.items()),
        key=lambda holder: (-holder.milli, naturally(holder.key)),
    )


def _holder(key: str, held: Sequence[tuple[HeldDevice, HeldFraction]]) -> Holder:
    by_pod = {share.pod: share.percent for _, share in held}
    known = [percent for percent in by_pod.values() if percent is not None]
    return Holder(
        key,
        sum(share.milli for _, share in held),
        set(by_pod),
        list(dict.fromkeys(device.node for device, _ in held)),
        held[0][1].project,
        round(sum(known) / len(known)) if len(known) == len(by_pod) else None,
        sum(share.mib for _, share in held),
        held[0][1].kind,
    )


def mean_percent(devices: Sequence[HeldDevice]) -> int | None:
    """Mean utilisation; GPUs that nobody holds are at 0. None where one is not known."""
    known = [device.percent if device.shares else 0 for device in devices]
    if None in known or not any(device.shares for device in devices):
        return None
    return round(sum(percent for percent in known if percent is not None) / len(known))


def milli_of(value: object) -> int:
    """Milli-GPU of what a spec or a status says; 0 where that is no number."""
    try:
        return round(1000 * float(str(value)))
    except (ValueError, OverflowError):
        return 0
