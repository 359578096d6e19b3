"""An API server in memory, with a Job controller, kube-scheduler and kubelets that always agree.

It is asked through the real client's verbs, so every object takes its way through JSON and the
decoders of the code under test. It keeps the history's own truth: which pod was granted which share
of which device by a write that it took. Answers to writes go wrong as the history says.
"""

import asyncio
import contextlib
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from tests.unit.generated.values import Obj

from gpu_scheduler.api.allocation import of_pod, parse
from gpu_scheduler.api.names import ALLOCATION, JOB_TRACKING, TERM
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.clock import Heard
from gpu_scheduler.kube.connection import Connection
from gpu_scheduler.kube.errors import from_answer
from gpu_scheduler.kube.paths import POD_GROUPS

_PLACE = re.compile(
    r"(/api(?:s/[^/]+)?/[^/]+)(?:/namespaces/([^/]+))?/([^/]+)(?:/([^/]+)(?:/(\w+))?)?"
)
ENDED = ("Succeeded", "Failed")
REPLICA_SETS = "/apis/apps/v1/replicasets"
_SCHEDULING = POD_GROUPS["v1"].rpartition("/")[0]  # asked whether it serves PodGroups

# What may become of a write, beside being taken.
FAULTS = ("conflict", "absent", "busy", "broken", "lost", "late")


@dataclass(frozen=True, slots=True)
class Place:
    """What a path names."""

    root: str
    namespace: str
    plural: str
    name: str
    subresource: str

    @property
    def collection(self) -> str:
        return f"{self.root}/{self.plural}"

    @property
    def key(self) -> tuple[str, str, str]:
        return self.collection, self.namespace, self.name


def place_of(path: str) -> Place:
    found = _PLACE.fullmatch(path)
    assert found is not None, path
    return Place(*(part or "" for part in found.groups()))


