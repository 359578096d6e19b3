"""Who holds what: charges per pod, kept in the planner's flat arrays as they come and go.

A charge is what one pod takes from its node and devices until it has ended. Charges outlive the
nodes they name: when a node or its devices change, the arrays are laid out again from the charges.
Invariant: the arrays equal capacity minus the sum of the charges, whatever the order of events.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from gpu_scheduler.core.cluster import Cluster, NodeInfo
from gpu_scheduler.core.decision import Grant
from gpu_scheduler.core.request import PodUID
from gpu_scheduler.core.units import DEVICE_MILLI
from gpu_scheduler.state.devices import Device


@dataclass(frozen=True, slots=True)
class Charge:
    """What a pod holds: on its node in milli-CPU and bytes, on devices by grants."""

    node: str
    namespace: str
    cpu_milli: int
    memory_bytes: int
    ephemeral_bytes: int
    grants: tuple[Grant, ...] = ()

    @property
    def milli(self) -> int:
        """Milli-GPU held."""
        return sum(g.milli for g in self.grants)


class Ledger:
    """Nodes, devices and charges. Changes are O(1) but for those of a node's devices."""

    def __init__(self) -> None:
        """Start empty."""
        self.charges: dict[PodUID, Charge] = {}
        self.held_milli: dict[str, int] = {}  # per namespace
        self.held_by_model: Counter[tuple[str, str]] = Counter()  # per namespace and product
        self._nodes: dict[str, tuple[NodeInfo, tuple[Device, ...]]] = {}
        self._foreign: dict[str, dict[PodUID, str]] = {}  # node -> holders of unknown GPUs
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

    def has_node(self, name: str) -> bool:
        """Whether the node exists."""
        return name in self._nodes

    def resolved(self, node: str, grants: Iterable[Grant]) -> tuple[Grant, ...]:
        """The grants with each device under the id that it has now, index or UUID."""
        cluster = self.cluster
        at = ((grant, self._device_at.get((node, grant.device))) for grant in grants)
        return tuple(g if d is None else replace(g, device=cluster.dev_id[d]) for g, d in at)

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

    def set_foreign(self, uid: PodUID, node: str, label: str | None) -> bool:
        """Note that a pod that is not ours holds GPUs of a node (``label`` None: no longer)."""
        held = self._foreign.setdefault(node, {})
        if label is None:
            changed = held.pop(uid, None) is not None
            if not held:
                del self._foreign[node]
        else:
            changed = held.get(uid) != label
            held[uid] = label
        if changed:
            self._stale = True
        return changed

    def set_node(self, info: NodeInfo, devices: tuple[Device, ...]) -> bool:
        """Add a node or take over what changed of it; False when nothing did."""
        if self._nodes.get(info.name) == (info, devices):
            return False
        self._nodes[info.name] = (info, devices)
        self._stale = True
        return True

    def drop_node(self, name: str) -> bool:
        """Forget a node; charges on it stay until their pods are gone."""
        if self._nodes.pop(name, None) is None:
            return False
        self._stale = True
        return True

    def _count(self, charge: Charge, sign: int) -> None:
        held = self.held_milli.get(charge.namespace, 0) + sign * charge.milli
        if held:
            self.held_milli[charge.namespace] = held
        else:
            self.held_milli.pop(charge.namespace, None)
        if not self._stale:
            self._apply(charge, sign)

    def _apply(self, charge: Charge, sign: int) -> None:
        n = self._node_at.get(charge.node)
        if n is None:
            return
        c = self._cluster
        c.free_cpu_milli[n] -= sign * charge.cpu_milli
        c.free_memory_bytes[n] -= sign * charge.memory_bytes
        c.free_ephemeral_bytes[n] -= sign * charge.ephemeral_bytes
        c.free_pods[n] -= sign
        for grant in charge.grants:
            d = self._device_at.get((charge.node, grant.device))
            if d is not None:
                c.free_milli[d] -= sign * grant.milli
                c.free_mib[d] -= sign * grant.mib
                self.held_by_model[charge.namespace, c.dev_model[d]] += sign * grant.milli

    def _lay_out(self) -> None:
        c = Cluster()
        self._node_at, self._device_at = {}, {}
        for name in sorted(self._nodes):
            info, devices = self._nodes[name]
            foreign = self._foreign.get(name)
            if foreign and not info.closed:
                holder = min(foreign.values())
                closed = f"has GPUs in use by {holder}, which is not a GPUJob's"
                info = replace(info, closed=closed, foreign=True)
            self._node_at[name] = len(c.nodes)
            c.nodes.append(info)
            c.free_cpu_milli.append(info.cpu_milli)
            c.free_memory_bytes.append(info.memory_bytes)
            c.free_ephemeral_bytes.append(info.ephemeral_bytes)
            c.free_pods.append(info.pods)
            for device in devices:
                at = len(c.dev_id)
                self._device_at[name, device.id] = at
                self._device_at[name, str(device.index)] = at
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
        self._cluster, self._stale = c, False
        self.held_by_model.clear()
        for charge in self.charges.values():
            self._apply(charge, +1)
