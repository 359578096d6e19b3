"""What really happened, seen on the pod watch by code that shares nothing with the operator.

At each event of the watch: how much of every physical GPU is promised to pods that have not ended.
A GPU is a node and the card in it: an allocation may name it by its index or by its UUID, and a
card that was replaced is another one.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.soak.site import Site
from tests.soak.watch import Watch

ANNOTATION = "gpu-scheduler.io/allocation"
FULL_MILLI = 1000
Card = str  # a UUID
Cards = Callable[[str, str], Card]
"""The card that a node's device name stands for now."""


@dataclass(slots=True)
class Pod:
    """What is remembered of a pod."""

    namespace: str
    name: str
    job: str
    phase: str
    deleting: bool
    made_by: str = ""
    """The uid of the Job that has it."""
    holds: dict[Card, tuple[int, int]] = field(default_factory=dict)  # milli, MiB
    announced: bool = False  # that it has to go, on the pod itself


@dataclass(slots=True)
class Above:
    """A card that was promised more than it has."""

    card: Card
    milli: int
    mib: int
    pods: list[str]


@dataclass(frozen=True, slots=True)
class Torn:
    """A pod with a place that is deleted, though nobody has said on it that it has to go."""

    at: float  # epoch seconds
    namespace: str
    job: str
    name: str


def owner_uid(meta: Mapping[str, Any], kind: str) -> str:
    """The uid of the one of this kind that an object belongs to; empty: of none."""
    owners = meta.get("ownerReferences") or ()
    return next((str(o["uid"]) for o in owners if o.get("controller") and o["kind"] == kind), "")


class Checker:
    """Follows all pods; an error in it ends the soak as failed."""

    def __init__(self, site: Site, cards: Cards, card_mib: int) -> None:
        self._cards, self._card_mib = cards, card_mib
        self.pods: dict[str, Pod] = {}
        self.above: list[Above] = []
        self.torn: list[Torn] = []
        self.peak_milli = self.peak_mib = 0
        self.placements = 0
        self.lock = threading.Lock()
        self._milli: Counter[Card] = Counter()
        self._mib: Counter[Card] = Counter()
        self._is_above: set[Card] = set()
        self.watch = Watch(site, "/api/v1/pods", self._see, self._gone)

    def live(self) -> Mapping[tuple[str, str], list[Pod]]:
        """Pods that have not ended, by namespace and GPUJob."""
        found: dict[tuple[str, str], list[Pod]] = {}
        with self.lock:
            for pod in self.pods.values():
                if pod.job and pod.phase not in ("Succeeded", "Failed"):
                    found.setdefault((pod.namespace, pod.job), []).append(pod)
        return found

    def held_milli(self) -> int:
        """What is promised in all."""
        with self.lock:
            return self._milli.total()

    def _gone(self, meta: Mapping[str, Any]) -> None:
        with self.lock:
            self._take(meta["uid"], None)

    def _see(self, pod: Mapping[str, Any]) -> None:
        meta, phase = pod["metadata"], pod.get("status", {}).get("phase", "")
        known = self.pods.get(meta["uid"])
        holds: dict[Card, tuple[int, int]] = {}
        text = (meta.get("annotations") or {}).get(ANNOTATION)
        if text and phase not in ("Succeeded", "Failed"):
            # A card is what it was when the pod was placed, whatever is in the node later.
            holds = known.holds if known is not None and known.holds else self._read(text)
        new = Pod(
            namespace=meta["namespace"],
            name=meta["name"],
            job=(meta.get("labels") or {}).get("gpu-scheduler.io/job", ""),
            phase=phase,
            deleting="deletionTimestamp" in meta,
            made_by=owner_uid(meta, "Job"),
            holds=holds,
            announced=any(
                c["type"] == "DisruptionTarget" and c["status"] == "True"
                for c in pod.get("status", {}).get("conditions") or ()
            ),
        )
        if known is not None and new.deleting and not known.deleting:
            if new.job and known.holds and new.holds and not new.announced:
                self.torn.append(Torn(time.time(), new.namespace, new.job, new.name))
        with self.lock:
            if holds and (known is None or not known.holds):
                self.placements += 1
            self._take(meta["uid"], new)

    def _read(self, text: str) -> dict[Card, tuple[int, int]]:
        found = json.loads(text)
        holds: dict[Card, tuple[int, int]] = {}
        for devices in found["c"].values():
            for device, (milli, mib, *by_memory) in devices.items():
                card = self._cards(found["n"], device)
                before = holds.get(card, (0, 0))
                holds[card] = (before[0] + (0 if by_memory else milli), before[1] + mib)
        return holds

    def _take(self, uid: str, new: Pod | None) -> None:
        old = self.pods.pop(uid, None)
        touched: set[Card] = set()
        for sign, pod in ((-1, old), (1, new)):
            for card, (milli, mib) in (pod.holds if pod is not None else {}).items():
                self._milli[card] += sign * milli
                self._mib[card] += sign * mib
                touched.add(card)
        if new is not None:
            self.pods[uid] = new
        for card in touched:
            milli, mib = self._milli[card], self._mib[card]
            self.peak_milli, self.peak_mib = max(self.peak_milli, milli), max(self.peak_mib, mib)
            if milli > FULL_MILLI or mib > self._card_mib:
                if card not in self._is_above:
                    self._is_above.add(card)
                    pods = [
                        f"{p.namespace}/{p.name}" for p in self.pods.values() if card in p.holds
                    ]
                    self.above.append(Above(card, milli, mib, pods))
            else:
                self._is_above.discard(card)
