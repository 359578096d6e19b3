"""What really happened, seen on the pod watch by code that shares nothing with the operator.

At each event of the watch: how much of every physical GPU is promised to pods that have not ended.
A GPU is a node and the card in it: an allocation may name it by its index or by its UUID, and a
card that was replaced is another one.
"""

import json
import ssl
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.soak.site import AWAY, Site

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
    holds: dict[Card, tuple[int, int]] = field(default_factory=dict)  # milli, MiB


@dataclass(slots=True)
class Above:
    """A card that was promised more than it has."""

    card: Card
    milli: int
    mib: int
    pods: list[str]


class Checker:
    """Follows all pods; an error in it ends the soak as failed."""

    def __init__(self, site: Site, cards: Cards, card_mib: int) -> None:
        self._site, self._cards, self._card_mib = site, cards, card_mib
        self.pods: dict[str, Pod] = {}
        self.above: list[Above] = []
        self.peak_milli = self.peak_mib = 0
        self.placements = 0
        self.lock = threading.Lock()
        self._milli: Counter[Card] = Counter()
        self._mib: Counter[Card] = Counter()
        self._is_above: set[Card] = set()
        self._version = ""

    def follow(self) -> None:
        """List if need be, and watch until the connection ends."""
        if not self._version:
            self._list()
        query = "?watch=1&allowWatchBookmarks=1&timeoutSeconds=20"
        with self._open(f"{query}&resourceVersion={self._version}") as answer:
            for line in answer:
                if self._site.stop.is_set():
                    return
                event = json.loads(line)
                if event["type"] == "ERROR":
                    self._version = ""
                    return
                self._version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    with self.lock:
                        self._see(event["object"], gone=event["type"] == "DELETED")

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

    def _open(self, query: str) -> Any:
        running = self._site.running
        tls = ssl.create_default_context(cafile=str(running.ca_file))
        request = urllib.request.Request(
            f"{running.server}/api/v1/pods{query}",
            headers={"Authorization": f"Bearer {running.token()}"},
        )
        return urllib.request.urlopen(request, context=tls, timeout=60)

    def _list(self) -> None:
        with self._open("") as answer:
            found = json.load(answer)
        with self.lock:
            present = {pod["metadata"]["uid"] for pod in found["items"]}
            for uid in [uid for uid in self.pods if uid not in present]:
                self._take(uid, None)
            for pod in found["items"]:
                self._see(pod, gone=False)
        self._version = str(found["metadata"]["resourceVersion"])

    def _see(self, pod: Mapping[str, Any], *, gone: bool) -> None:
        meta, status = pod["metadata"], pod.get("status", {})
        if gone:
            return self._take(meta["uid"], None)
        phase = status.get("phase", "")
        known = self.pods.get(meta["uid"])
        holds: dict[Card, tuple[int, int]] = {}
        text = (meta.get("annotations") or {}).get(ANNOTATION)
        if text and phase not in ("Succeeded", "Failed"):
            # A card is what it was when the pod was placed, whatever is in the node later.
            holds = known.holds if known is not None and known.holds else self._read(text)
        labels = meta.get("labels") or {}
        new = Pod(
            namespace=meta["namespace"],
            name=meta["name"],
            job=labels.get("gpu-scheduler.io/job", ""),
            phase=phase,
            deleting="deletionTimestamp" in meta,
            holds=holds,
        )
        if holds and (known is None or not known.holds):
            self.placements += 1
        return self._take(meta["uid"], new)

    def _read(self, text: str) -> dict[Card, tuple[int, int]]:
        found = json.loads(text)
        holds: dict[Card, tuple[int, int]] = {}
        for devices in found["c"].values():
            for device, (milli, mib) in devices.items():
                card = self._cards(found["n"], device)
                before = holds.get(card, (0, 0))
                holds[card] = (before[0] + milli, before[1] + mib)
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


def follow(site: Site, checker: Checker) -> None:
    """One connection; the API server may be away."""
    try:
        checker.follow()
    except AWAY:
        site.rest(0.2)