class Server(Client):
    """Objects by collection, namespace and name.

    Args:
        fault: what becomes of a write: a path and how often it was tried, to one of ``FAULTS`` or
            nothing.
    """

    def __init__(self, fault: Callable[[str, int], str] = lambda path, tries: "") -> None:
        super().__init__(Connection(server="http://nowhere"))
        self.objects: dict[tuple[str, str, str], Obj] = {}
        self.granted: dict[str, tuple[str, tuple[DeviceAllocation, ...]]] = {}
        self.logs: bytes = b""
        self.told: Callable[[str, str, Obj], None] = lambda kind, collection, obj: None
        self.gets: Callable[[Obj], None] = lambda pod: None  # devices, by a write that was taken
        # Whether a pod that is asked to go may: its disruption budgets say so.
        self.may_go: Callable[[Obj], bool] = lambda pod: True
        self.deletes: Callable[[Obj], None] = lambda pod: None  # instead of evicting it
        self.reorder: Callable[[list[Obj]], list[Obj]] = lambda objects: objects
        self.streams = False  # lists
        self.late_seconds: Callable[[], float] = lambda: 14
        self.now: Callable[[], str] = lambda: "2026-01-01T00:00:00Z"  # by its own clock
        self.date: Callable[[], str] = lambda: ""  # as its answers say
        self.now_on: Callable[[str], str] = lambda node: "2026-01-01T00:00:00Z"
        self.may_bind: Callable[[Obj], bool] = lambda pod: True  # asked for kube-scheduler
        # Seconds by which news of a kind are behind those of others, and answers to its writes.
        self.behind: Mapping[str, float] = {}
        self._fault = fault
        self._tries: Counter[str] = Counter()
        self._version = 1000
        self._uids = 0
        self._gone: set[str] = set()  # uids of what was deleted
        self._log: list[tuple[str, bytes, dict[str, str]]] = []
        self._news = asyncio.Event()
        self._late: set[asyncio.Task[None]] = set()

    # --- what others do ---

    def put(self, path: str, obj: Obj, *, version: int | None = None) -> None:
        """Store an object as somebody wrote it; ``version``: an older one comes again."""
        place = place_of(path)
        self._version += 1
        meta = {**obj["metadata"], "resourceVersion": str(version or self._version)}
        old = self.objects.get(place.key)
        while old is None and str(meta["uid"]) in self._gone:
            meta["uid"] = f"{meta['uid']}-next"  # no two objects ever have the same
        stored = {**obj, "metadata": meta}
        if place.plural == "pods" and old is not None:
            stored = _on_its_node(old, stored)
        self.objects[place.key] = stored
        self._tell("ADDED" if old is None else "MODIFIED", place, stored)

    def make(self, collection: str, namespace: str, sent: Obj) -> Obj:
        """Store a new object, as whoever made it sends it."""
        path = path_of((collection, namespace, sent["metadata"]["name"]))
        if place_of(path).key in self.objects:
            raise _refusal(409, "AlreadyExists")
        meta = {
            **sent["metadata"],
            "namespace": namespace,
            "uid": f"uid-made-{self.next_uid()}",
            "creationTimestamp": self.now(),
        }
        self.put(path, {**sent, "metadata": meta})
        return self.objects[place_of(path).key]

    def remove(self, path: str) -> None:
        """Delete an object, and all that it owns; a pod of a Job ends, and stays until let go."""
        place = place_of(path)
        kept = self.objects.get(place.key)
        if kept is not None and kept["metadata"].get("finalizers") == [JOB_TRACKING]:
            meta = {**kept["metadata"], "deletionTimestamp": self.now()}
            status = {**kept["status"], "phase": "Failed"}
            return self.put(path, {**kept, "metadata": meta, "status": status})
        gone = self.objects.pop(place.key, None)
        if gone is None:
            return
        self._version += 1
        self._gone.add(str(gone["metadata"]["uid"]))
        meta = {**gone["metadata"], "resourceVersion": str(self._version)}
        self._tell("DELETED", place, {**gone, "metadata": meta})
        for key, obj in list(self.objects.items()):
            owners = obj["metadata"].get("ownerReferences")
            uids = (
                [o.get("uid") for o in owners if isinstance(o, dict)]
                if isinstance(owners, list)
                else []
            )
            if gone["metadata"]["uid"] in uids:
                self.remove(path_of(key))

    def let_go(self, path: str) -> None:
        """The Job controller has counted the end of a pod."""
        obj = self.objects[place_of(path).key]
        meta = {key: value for key, value in obj["metadata"].items() if key != "finalizers"}
        self.put(path, {**obj, "metadata": meta})
        if "deletionTimestamp" in meta:
            self.remove(path)

    def again(self, path: str, obj: Obj) -> None:
        """News of an object that is there: the same once more, and what was before that."""
        place = place_of(path)
        now = self.objects.get(place.key)
        if now is None:
            return
        self._tell("MODIFIED", place, now)
        if place.plural != "nodes" and now["metadata"]["uid"] == obj["metadata"]["uid"]:
            self._tell("MODIFIED", place, obj)

    def gone_before(self, path: str, obj: Obj) -> None:
        """The end of an object of that name whose beginning was never told."""
        meta = {**obj["metadata"], "uid": obj["metadata"]["uid"] + "-before"}
        self._tell("DELETED", place_of(path), {**obj, "metadata": meta})

    def next_uid(self) -> int:
        """A number that nothing else has."""
        self._uids += 1
        return self._uids

    def of(self, collection: str) -> list[Obj]:
        """All objects of a collection."""
        return [obj for key, obj in self.objects.items() if key[0] == collection]

    def news(self, collection: str, start: int) -> tuple[list[tuple[str, Obj]], int]:
        """What was told of a collection from there on, and where to go on: a watch of others'."""
        found = [json.loads(line) for at, line, _ in self._log[start:] if at == collection]
        return [(each["type"], each["object"]) for each in found], len(self._log)

    def _tell(self, kind: str, place: Place, obj: Obj) -> None:
        labels = obj["metadata"].get("labels")
        line = b'{"type":"%s","object":%s}\n' % (kind.encode(), _json(obj))
        self._log.append((place.collection, line, labels if isinstance(labels, dict) else {}))
        self.told(kind, place.collection, obj)
        self._news.set()

    # --- what the code under test asks ---

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Any = None,
        body: bytes | None = None,
        content_type: str = "",
        **_: Any,
    ) -> bytes:
        await asyncio.sleep(0)
        self.heard = Heard(self.date(), asyncio.get_running_loop().time())
        if path == _SCHEDULING:
            return orjson.dumps({"resources": [{"name": "podgroups"}]})
        place = place_of(path)
        if method == "GET":
            return self._read(place, params or {})
        sent = orjson.loads(body) if body else {}
        if (params or {}).get("dryRun"):
            return b"{}"
        if place.plural == "events":
            return b"{}"
        self._tries[path] += 1
        fault = self._fault(path, self._tries[path])
        if fault == "conflict":
            raise _refusal(409, "Conflict")
        if fault == "absent" and place.subresource == "binding":  # of others it means: gone
            raise _refusal(404, "NotFound")
        if fault == "busy":
            raise _refusal(429, "TooManyRequests")
        if fault == "broken":
            raise errors.ServerError(500, "InternalError", "told so", maybe_applied=True)
        if fault == "late":
            self._later(method, place, sent)
        answer = None if fault == "late" else self._take(method, place, sent)
        await asyncio.sleep(self.behind.get(place.plural, 0))
        if fault in ("lost", "late"):
            raise errors.Unavailable(message="told so", maybe_applied=True)
        return orjson.dumps(answer)

    @contextlib.asynccontextmanager
    async def watch(
        self, path: str, *, inactivity_seconds: float, **params: Any
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        if "sendInitialEvents" in params and not self.streams:
            raise _refusal(422, "Invalid")
        yield self._events(path, params)

    async def _events(self, path: str, params: Any) -> AsyncIterator[bytes]:
        place = place_of(path)
        if "sendInitialEvents" in params:
            for obj in self._listed(place, params):
                yield b'{"type":"ADDED","object":%s}\n' % _json(obj)
            yield _END % (_LOG_STARTS + len(self._log))
            return
        start = int(params["resourceVersion"]) - _LOG_STARTS
        while True:
            news, self._news = self._news, asyncio.Event() if self._news.is_set() else self._news
            while start < len(self._log):
                collection, line, labels = self._log[start]
                start += 1
                if collection == place.collection and _selected(labels, params):
                    await asyncio.sleep(self.behind.get(place.plural, 0))
                    yield line
            await self._news.wait()
            del news

    def _read(self, place: Place, params: Any) -> bytes:
        if place.subresource == "log":
            return self.logs
        if place.name:
            found = self.objects.get(place.key)
            if found is None:
                raise _refusal(404, "NotFound", name=place.name)
            return _json(found)
        listed = b",".join(_json(obj) for obj in self._listed(place, params))
        at = _LOG_STARTS + len(self._log)
        return b'{"metadata":{"resourceVersion":"%d"},"items":[%s]}' % (at, listed)

    def _listed(self, place: Place, params: Any) -> list[Obj]:
        return self.reorder(
            [
                obj
                for key, obj in self.objects.items()
                if key[0] == place.collection
                and (not place.namespace or key[1] == place.namespace)
                and _selected(obj["metadata"].get("labels"), params)
            ]
        )

    def _later(self, method: str, place: Place, sent: Obj) -> None:
        async def arrive() -> None:
            await asyncio.sleep(self.late_seconds())
            with contextlib.suppress(errors.ApiError):
                self._take(method, place, sent)

        task = asyncio.ensure_future(arrive())
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    def _take(self, method: str, place: Place, sent: Obj) -> Obj:
        found = self.objects.get(place.key)
        if method == "POST" and not place.name:
            return self.make(place.collection, place.namespace, sent)
        if found is None:
            raise _refusal(404, "NotFound")
        path = path_of(place.key)
        meta = sent.get("metadata") or {}
        wanted = meta.get("uid") or (sent.get("preconditions") or {}).get("uid")
        if place.subresource == "eviction":
            wanted = sent["deleteOptions"]["preconditions"]["uid"]
        version = meta.get("resourceVersion")
        if (wanted and wanted != found["metadata"]["uid"]) or (
            version and version != found["metadata"]["resourceVersion"]
        ):
            raise _refusal(409, "Conflict")
        term = (meta.get("annotations") or {}).get(TERM)
        if term is not None and ALLOCATION in meta["annotations"] and term != self._term():
            raise _refusal(422, "Invalid", "ValidatingAdmissionPolicy 'operator-term' denied it")
        if place.subresource == "binding":
            self._bind(path, found, sent)
        elif place.subresource == "eviction":
            if not self.may_go(found):
                raise _refusal(429, "TooManyRequests", "the pod's disruption budget says no")
            self.remove(path)
        elif method == "DELETE":
            if place.plural == "pods":
                self.deletes(found)
            self.remove(path)
        elif method == "PUT":
            self.put(path, {**found, **sent})
        elif place.subresource == "status" or method == "PATCH":
            self.put(path, _merged(found, sent))
            self._ungated(path)
        return self.objects.get(place.key, found)

    def _term(self) -> str:
        """That of who leads."""
        found = [o for (c, _, _), o in self.objects.items() if c.endswith("/limitranges")]
        return str(found[0]["metadata"]["annotations"][TERM]) if found else ""

    def _bind(self, path: str, pod: Obj, binding: Obj) -> None:
        spec = pod["spec"]
        if (
            spec.get("nodeName")
            or spec.get("schedulingGates")
            or "deletionTimestamp" in pod["metadata"]
        ):
            raise _refusal(409, "Conflict")
        node = binding["target"]["name"]
        annotations = binding["metadata"].get("annotations") or {}
        self._allocated(pod, annotations)
        bound = _merged(pod, {"metadata": {"annotations": annotations}})
        self.put(path, _bound(bound, node, self.now()))

    def _ungated(self, path: str) -> None:
        """kube-scheduler, for a pod whose gates are gone and that is pinned."""
        pod = self.objects[place_of(path).key]
        if (
            "/pods/" not in path
            or pod["spec"].get("schedulingGates")
            or pod["spec"].get("nodeName")
            or not self.may_bind(pod)
        ):
            return
        allocation = of_pod(pod)
        if allocation is not None:
            self._allocated(pod, pod["metadata"]["annotations"])
            self.put(path, _bound(pod, allocation.node, self.now()))

    def _allocated(self, pod: Obj, annotations: dict[str, str]) -> None:
        if ALLOCATION in annotations:
            found = parse(annotations[ALLOCATION])
            self.granted[pod["metadata"]["uid"]] = found.node, tuple(found.devices)
            self.gets(pod)

    # --- truth ---

    def held_milli(self) -> Counter[tuple[str, str]]:
        """By node and device: what pods that are there and have not ended were granted."""
        held: Counter[tuple[str, str]] = Counter()
        for pod in self.of("/api/v1/pods"):
            node, devices = self.held_by(pod)
            for allocated in devices:
                held[node, allocated.device] += allocated.fraction_milli
        return held

    def held_by(self, pod: Obj) -> tuple[str, tuple[DeviceAllocation, ...]]:
        """Node and devices that a pod was granted; none once it has ended."""
        status = pod.get("status")
        phase = status.get("phase") if isinstance(status, dict) else ""
        none: tuple[str, tuple[DeviceAllocation, ...]] = ("", ())
        return self.granted.get(pod["metadata"]["uid"], none) if phase not in ENDED else none


_END = (
    b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d",'
    b'"annotations":{"k8s.io/initial-events-end":"true"}}}}\n'
)
_LOG_STARTS = 10_000  # versions of lists, so that a watch starts from its place in the log


def path_of(key: tuple[str, str, str]) -> str:
    collection, namespace, name = key
    if not namespace:
        return f"{collection}/{name}"
    root, plural = collection.rsplit("/", 1)
    return f"{root}/namespaces/{namespace}/{plural}/{name}"


def _selected(labels: Any, params: Any) -> bool:
    selector = (params or {}).get("labelSelector")
    if not selector:
        return True
    key, _, value = selector.partition("=")
    return isinstance(labels, dict) and key in labels and (not value or labels[key] == value)


def _merged(old: Obj, patch: Obj) -> Obj:
    """A merge patch, with lists of ``$patch: delete`` as the strategic one has them."""
    new = dict(old)
    for key, value in patch.items():
        if key in ("uid", "resourceVersion", "managedFields") and "name" in old:
            continue
        if value is None:
            new.pop(key, None)
        elif isinstance(value, dict):
            before = new.get(key)
            new[key] = _merged(before if isinstance(before, dict) else {}, value)
        elif isinstance(value, list) and any("$patch" in v for v in value if isinstance(v, dict)):
            names = {
                v["name"] for v in value if isinstance(v, dict) and v.get("$patch") == "delete"
            }
            new[key] = [v for v in new.get(key) or [] if v.get("name") not in names]
        else:
            new[key] = value
    return new


def _on_its_node(old: Obj, new: Obj) -> Obj:
    """A pod that was bound stays so: the API server takes no change of ``spec.nodeName``."""
    specs = old.get("spec"), new.get("spec")
    if old["metadata"]["uid"] != new["metadata"]["uid"]:
        return new
    if not all(isinstance(spec, dict) for spec in specs) or not old["spec"].get("nodeName"):
        return new
    return {**new, "spec": {**new["spec"], "nodeName": old["spec"]["nodeName"]}}


def _bound(pod: Obj, node: str, now: str) -> Obj:
    """A pod with a node: the API server takes back what was said of why it has none."""
    spec, status = {**pod["spec"], "nodeName": node}, pod.get("status")
    if isinstance(status, dict) and isinstance(status.get("conditions") or [], list):
        others = [c for c in status.get("conditions") or [] if c["type"] != "PodScheduled"]
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now}
        status = {**status, "conditions": [*others, scheduled]}
    return {**pod, "spec": spec, "status": status}


def _refusal(code: int, reason: str, message: str = "told so", name: str = "") -> errors.ApiError:
    """``name``: of the object that it is about; of a kind that is not served there is none."""
    said = {"code": code, "reason": reason, "message": message, "details": {"name": name}}
    return from_answer(code, orjson.dumps(said))


def _json(obj: Obj) -> bytes:
    try:
        return orjson.dumps(obj)
    except TypeError:  # integers beyond 64 bits
        return json.dumps(obj).encode()
