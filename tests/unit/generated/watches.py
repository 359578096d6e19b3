"""What watches tell of a cluster, and the same twice, late and in every order.

Objects are such as an API server hands out, and so are their changes: versions and generations
grow, a pod keeps its node, what has ended stays so, and who comes under a name that was free again
has another uid. Only the order in which it is told is anybody's.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from hypothesis import strategies as st
from tests.unit.generated.jobs import hostile_jobs
from tests.unit.generated.nodes import hostile_nodes, node
from tests.unit.generated.others import hostile_leases
from tests.unit.generated.ours import (
    GPUJOB_NAMES,
    gpujob,
    gpuproject,
    hostile_gpuclasses,
    hostile_gpujobs,
    hostile_gpunodes,
    hostile_gpuprojects,
    metadata,
)
from tests.unit.generated.pods import hostile_pods, pod
from tests.unit.generated.shares import hostile_pod_groups, hostile_shares
from tests.unit.generated.stage import ROOT
from tests.unit.generated.values import Obj

from gpu_scheduler.api.names import ALLOCATION
from gpu_scheduler.kube.paths import (
    DEVICE_CLASSES,
    JOBS,
    NAMESPACES,
    NODES,
    POD_GROUPS,
    PODS,
    RESOURCE_QUOTAS,
    lease,
)

NAMESPACE = "team-bad"
_PHASES = ("Pending", "Running", "Succeeded", "Failed")
_JOB_UIDS = tuple(f"uid-{NAMESPACE}-{name}" for name in GPUJOB_NAMES)
_FIRST_VERSION = 5_000


@dataclass(frozen=True, slots=True)
class Event:
    """One piece of news: of which collection, namespace and name, and of which version."""

    place: tuple[str, str, str]
    version: str
    gone: bool
    obj: Obj


def _event(collection: str, obj: Obj, *, gone: bool) -> Event:
    meta = obj["metadata"]
    return Event(_place(collection, obj), meta["resourceVersion"], gone, obj)


def _place(collection: str, obj: Obj) -> tuple[str, str, str]:
    meta = obj["metadata"]
    return collection, meta.get("namespace") or "", meta["name"]


def _plain_gpujobs() -> st.SearchStrategy[Obj]:
    """Jobs that can start, so that there is something to make, refuse and place."""
    return st.builds(
        lambda name, gpu, pods: gpujob(name, NAMESPACE, gpu=gpu, parallelism=pods),
        st.sampled_from(GPUJOB_NAMES),
        st.sampled_from([0.25, 0.5, 1]),
        st.integers(1, 3),
    )


def _plain_projects() -> st.SearchStrategy[Obj]:
    return st.builds(
        lambda quota: gpuproject("project-bad", [NAMESPACE], quota=quota), st.integers(0, 4)
    )


def _plain_nodes() -> st.SearchStrategy[Obj]:
    return st.builds(node, st.sampled_from(["bad-0", "bad-1"]), st.integers(0, 4))


def _plain_pods() -> st.SearchStrategy[Obj]:
    return st.builds(
        lambda name, owner, phase: pod(name, owner_uid=owner, phase=phase),
        st.sampled_from(["p0", "p1"]),
        st.sampled_from(["", *(f"uid-hand-{name}" for name in GPUJOB_NAMES)]),
        st.sampled_from(_PHASES),
    )


def _of_namespace(name: str) -> Obj:
    return {"metadata": metadata(name)}


_quotas = st.builds(
    lambda name: {"metadata": metadata(name, NAMESPACE), "spec": {}}, st.sampled_from(["q", "r"])
)

_device_classes = st.builds(
    lambda name, resource: {"metadata": metadata(name), "spec": resource},
    st.sampled_from(["nic", "gpu"]),
    st.sampled_from(
        [
            {},
            {"extendedResourceName": "example.com/nic"},
            {"extendedResourceName": "nvidia.com/gpu"},
        ]
    ),
)

OBJECTS: dict[str, st.SearchStrategy[Obj]] = {
    PODS: st.one_of(
        _plain_pods(),
        hostile_pods(("", "uid-nobody", *(f"uid-hand-{name}" for name in GPUJOB_NAMES))),
        hostile_shares(),
    ),
    NODES: st.one_of(_plain_nodes(), hostile_nodes()),
    NAMESPACES: st.builds(_of_namespace, st.sampled_from([NAMESPACE, "other"])),
    JOBS: hostile_jobs(tuple(zip(GPUJOB_NAMES, _JOB_UIDS, strict=True))),
    RESOURCE_QUOTAS: _quotas,
    DEVICE_CLASSES: _device_classes,
    POD_GROUPS["v1"]: hostile_pod_groups,
    lease("gpu-scheduler"): hostile_leases(),
    f"{ROOT}/gpujobs": st.one_of(_plain_gpujobs(), hostile_gpujobs()),
    f"{ROOT}/gpuprojects": st.one_of(_plain_projects(), hostile_gpuprojects()),
    f"{ROOT}/gpunodes": hostile_gpunodes(),
    f"{ROOT}/gpuclasses": hostile_gpuclasses(),
}
"""By collection that is watched."""

# More of those that others are about.
_CHOSEN = [
    *sorted(OBJECTS),
    f"{ROOT}/gpujobs",
    f"{ROOT}/gpujobs",
    f"{ROOT}/gpuprojects",
    PODS,
    JOBS,
]


# A cluster that has room, a project, and jobs of it, the second of which is refused.
_FIRST: tuple[tuple[str, Obj], ...] = (
    (NODES, node("good-0", 4)),
    (f"{ROOT}/gpuprojects", gpuproject("project-good", [NAMESPACE], quota=4)),
    *((f"{ROOT}/gpujobs", gpujob(name, NAMESPACE, gpu=0.5)) for name in GPUJOB_NAMES),
    (RESOURCE_QUOTAS, {"metadata": metadata("q", NAMESPACE), "spec": {}}),
)
REFUSED = GPUJOB_NAMES[1]


@st.composite
def histories(draw: st.DrawFn, most: int = 14) -> list[Event]:
    """What becomes of some objects, in the order in which it happens."""
    there: dict[tuple[str, str, str], Obj] = {}
    born: dict[tuple[str, str, str], int] = {}
    events: list[Event] = []
    some = draw(st.lists(st.sampled_from(_CHOSEN), min_size=1, max_size=most))
    more = [(collection, draw(OBJECTS[collection])) for collection in some]
    for number, (collection, obj) in enumerate([*_FIRST, *more]):
        drawn = copy.deepcopy(obj)
        place = _place(collection, drawn)
        old = there.get(place)
        if old is None:
            meta = drawn["metadata"]
            born[place] = born.get(place, 0) + 1
            meta["uid"] += "-again" * (born[place] - 1)
            meta["generation"] = 1
            new, gone = drawn, False
        else:
            what = draw(st.sampled_from(["change", "change", "end", "go"]))
            new, gone = _later(collection, old, drawn), what == "go"
            if what == "end":
                new["metadata"].setdefault("deletionTimestamp", "2026-01-01T02:00:00Z")
        new["metadata"]["resourceVersion"] = str(_FIRST_VERSION + number)
        if gone:
            del there[place]
        else:
            there[place] = new
        events.append(_event(collection, new, gone=gone))
    return events


class ReorderedHistory:
    """A history, and each event of it twice, in another order."""

    def __init__(self, events: list[Event], order: list[int]) -> None:
        self.events, self.order = events, order

    def __repr__(self) -> str:
        return "\n".join(f"{e.place} {e.version}{' gone' * e.gone}" for e in self.told)

    @property
    def told(self) -> list[Event]:
        """What is told, in its order."""
        return [self.events[number] for number in self.order]

    @property
    def truth(self) -> list[Event]:
        """The last news of each object."""
        return list({event.place: event for event in self.events}.values())


@st.composite
def told_histories(draw: st.DrawFn) -> ReorderedHistory:
    """What happens, and each event of it twice, in any order."""
    events = draw(histories())
    order = [*range(len(events))] * 2
    Random(draw(st.integers(0, 2**32))).shuffle(order)
    return ReorderedHistory(events, order)


def _later(collection: str, old: Obj, drawn: Obj) -> Obj:
    """What an object may become of which another was drawn."""
    change: Callable[[Obj, Obj], Obj] = _CHANGES.get(collection, lambda old, drawn: drawn)
    new = copy.deepcopy(change(old, drawn))
    kept = ("uid", "creationTimestamp", "deletionTimestamp", "generation")
    new["metadata"] |= {key: old["metadata"][key] for key in kept if key in old["metadata"]}
    new["metadata"]["generation"] += 1
    return new


def _later_pod(old: Obj, drawn: Obj) -> Obj:
    """It keeps its spec; a node and an allocation come once, and an end is for ever."""
    new = copy.deepcopy(old)
    phases = [(each.get("status") or {}).get("phase") for each in (old, drawn)]
    if phases[0] in ("", "Pending", "Running") and phases[1] != "Pending":
        new["status"] = drawn["status"]
    if not old["spec"].get("nodeName") and not (old["metadata"].get("annotations") or {}).get(
        ALLOCATION
    ):
        new["metadata"]["annotations"] = drawn["metadata"].get("annotations")
        if drawn["spec"].get("nodeName"):
            new["spec"]["nodeName"] = drawn["spec"]["nodeName"]
    return new


def _later_job(old: Obj, drawn: Obj) -> Obj:
    """It keeps its owner and role; a condition of its end stays."""
    metadata = {**drawn["metadata"], "ownerReferences": old["metadata"]["ownerReferences"]}
    new = {**drawn, "metadata": {**metadata, "labels": old["metadata"]["labels"]}}
    over = [c for c in old["status"]["conditions"] if c["type"] in ("Complete", "Failed")]
    return {**new, "status": old["status"]} if over else new


_CHANGES: dict[str, Callable[[Obj, Obj], Obj]] = {PODS: _later_pod, JOBS: _later_job}
