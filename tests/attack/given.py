"""Which GPUs the containers of a pod get on its node, or on the next one, and who gave them.

Shares no code with the operator. What counts is in objects of the API server: what the node offers
to its kubelet, the RuntimeClasses whose runtime obeys ``NVIDIA_VISIBLE_DEVICES``, that variable as
the kubelet resolves it, and the allocation. A container without the variable gets what its image
asks for, and that is taken to be everything.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.soak.checker import ANNOTATION
from tests.soak.site import AWAY, Site
from tests.soak.watch import Watch

VISIBLE = "NVIDIA_VISIBLE_DEVICES"
RUNTIME_CLASSES = ("nvidia", "nvidia-cdi", "nvidia-legacy")
_NONE = ("", "void", "none")
_LISTS = ("initContainers", "containers", "ephemeralContainers")
_GIVEN = "metadata.annotations['gpu-scheduler.io/c{}-devices']"

ANYWHERE = {"status": {"allocatable": {"nvidia.com/gpu": "8"}}}
"""The node of a pod that waits for one."""

Json = Mapping[str, Any]
Texts = Callable[[str, str], Mapping[str, str]]
"""What a ConfigMap or a Secret of the pod's namespace holds, by kind and name; it may be absent."""


def not_given(
    pod: Json, node: Json, texts: Texts = lambda kind, name: {}, *, plugin: bool = False
) -> list[str]:
    """What a pod's containers would get on its node that nobody gave them, as sentences.

    ``plugin``: what they ask the device plugin for is theirs, as in any cluster.
    """
    given = _allocated(pod)
    if given is None:
        return ["its allocation cannot be read"]
    where, devices = given
    at = pod["spec"].get("nodeName")
    if devices and at and where != at:
        return [f"its allocation is for node {where or 'of no name'}"]
    offered = node.get("status", {}).get("allocatable") or {}
    return list(_past(pod, offered, devices, texts, plugin=plugin))


def held_milli(pod: Json) -> int:
    """Thousandths of GPUs that a pod's allocation says it holds."""
    text = (pod["metadata"].get("annotations") or {}).get(ANNOTATION)
    try:
        found = json.loads(text) if text else {"c": {}}
        return sum(int(milli) for c in found["c"].values() for milli, _ in c.values())
    except (ValueError, TypeError, AttributeError, KeyError):
        return 0


def _allocated(pod: Json) -> tuple[str, Mapping[int, set[str]]] | None:
    text = (pod["metadata"].get("annotations") or {}).get(ANNOTATION)
    if text is None:
        return "", {}
    try:
        found = json.loads(text)
        return str(found["n"]), {int(c): set(devices) for c, devices in found["c"].items()}
    except (ValueError, TypeError, AttributeError, KeyError):
        return None


def _past(
    pod: Json, offered: Json, given: Mapping[int, set[str]], texts: Texts, *, plugin: bool
) -> Iterator[str]:
    obeys = pod["spec"].get("runtimeClassName") in RUNTIME_CLASSES
    for field in _LISTS:
        for container in pod["spec"].get(field) or ():
            name = container["name"]
            limits = (container.get("resources") or {}).get("limits") or {}
            asked = {
                resource: amount
                for resource, amount in limits.items()
                if resource.startswith("nvidia.com/") and resource in offered and amount != "0"
            }
            for resource, amount in () if plugin else asked.items():
                yield f"{field} {name}: {amount} of {resource} from the device plugin"
            if not obeys:
                continue
            served = "nvidia.com/gpu" in asked  # else the kubelet starts it as if it had not asked
            sees, number = _visible(pod, container, texts, "void" if served else "all")
            if sees in _NONE:
                continue
            past = set(sees.split(",")) - given.get(number, set())
            if past:
                yield f"{field} {name}: sees {', '.join(sorted(past))[:80]}, which it was not given"


def _visible(pod: Json, container: Json, texts: Texts, unset: str) -> tuple[str, int]:
    """The variable as the kubelet resolves it, and the number whose allocation it is; -1: none.

    ``unset``: where nobody sets it: what the image says, or the device plugin.
    """
    told = unset, -1
    for source in container.get("envFrom") or ():
        prefix = source.get("prefix") or ""
        if VISIBLE.startswith(prefix):
            for kind in ("configMap", "secret"):
                if name := (source.get(f"{kind}Ref") or {}).get("name"):
                    found = texts(kind, name)
                    if VISIBLE.removeprefix(prefix) in found:
                        told = found[VISIBLE.removeprefix(prefix)], -1
    for entry in container.get("env") or ():
        if entry["name"] == VISIBLE:  # the last one counts, and before any envFrom
            told = _value(pod, entry)
    return told


def _value(pod: Json, entry: Json) -> tuple[str, int]:
    if "valueFrom" not in entry:
        return entry.get("value") or "", -1
    field = (entry["valueFrom"].get("fieldRef") or {}).get("fieldPath") or ""
    notes = pod["metadata"].get("annotations") or {}
    for number in range(128):
        if field == _GIVEN.format(number):
            return notes.get(field[len("metadata.annotations['") : -2], ""), number
    return "all", -1  # nobody knows what it says


class Given:
    """Follows the pods of one tenant and notes those that get what they were not given."""

    def __init__(
        self, site: Site, namespace: str, limit_milli: int, *, plugin: bool = False
    ) -> None:
        """``limit_milli``: what all pods of the namespace may hold; ``plugin``: ``not_given``."""
        self._site, self._namespace, self._limit = site, namespace, limit_milli
        self._plugin = plugin
        self._held: dict[str, int] = {}
        self._nodes: dict[str, Json] = {}
        self.found: dict[str, str] = {}
        """By pod: what it got past us."""
        self.most_milli = 0
        self.seen = 0
        self.watch = Watch(site, f"/api/v1/namespaces/{namespace}/pods", self.see, self.gone)

    def see(self, pod: Json) -> None:
        """A pod as it is now."""
        meta, spec = pod["metadata"], pod["spec"]
        name = f"{self._namespace}/{meta['name']}"
        if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            self._held.pop(meta["uid"], None)
            return
        self._held[meta["uid"]] = held_milli(pod)
        held = sum(self._held.values())
        self.most_milli = max(self.most_milli, held)
        if held > self._limit:
            self.found.setdefault(name, f"{held} milli are held, the limit is {self._limit}")
        self.seen += 1
        node = self._node(spec["nodeName"]) if spec.get("nodeName") else ANYWHERE
        for each in not_given(pod, node, self._texts, plugin=self._plugin):
            self.found.setdefault(name, each)

    def knows(self, uid: str) -> bool:
        """Whether a pod was seen that has not ended."""
        return uid in self._held

    def gone(self, meta: Json) -> None:
        """A pod that is no more."""
        self._held.pop(meta["uid"], None)

    def _node(self, name: str) -> Json:
        """What it offers does not change meanwhile."""
        if not self._nodes.get(name):
            self._nodes[name] = self._got(f"/api/v1/nodes/{name}")
        return self._nodes[name]

    def _texts(self, kind: str, name: str) -> Mapping[str, str]:
        found = self._got(f"/api/v1/namespaces/{self._namespace}/{kind.lower()}s/{name}")
        data = found.get("data") or {}
        return data if kind == "configMap" else dict.fromkeys(data, "all")

    def _got(self, path: str) -> Json:
        try:
            answer = self._site.admin.get(path)
        except AWAY:
            return {}
        return answer.body if answer.ok else {}
