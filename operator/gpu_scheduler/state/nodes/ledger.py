"""Who holds what: charges per pod, kept in the planner's flat arrays as they come and go.

A charge is what one pod takes from its node and devices until it has ended. Charges outlive the
nodes they name: when a node or its devices change, the arrays are laid out again from the charges.
Invariants: the arrays equal capacity minus the sum of the charges, whatever the order of events;
and a node of which somebody holds what the arrays cannot say takes no pods.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gpu_scheduler.core.model import wording
from gpu_scheduler.core.model.cluster import Cluster, NodeInfo
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.core.model.resources import NodeResources
from gpu_scheduler.core.model.units import DEVICE_MILLI, gpu_from_milli
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.nodes.devices import NodeDevice, ids_by_name
from gpu_scheduler.state.pods.pod import PodRecord, Stage
from gpu_scheduler.state.pods.pod_shape import pod_resources

Holding = tuple[str, str, int]  # namespace/name of a pod, device, milli


@dataclass(frozen=True, slots=True)
class Charge:
    """What a pod holds: of its node, beside GPUs, and of devices.

    ``plugin``: resources that it asks of the device plugin; which devices that are is not known.
    ``claimed``: it has some by a claim of kube-scheduler's, whatever the node's plugin serves.
    """

    node: str
    namespace: str
    resources: NodeResources
    devices: tuple[DeviceAllocation, ...] = ()
    pod: str = ""  # its name
    plugin: tuple[str, ...] = ()
    claimed: bool = False

    @property
    def milli(self) -> int:
        """Milli-GPU held."""
        return sum(g.milli for g in self.devices)


class Ledger:
    """Nodes, devices and charges. Changes are O(1) but for those of a node's devices."""

    def __init__(self) -> None:
        """Start empty."""
        self.charges: dict[PodUID, Charge] = {}
        self.held_milli: dict[str, int] = {}  # per namespace
        self.held_by_model: Counter[tuple[str, str]] = Counter()  # per namespace and product
        self._nodes: dict[str, tuple[NodeInfo, tuple[NodeDevice, ...], frozenset[str]]] = {}
        self._ids: dict[
            str, Mapping[str, str]
        ] = {}  # node -> devices by what allocations call them
        self._unlisted: dict[str, Counter[str]] = {}
        self._cluster = Cluster()
        self._node_at: dict[str, int] = {}
        self._device_at: dict[tuple[str, str], int] = {}
        self._stale = False

    @property
    def cluster(self) -> Cluster:
        """The arrays, laid out again if nodes changed since the last call."""
        if self._stale:
            self._lay_out()
        return self._cluster

    @property
    def unlisted(self) -> Mapping[str, Mapping[str, int]]:
        """Milli-GPU held on devices that their node does not list, by node and device."""
        _ = self.cluster
        return self._unlisted

    def number_of(self, name: str) -> int | None:
        """Of a node in ``cluster``; None where it is not there."""
        _ = self.cluster
        return self._node_at.get(name)

    def has_node(self, name: str) -> bool:
        """Whether the node exists."""
        return name in self._nodes

    def node(self, name: str) -> tuple[NodeInfo, tuple[NodeDevice, ...]] | None:
        """A node and its devices as last seen; None when it is not there."""
        known = self._nodes.get(name)
        return known[:2] if known is not None else None

    def resolved(
        self, node: str, devices: Iterable[DeviceAllocation]
    ) -> tuple[DeviceAllocation, ...]:
        """The devices, each under the id that it has now, index or UUID."""
        ids = self._ids.get(node, {})
        known = ((allocated, ids.get(allocated.device, allocated.device)) for allocated in devices)
        return tuple(g if g.device == id_ else replace(g, device=id_) for g, id_ in known)

    def held(self, uid: PodUID) -> Charge | None:
        """What a pod holds, with each device under the id that it has now."""
        charge = self.charges.get(uid)
        if charge is None or not charge.devices:
            return charge
        devices = self.resolved(charge.node, charge.devices)
        return charge if devices == charge.devices else replace(charge, devices=devices)

    def charge_pod(self, uid: PodUID, charge: Charge) -> bool:
        """Record what a pod holds, in place of what it held before; False when nothing changed."""
        before = self.charges.get(uid)
        if before == charge:
            return False
        if before is not None:
            self._count(before, -1)
        self.charges[uid] = charge
        self._count(charge, +1)
        return True

    def release_pod(self, uid: PodUID) -> bool:
        """Forget what a pod held; False when it held nothing."""
        charge = self.charges.pop(uid, None)
        if charge is None:
            return False
        self._count(charge, -1)
        return True

    def has_room(self, node: str, need: NodeResources, devices: Iterable[DeviceAllocation]) -> bool:
        """Whether that is free; ``need``: beside GPUs."""
        c, n = self.cluster, self._node_at.get(node)
        if n is None or c.free_pods[n] < 1:
            return False
        free = c.free_cpu_milli[n], c.free_memory_bytes[n], c.free_ephemeral_bytes[n]
        wanted = need.cpu_milli, need.memory_bytes, need.ephemeral_bytes
        if any(each > max(0, there) for each, there in zip(wanted, free, strict=True)):
            return False
        for name, amount in need.scalars:
            if name not in c.free_scalars or amount > c.free_scalars[name][n]:
                return False
        milli: Counter[int] = Counter()
        mib: Counter[int] = Counter()
        for allocated in self.resolved(node, devices):
            d = self._device_at.get((node, allocated.device))
            if d is None or not c.dev_healthy[d]:
                return False
            milli[d] += allocated.fraction_milli
            mib[d] += allocated.mib
        return all(milli[d] <= c.unheld_milli(d) and mib[d] <= c.free_mib[d] for d in milli)

    def set_node(
        self, info: NodeInfo, devices: tuple[NodeDevice, ...], plugin: frozenset[str] = frozenset()
    ) -> bool:
        """Add a node or take over what changed of it; False when nothing did.

        ``plugin``: resources that the device plugin serves there.
        """
        if self._nodes.get(info.name) == (info, devices, plugin):
            return False
        self._nodes[info.name] = (info, devices, plugin)
        self._ids[info.name] = ids_by_name(devices)
        self._stale = True
        return True

    def drop_node(self, name: str) -> bool:
        """Forget a node; charges on it stay until their pods are gone."""
        if self._nodes.pop(name, None) is None:
            return False
        del self._ids[name]
        self._stale = True
        return True

    def _count(self, charge: Charge, sign: int) -> None:
        held = self.held_milli.get(charge.namespace, 0) + sign * charge.milli
        if held:
            self.held_milli[charge.namespace] = held
        else:
            self.held_milli.pop(charge.namespace, None)
        if not self._stale:
            self._stale = self._apply(charge, sign)

    def _apply(self, charge: Charge, sign: int) -> bool:
        """Whether it holds something that the arrays cannot say."""
        n = self._node_at.get(charge.node)
        if n is None:
            return bool(charge.devices)
        c, ids = self._cluster, self._ids[charge.node]
        held = charge.resources
        c.free_cpu_milli[n] -= sign * held.cpu_milli
        c.free_memory_bytes[n] -= sign * held.memory_bytes
        c.free_ephemeral_bytes[n] -= sign * held.ephemeral_bytes
        c.free_pods[n] -= sign
        for scalar, amount in held.scalars:
            if scalar in c.free_scalars:
                c.free_scalars[scalar][n] -= sign * amount
        beyond = self._holds_of_plugin(charge)
        for allocated in charge.devices:
            d = self._device_at.get((charge.node, ids.get(allocated.device, "")))
            if d is None:
                beyond = True
            else:
                c.free_device(d, -sign * allocated.fraction_milli, -sign * allocated.mib)
                self.held_by_model[charge.namespace, c.dev_model[d]] += sign * allocated.milli
        return beyond

    def _lay_out(self) -> None:
        c = Cluster()
        self._node_at = {}
        self._device_at = {}
        for name in sorted(self._nodes):
            info, devices, _ = self._nodes[name]
            self._node_at[name] = len(c.nodes)
            c.add_empty(info)
            for device in devices:
                at = len(c.dev_id)
                self._device_at[name, device.id] = at
                c.dev_id.append(device.id)
                c.dev_model.append(device.model)
                c.dev_usable_mib.append(device.usable_mib)
                c.dev_compute.append(device.compute)
                trouble = device.trouble
                c.dev_healthy.append(not trouble)
                if trouble:
                    c.dev_trouble[at] = trouble
                c.free_milli.append(DEVICE_MILLI)
                c.free_mib.append(device.usable_mib)
            c.first.append(len(c.dev_id))
        self._cluster = c
        self._stale = False
        self.held_by_model.clear()
        self._close([c for c in self.charges.values() if self._apply(c, +1)])

    def _close(self, beyond: Iterable[Charge]) -> None:
        """Close the nodes of charges that hold what the arrays cannot say."""
        strangers: dict[str, list[str]] = {}
        lost: dict[str, list[Holding]] = {}
        self._unlisted = {}
        for charge in beyond:
            pod = f"{charge.namespace}/{charge.pod}"
            if self._holds_of_plugin(charge):
                strangers.setdefault(charge.node, []).append(pod)
            for allocated in self._lost(charge):
                lost.setdefault(charge.node, []).append((pod, allocated.device, allocated.milli))
                by_device = self._unlisted.setdefault(charge.node, Counter())
                by_device[allocated.device] += allocated.milli
                models = {device.model for device in self._devices(charge.node)}
                if len(models) == 1:  # as on most nodes; its project holds one all the same
                    self.held_by_model[charge.namespace, models.pop()] += allocated.milli
        for name in strangers.keys() | lost.keys():
            n = self._node_at.get(name)
            if n is None:
                continue
            info = self._cluster.nodes[n]
            why = _why_unschedulable(
                strangers.get(name, ()), lost.get(name, ()), len(self._devices(name))
            )
            self._cluster.nodes[n] = replace(
                info, unschedulable=info.unschedulable or why, foreign=True
            )

    def _devices(self, node: str) -> tuple[NodeDevice, ...]:
        return self._nodes[node][1] if node in self._nodes else ()

    def _holds_of_plugin(self, charge: Charge) -> bool:
        if not charge.plugin or charge.node not in self._nodes:
            return False
        return charge.claimed or not self._nodes[charge.node][2].isdisjoint(charge.plugin)

    def _lost(self, charge: Charge) -> Iterator[DeviceAllocation]:
        """Those of its devices that the node does not list."""
        ids = self._ids.get(charge.node, {})
        return (allocated for allocated in charge.devices if allocated.device not in ids)


