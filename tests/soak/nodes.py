"""The nodes of a soak: half of them with an agent that is played here, half with labels alone.

Plays what operators and hardware do to nodes: cordons, taints, less allocatable than is in use, a
Node deleted and registered again, a GPUNode deleted, emptied, with a sick or another card. A node's
GPUs are cards with names of their own, so whoever checks knows which was meant.
"""

import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.api.tenant import GROUP
from tests.soak.site import Site

from cluster import fake_nodes

GPUS = 8
CARD_MIB = 81920
NODES = 6
WITH_AGENT = 3
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/gpu-scheduler/leases"
_MODEL = "NVIDIA-A100-SXM4-80GB"


class Nodes:
    """Every node, the cards in it, and its agent."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._lock = threading.Lock()
        self.objects = {str(n["metadata"]["name"]): n for n in fake_nodes(NODES, gpus=GPUS)}
        self.names = sorted(self.objects)
        self.with_agent = self.names[:WITH_AGENT]
        self._cards = {name: [f"GPU-{name}-{i}-0" for i in range(GPUS)] for name in self.names}
        self._sick: dict[str, int] = {}
        self._silent_until: dict[str, float] = {}
        self._ahead: dict[str, float] = {}  # of a node's clock, seconds
        self._replaced = 0
        self._dice = site.dice("nodes")

    def card(self, node: str, device: str) -> str:
        """The card that a device name stands for now."""
        with self._lock:
            cards = self._cards.get(node, [])
            if device.isdecimal() and int(device) < len(cards):
                return cards[int(device)]
        return device

    def create(self) -> None:
        """Register all nodes."""
        self._site.running.add_nodes(self.objects.values())

    def beat(self) -> None:
        """What agents do every few seconds: their Lease, and the GPUNode as it should be."""
        for name in self.with_agent:
            if self._silent_until.get(name, 0.0) < time.monotonic():
                self._report(name)
        self._site.rest(2.0)

    def _report(self, name: str) -> None:
        admin = self._site.admin
        with self._lock:
            cards, sick = list(self._cards[name]), self._sick.get(name)
        devices = [
            {
                "uuid": card,
                "index": i,
                "model": _MODEL,
                "memoryMiB": CARD_MIB,
                "usableMiB": CARD_MIB,
                "computeCapability": "8.0",
                "healthy": i != sick,
                **({"message": "XID 79: fell off the bus"} if i == sick else {}),
            }
            for i, card in enumerate(cards)
        ]
        status = {"isolation": "framework", "devices": devices, "containers": []}
        path = f"{GROUP}/gpunodes/{name}"
        answer = admin.patch(f"{path}/status", {"status": status})
        if answer.status == 404:
            node = admin.get(f"/api/v1/nodes/{name}")
            if not node.ok:
                return
            body: dict[str, Any] = {
                "apiVersion": "gpu-scheduler.io/v1alpha1",
                "kind": "GPUNode",
                "metadata": {"name": name, "ownerReferences": [_reference(name, node.body)]},
            }
            admin.create(f"{GROUP}/gpunodes", body)
            admin.patch(f"{path}/status", {"status": status})
        at = datetime.now(UTC) + timedelta(seconds=self._ahead.get(name, 0.0))
        spec = {
            "holderIdentity": name,
            "leaseDurationSeconds": 40,
            "renewTime": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        lease = f"{_LEASES}/gpu-node-{name}"
        if admin.patch(lease, {"spec": spec}).status == 404:
            labels = {"gpu-scheduler.io/component": "agent"}
            meta = {"name": f"gpu-node-{name}", "labels": labels}
            admin.create(
                _LEASES,
                {
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": meta,
                    "spec": spec,
                },
            )

    def trouble(self) -> None:
        """Something happens to a node, and later it is well again."""
        dice = self._dice
        name = dice.choice(self.names)
        kinds = [self._cordon, self._taint, self._shrink, self._leave, self._silent_kubelet]
        if name in self.with_agent:
            kinds += [self._lose, self._empty, self._sicken, self._replace, self._hush] * 2
            kinds += [self._set_clock]
        kind = dice.choice(kinds)
        self._site.count(f"node {kind.__name__.strip('_')}")
        kind(name, dice.uniform(2, 20))
        self._site.rest(dice.uniform(1, 8))

    def heal(self) -> None:
        """All nodes as they were."""
        self._sick.clear()
        self._ahead.clear()
        self._silent_until.clear()
        for name in self.names:
            if not self._site.admin.get(f"/api/v1/nodes/{name}").ok:
                self._site.running.add_nodes([self.objects[name]])
            self._patch(name, {"spec": {"unschedulable": None, "taints": None}})
            self._annotate(name, None)
            self._allocatable(name, "128")

    def _cordon(self, name: str, seconds: float) -> None:
        self._patch(name, {"spec": {"unschedulable": True}})
        self._site.rest(seconds)
        self._patch(name, {"spec": {"unschedulable": None}})

    def _taint(self, name: str, seconds: float) -> None:
        taint = {"key": "soak/taint", "value": "x", "effect": "NoSchedule"}
        self._patch(name, {"spec": {"taints": [taint]}})
        self._site.rest(seconds)
        self._patch(name, {"spec": {"taints": None}})

    def _shrink(self, name: str, seconds: float) -> None:
        """Less CPU than its pods ask for."""
        self._allocatable(name, "1m")
        self._site.rest(seconds)
        self._allocatable(name, "128")

    def _leave(self, name: str, seconds: float) -> None:
        """The Node goes, its pods live on for a while, and it comes again."""
        self._site.admin.send("DELETE", f"/api/v1/nodes/{name}")
        self._site.rest(min(seconds, 10))
        self._site.running.add_nodes([self.objects[name]])

    def _silent_kubelet(self, name: str, seconds: float) -> None:
        self._annotate(name, "true")
        conditions = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
        self._site.admin.send(
            "PATCH",
            f"/api/v1/nodes/{name}/status",
            {"status": {"conditions": conditions}},
            "application/strategic-merge-patch+json",
        )
        self._site.rest(seconds)
        self._annotate(name, None)

    def _lose(self, name: str, seconds: float) -> None:
        """The GPUNode is deleted, and its agent needs a while to write it again."""
        self._silent_until[name] = time.monotonic() + seconds
        self._site.admin.send("DELETE", f"{GROUP}/gpunodes/{name}")

    def _empty(self, name: str, seconds: float) -> None:
        """The GPUNode's status is gone."""
        self._silent_until[name] = time.monotonic() + seconds
        self._site.admin.patch(f"{GROUP}/gpunodes/{name}/status", {"status": {"devices": None}})

    def _sicken(self, name: str, seconds: float) -> None:
        self._sick[name] = self._dice.randrange(GPUS)
        self._site.rest(seconds)
        self._sick.pop(name, None)

    def _replace(self, name: str, seconds: float) -> None:
        """A card is replaced while pods live on: its index stays, its UUID does not."""
        del seconds
        self._replaced += 1
        index = self._dice.randrange(GPUS)
        with self._lock:
            self._cards[name][index] = f"GPU-{name}-{index}-{self._replaced}"

    def _hush(self, name: str, seconds: float) -> None:
        """The agent is not heard of."""
        self._silent_until[name] = time.monotonic() + 3 * seconds

    def _set_clock(self, name: str, seconds: float) -> None:
        """The wall clock of the node is set, either way."""
        self._ahead[name] = self._dice.choice((61.0, 3600.0, -61.0, -3600.0))
        self._site.rest(seconds)
        self._ahead.pop(name, None)

    def _patch(self, name: str, body: dict[str, Any]) -> None:
        self._site.admin.patch(f"/api/v1/nodes/{name}", body)

    def _annotate(self, name: str, silent: str | None) -> None:
        annotations = {"kwok.x-k8s.io/silent": silent}
        self._patch(name, {"metadata": {"annotations": annotations}})

    def _allocatable(self, name: str, cpu: str) -> None:
        body = {"status": {"allocatable": {"cpu": cpu}}}
        self._site.admin.patch(f"/api/v1/nodes/{name}/status", body)


def _reference(name: str, node: Mapping[str, Any]) -> dict[str, str]:
    return {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
