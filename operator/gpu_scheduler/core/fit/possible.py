"""Whether a gang could ever start: counted on empty nodes, domain by domain.

Counts are upper bounds, so a gang that is refused here really cannot start; one that passes may
still find no place because of a mixture that the counts do not see. Per pod request: how many of
its pods the nodes hold. For all that want at least so many whole GPUs: as many each. In sum: CPU,
memory, pod slots, scalars. Called before a gang is tried, remembered as long as the nodes stay.
"""

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from gpu_scheduler.core.model import wording
from gpu_scheduler.core.model.arrays import Flags, Ints
from gpu_scheduler.core.model.assign import share
from gpu_scheduler.core.model.devices import accepts
from gpu_scheduler.core.model.pod_request import PodRequest
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.nodes.topology import Division, Domains
from gpu_scheduler.core.products import means, spelt
from gpu_scheduler.core.queue.pod_group import GroupRequest, RequestKey

MOST_KNOWN = 10_000  # signatures remembered


class Possible:
    """Refusals of gangs, by signature."""

    def __init__(self, snapshot: Snapshot, domains: Domains) -> None:
        self._snapshot = snapshot
        self._domains = domains
        nodes = snapshot.cluster.nodes
        self._all = Division("", ("",), np.zeros(len(nodes), dtype=np.int64))
        self._has = {
            "CPU": np.array([node.cpu_milli for node in nodes], dtype=np.int64),
            "memory": np.array([node.memory_bytes for node in nodes], dtype=np.int64),
            "pod slots": np.array([node.pods for node in nodes], dtype=np.int64),
        }
        for name in {name for node in nodes for name, _ in node.scalars}:
            self._has[name] = np.array([node.amount(name) for node in nodes], dtype=np.int64)
        self._slots: dict[tuple[PodRequest, bool], Ints] = {}
        self._known: dict[RequestKey, str] = {}

    def refusal(self, needs: GroupRequest, allowed: Iterable[int] | None = None) -> str:
        """Why no domain can ever hold the gang; empty when one may.

        ``allowed``: the only domains that come into question; None = all.
        """
        known = self._known.get(needs.request_key)
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = self._known[needs.request_key] = self._refusal(needs, allowed)
        return known

    def kept_apart(self, needs: GroupRequest, allowed: Iterable[int] | None = None) -> bool:
        """Of a gang that is refused: whether it is for no two members sharing a GPU."""
        return needs.gang.distinct and not self._refusal(needs, allowed, distinct=False)

    def _refusal(
        self, needs: GroupRequest, allowed: Iterable[int] | None, *, distinct: bool | None = None
    ) -> str:
        """``distinct``: None: as the gang says."""
        apart = needs.gang.distinct if distinct is None else distinct
        topology = needs.topology
        if topology is None:
            lack = self._lack(needs, self._all, 0, apart)
            return f"the gang can never start: the cluster {lack}" if lack else ""
        division = self._domains.by(topology.key)
        if not division.names:
            alike = self._domains.alike(topology.key)
            meant = f"; labels that look alike: {wording.names(alike)}" if alike else ""
            return f"no node has the label {topology.key}, which the topology asks for{meant}"
        lacks = []
        for domain in sorted(allowed) if allowed is not None else range(len(division.names)):
            lack = self._lack(needs, division, domain, apart)
            if not lack:
                return ""
            lacks.append(f"{division.word} {division.names[domain]} {lack}")
        return f"no {division.word} can ever hold the gang: {wording.names(lacks, '; ')}"

    def _lack(self, needs: GroupRequest, division: Division, domain: int, apart: bool) -> str:
        """What a domain lacks; empty when nothing."""
        mask: Flags = division.of_node == domain
        lacks = []
        for pod_request, count in needs.counts.items():
            holds = int(self._slots_of(pod_request, apart)[mask].sum())
            if holds < count:
                lacks.append(self._words(pod_request, count, holds, mask))
        if lacks:
            return " and ".join(dict.fromkeys(lacks))
        return self._whole(needs, mask) or self._beside(needs, mask)

    def _words(self, pod_request: PodRequest, count: int, holds: int, mask: Flags) -> str:
        pod_shape, snapshot = pod_request.pod_shape, self._snapshot
        if pod_shape.models:
            accepting = np.array(
                [
                    any(accepts(pod_shape, device) for device in shape)
                    for shape in snapshot.node_shapes
                ],
                dtype=np.bool_,
            )
            if not accepting[np.array(snapshot.node_shape, dtype=np.int64)[mask]].any():
                return f"has no {' or '.join(self._spelt(model) for model in pod_shape.models)}"
        pods = "pod" if count == 1 else "pods"
        what = f"{count} {pods} that need{'s' if count == 1 else ''} {wording.needs(pod_shape)}"
        if pod_shape.cpu_milli:
            what += f" and {wording.cpu(pod_shape.cpu_milli)} CPU"
        for name, amount in pod_shape.scalars:
            what += f" and {wording.scalar(name, amount)} {name}"
        return f"holds {holds} of the {what}" if holds else f"holds none of the {what}"

    def _spelt(self, model: str) -> str:
        """A model as the product names in the cluster spell it."""
        for shape in self._snapshot.node_shapes:
            for device in shape:
                if means(model, device.model):
                    return spelt(model, device.model)
        return model

    def _whole(self, needs: GroupRequest, mask: Flags) -> str:
        """Pods that need at least so many whole GPUs, against nodes with as many."""
        asks = [
            (_whole_gpus(pod_request), pod_request, n) for pod_request, n in needs.counts.items()
        ]
        for least in sorted({gpus for gpus, _, _ in asks if gpus}, reverse=True):
            some = [(pod_request, n) for gpus, pod_request, n in asks if gpus >= least]
            most = np.zeros(len(self._snapshot.node_shapes), dtype=np.int64)
            for shape in range(len(most)):
                devices = {
                    o for pod_request, _ in some for o in pod_request.chooser.eligible(shape)
                }
                most[shape] = len(devices) // least
            could = np.zeros(len(mask), dtype=np.bool_)
            for pod_request, _ in some:
                could[pod_request.could] = True
            shapes = np.array(self._snapshot.node_shape, dtype=np.int64)[mask & could]
            holds, count = int(most[shapes].sum()), sum(n for _, n in some)
            if holds < count:
                each = f"{wording.gpu_count(least)}{'' if len(some) == 1 else ' or more'}"
                return f"holds {holds} of the {count} pods that need {each} each"
        return ""

    def _beside(self, needs: GroupRequest, mask: Flags) -> str:
        could = np.zeros(len(mask), dtype=np.bool_)
        wants = {"CPU": 0, "memory": 0, "pod slots": 0}
        for pod_request, count in needs.counts.items():
            could[pod_request.could] = True
            wants["CPU"] += count * pod_request.pod_shape.cpu_milli
            wants["memory"] += count * pod_request.pod_shape.memory_bytes
            wants["pod slots"] += count
            for name, amount in pod_request.pod_shape.scalars:
                wants[name] = wants.get(name, 0) + count * amount
        words: dict[str, Callable[[int], str]] = {
            "CPU": wording.cpu,
            "memory": wording.memory,
            "pod slots": str,
        }
        for what, want in wants.items():
            has = int(self._has[what][mask & could].sum())
            if has < want:
                said = words.get(what, partial(wording.scalar, what))
                return f"has {said(has)} {what} in all of the {said(want)} needed"
        return ""

    def _slots_of(self, pod_request: PodRequest, distinct: bool) -> Ints:
        """[nodes] How many pods of a pod request an empty node holds, at most."""
        key = pod_request, distinct
        slots = self._slots.get(key)
        if slots is None:
            slots = self._slots[key] = self._count(pod_request, distinct)
        return slots

    def _count(self, pod_request: PodRequest, distinct: bool) -> Ints:
        pod_shape, snapshot = pod_request.pod_shape, self._snapshot
        found = np.zeros(len(snapshot.node_shape), dtype=np.int64)
        at = np.array(pod_request.could, dtype=np.int64)
        if not len(at):
            return found
        slots = self._has["pod slots"][at]
        if pod_shape.cpu_milli:
            slots = np.minimum(slots, self._has["CPU"][at] // pod_shape.cpu_milli)
        if pod_shape.memory_bytes:
            slots = np.minimum(slots, self._has["memory"][at] // pod_shape.memory_bytes)
        for name, amount in pod_shape.scalars:  # nodes that could hold one have it
            slots = np.minimum(slots, self._has[name][at] // amount)
        if pod_shape.devices:
            by_shape = [
                _most_pods(pod_request, shape, distinct)
                for shape in range(len(snapshot.node_shapes))
            ]
            shapes = np.array(snapshot.node_shape, dtype=np.int64)[at]
            slots = np.minimum(slots, np.array(by_shape, dtype=np.int64)[shapes])
        found[at] = slots
        return found


def _most_pods(pod_request: PodRequest, shape: int, distinct: bool) -> int:
    """How many pods the devices of an empty node of a kind hold, at most."""
    devices = len(pod_request.chooser.eligible(shape))
    requests = pod_request.pod_shape.devices
    if distinct:
        return devices // max(request.count for request in requests)
    sizes = _sizes(pod_request, shape)
    if len(requests) > 1 and sizes:
        least = max(1, pod_request.pod_shape.nominal_milli)
        mib = sum(r.count * min(share(r, usable)[1] for usable in sizes) for r in requests)
        return min(devices * DEVICE_MILLI // least, sum(sizes) // max(1, mib))
    request = requests[0]
    most = (u // request.mib if request.mib else DEVICE_MILLI // request.milli for u in sizes)
    return sum(most) // request.count


def _sizes(pod_request: PodRequest, shape: int) -> list[int]:
    devices = pod_request.chooser.devices(shape)
    return [devices[offset].usable_mib for offset in pod_request.chooser.eligible(shape)]


def _whole_gpus(pod_request: PodRequest) -> int:
    return sum(r.count for r in pod_request.pod_shape.devices if r.milli == DEVICE_MILLI)