def charge(ledger: Ledger, new: PodRecord, pod: Pod) -> bool:
    """Record what a pod holds now; True when that is not what it held before.

    A pod holds what its allocation says, or gets from the device plugin, from its node on until it
    has ended; so one that the kubelet rejected holds nothing.
    """
    if new.stage is Stage.ENDED:
        return ledger.release_pod(new.uid)
    if not new.node:
        return False
    devices = new.allocation.devices if new.allocation else ()
    need, plugin = pod_resources(pod), new.plugin
    held = Charge(new.node, new.namespace, need, devices, new.name, plugin, new.claimed)
    return ledger.charge_pod(new.uid, held)


def _why_unschedulable(strangers: Sequence[str], lost: Sequence[Holding], listed: int) -> str:
    """Why a node takes no pods of which somebody holds GPUs, and it is not known which.

    Either a pod has them from the device plugin, or a pod of ours holds a device that its node does
    not list: its GPUNode is gone, a card was replaced, a label has changed. What is free there is
    then a guess, and nobody is placed on a guess. The sentence is to follow the node's name.

    Args:
        strangers: pods with GPUs of the device plugin.
        lost: what pods hold of devices that the node does not list.
        listed: how many devices it does list.
    """
    if strangers:
        return f"has GPUs in use by {min(strangers)}, which this scheduler did not place"
    pods = len({pod for pod, _, _ in lost})
    held = [f"{pod} holds {gpu_from_milli(m)} of {_device(d)}" for pod, d, m in sorted(lost)]
    return (
        f"lists {wording.gpu_count(listed)}, but not those of {wording.pods(pods)} "
        f"({wording.names(held)}), and takes no others until its GPUNode or its labels list them "
        "again or these pods are gone"
    )


def _device(name: str) -> str:
    return f"GPU {name}" if name.isdecimal() else name
