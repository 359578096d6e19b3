"""The numbers of the dashboard's answers, field by field, and what each has to be.

``RULES`` has a function for each field of ``dashboard/views.py`` that holds a number: of what
kubectl and the API server say, and of the objects around the number, the innermost last. A field
without one fails the test, as does a rule without a field.
"""

import re
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from tests.api.dashboard_known import (
    ClusterAtRest,
    Key,
    Waiting,
    asks,
    condition,
    cpu,
    ended,
    owner_of,
    requests,
    seconds,
)
from tests.api.tenant import Json

from gpu_scheduler.api.allocation import parse
from gpu_scheduler.api.names import ALLOCATION
from gpu_scheduler.dashboard import views
from gpu_scheduler.dashboard.rows import State, WorkRef

Chain = tuple[Any, ...]
Rule = Callable[[ClusterAtRest, Chain], Any]
ANSWERS = tuple(
    each for each in views.VIEWS if each not in (views.WhatIfQuestion, views.ProblemView)
)
_PIECE = 0.5  # of a GPU: what is free and smaller is a piece, where nothing smaller waits


@dataclass(frozen=True, slots=True)
class About:
    """A number that may be off by so much, such as an age."""

    value: float
    within: float


@dataclass(frozen=True, slots=True)
class Grows:
    """A curve that was read a little later: it goes on, and its last point is not whole before."""

    points: tuple[float | None, ...]


BESIDE = About(0, float("inf"))
"""What a test of its own judges: the chart, which an object of the operator's keeps."""
_OF_CHART = ("start", "step_seconds", "gpus", "held", "busy", "idle", "waiting", "borrowed")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field with a number, or several."""

    name: str
    value: Any
    chain: Chain


def numeric(kind: type[msgspec.Struct]) -> Iterator[str]:
    """The fields of a struct that hold numbers."""
    for name, hint in get_type_hints(kind).items():
        if _has_number(hint):
            yield name


def _has_number(hint: Any) -> bool:
    if hint in (int, float):
        return True
    if get_origin(hint) in (Union, types.UnionType, tuple, dict):
        return any(map(_has_number, get_args(hint)))
    return False


def structs() -> set[type[msgspec.Struct]]:
    """All that answers are made of."""
    found: set[type[msgspec.Struct]] = set()
    todo: list[Any] = list(ANSWERS)
    while todo:
        each = todo.pop()
        if get_origin(each) is not None:
            todo += get_args(each)
        elif isinstance(each, type) and issubclass(each, msgspec.Struct) and each not in found:
            found.add(each)
            todo += get_type_hints(each).values()
    return found


def leaves(value: Any, chain: Chain = ()) -> Iterator[Leaf]:
    """Of an answer."""
    if isinstance(value, msgspec.Struct):
        chain = (*chain, value)
        numbers = set(numeric(type(value)))
        for name in value.__struct_fields__:
            if name in numbers:
                yield Leaf(f"{type(value).__name__}.{name}", getattr(value, name), chain)
            else:
                yield from leaves(getattr(value, name), chain)
    elif isinstance(value, tuple | list):
        for each in value:
            yield from leaves(each, chain)
    elif isinstance(value, dict):
        for each in value.values():
            yield from leaves(each, chain)


def differs(found: Any, expected: Any) -> bool:
    """Whether a number is not what a rule says; numbers are rounded to a thousandth."""
    if isinstance(expected, About):
        return not isinstance(found, int | float) or abs(found - expected.value) > expected.within
    if isinstance(expected, Grows):
        whole = found[:-1]
        return tuple(whole) != expected.points[: len(whole)]
    if isinstance(expected, float | int) and isinstance(found, float | int):
        return abs(found - expected) > 0.00051
    return bool(found != expected)


def key(ref: WorkRef) -> Key:
    return ref.namespace, ref.kind, ref.name


# Of work


def _is_job(ref: WorkRef) -> bool:
    return ref.kind == "GPUJob"


def _status(known: ClusterAtRest, ref: WorkRef) -> Json:
    found: Json = known.jobs[key(ref)]["status"]
    return found


def _held(known: ClusterAtRest, ref: WorkRef) -> float:
    row = known.top_jobs.get(key(ref))
    return row["milliGPU"] / 1000 if row else 0.0


def _asked(known: ClusterAtRest, c: Chain) -> float:
    ref = c[-1].ref
    if _is_job(ref):  # the column GPU: held/asked
        return float(_status(known, ref)["gpu"].split("/")[1])
    return sum(asks(pod) for pod in known.of_owner(key(ref)))


def _counted(name: str) -> Rule:
    def rule(known: ClusterAtRest, c: Chain) -> int:
        ref = c[-1].ref
        if _is_job(ref):
            return int(_status(known, ref)["pods"].get(name, 0))
        phases = [pod["status"].get("phase") for pod in known.of_owner(key(ref))]
        return phases.count("Running") if name == "running" else 0

    return rule


def _pods(known: ClusterAtRest, c: Chain) -> int:
    ref = c[-1].ref
    if _is_job(ref):  # the column PODS: running/succeeded/in all
        return int(_status(known, ref)["podSummary"].split("/")[2])
    return len(known.of_owner(key(ref)))


def _created(known: ClusterAtRest, c: Chain) -> float:
    ref = c[-1].ref
    found = [known.jobs[key(ref)]] if _is_job(ref) else known.of_owner(key(ref))
    return min(seconds(each["metadata"]["creationTimestamp"]) for each in found)


def _ended(known: ClusterAtRest, c: Chain) -> float | None:
    ref = c[-1].ref
    if not _is_job(ref) or _status(known, ref)["phase"] not in ("Succeeded", "Failed"):
        return None
    job = known.jobs[key(ref)]
    over = [condition(job, "Complete"), condition(job, "Failed")]
    return next(seconds(e["lastTransitionTime"]) for e in over if e.get("status") == "True")


def _percent(value: int | None) -> About | None:
    return None if value is None else About(value / 100, 0.0051)


def _of_use(*names: str) -> Rule:
    """A figure of ``top jobs``."""

    def rule(known: ClusterAtRest, c: Chain) -> Any:
        found: Any = known.use(key(c[-1].ref))
        for name in names:
            found = (found or {}).get(name)
        return _percent(found) if names[0] == "busyPercent" else found

    return rule


def _idle_since(known: ClusterAtRest, ref: WorkRef) -> About | None:
    found = known.idle.get(key(ref))
    # Agents tell how long; the moment is worked out by who is told, up to ten seconds later.
    return About(seconds(found["idleSince"]), 25) if found else None


# Of what waits


def _row_waits(known: ClusterAtRest, c: Chain) -> Waiting:
    return next(each for each in known.waiting if each.key == key(c[-1].ref))


def _same_reason(known: ClusterAtRest, c: Chain) -> list[Waiting]:
    """On the page of a project its own."""
    of = c[0].row.name if isinstance(c[0], views.ProjectView) else ""
    return [
        each for each in known.waiting if each.reason == c[-1].reason and of in ("", each.project)
    ]


# Of devices and nodes


def _holders(known: ClusterAtRest, pod: str) -> list[tuple[Json, Json]]:
    return [
        (device, holder)
        for device in known.devices.values()
        for holder in device["holders"]
        if holder["pod"] == pod
    ]


def _device(known: ClusterAtRest, c: Chain) -> Json:
    return next(d for d in known.devices.values() if d["device"] == c[-1].uuid and _at(c, d))


def _at(c: Chain, device: Json) -> bool:
    """Devices of nodes without an agent are called by their number alone."""
    around = next(each for each in reversed(c[:-1]) if hasattr(each, "node") or _is_node(each))
    node = around if _is_node(around) else around.node
    return bool(device["node"] == (node.name if _is_node(node) else node))


def _is_node(view: Any) -> bool:
    return type(view).__name__ == "NodeRow"


def _share(known: ClusterAtRest, c: Chain) -> Json:
    """The holder behind a share, on the device around it."""
    (found,) = (
        holder for holder in _device(known, c[:-1])["holders"] if holder["pod"] == c[-1].pod
    )
    return dict(found)


def _of_node(known: ClusterAtRest, name: str) -> list[Json]:
    return [device for device in known.devices.values() if device["node"] == name]


def _closed(known: ClusterAtRest, name: str) -> bool:
    return bool(known.nodes[name]["spec"].get("unschedulable"))


def _free(device: Json) -> float:
    return 1 - device["allocatedMilliGPU"] / 1000


def _node_free(known: ClusterAtRest, c: Chain) -> float:
    if _closed(known, c[-1].name):
        return 0.0
    return sum(_free(each) for each in _of_node(known, c[-1].name) if not each["trouble"])


def _cpu_total(known: ClusterAtRest, c: Chain) -> float:
    return cpu(known.nodes[c[-1].name]["status"]["allocatable"]["cpu"])


def _cpu_free(known: ClusterAtRest, c: Chain) -> float:
    taken = sum(
        cpu(each.get("cpu", "0"))
        for pod in known.pods.values()
        if pod["spec"].get("nodeName") == c[-1].name and not ended(pod)
        for each in requests(pod)
    )
    return _cpu_total(known, c) - taken


def _agent(name: str) -> Rule:
    """What the agent said of a device: no command shows it."""

    def rule(known: ClusterAtRest, c: Chain) -> Any:
        said = known.agent.devices.get(c[-1].uuid)
        return getattr(said, name) if said else None

    return rule


def _health(name: str) -> Rule:
    """The same of how a device is, in the row of the device and in its health."""

    def rule(known: ClusterAtRest, c: Chain) -> Any:
        said = known.agent.devices.get((c[-1] if hasattr(c[-1], "uuid") else c[0].device).uuid)
        return getattr(said.health, name) if said and said.health else None

    return rule


def _xid(known: ClusterAtRest, c: Chain) -> int | None:
    health = known.agent.devices[c[0].device.uuid].health
    return health.xids.get(c[-1].code) if health else None


def _gave_back(known: ClusterAtRest, c: Chain) -> list[tuple[Json, float]]:
    """The pods of a workload that have ended and held this device, and how much of it each."""
    view, ref, found = c[0], c[-1].ref, []
    for pod in known.pods.values():
        where = pod["metadata"]["namespace"], *owner_of(pod)
        if where != key(ref) or pod["spec"].get("nodeName") != view.node.name or not ended(pod):
            continue
        text = pod["metadata"].get("annotations", {}).get(ALLOCATION)
        devices = parse(text).devices if text else ()
        held = sum(each.milli for each in devices if each.device == view.device.uuid)
        if held:
            found.append((pod, held / 1000))
    return found


def _over(pod: Json) -> float:
    """When its last container ended."""
    states = [each["state"]["terminated"] for each in pod["status"]["containerStatuses"]]
    return max(seconds(each["finishedAt"]) for each in states)


def _process(name: str) -> Rule:
    """What the agent said of one process of a share on this device."""

    def rule(known: ClusterAtRest, c: Chain) -> Any:
        (found,) = (
            each
            for share in known.agent.shares.values()
            if (share.device, share.container) == (c[0].device.uuid, c[-1].container)
            for each in share.processes
            if each.pid == c[-1].pid
        )
        return getattr(found, name)

    return rule


def _share_busy(known: ClusterAtRest, c: Chain) -> About | None:
    return _percent(_share(known, c)["utilizationPercent"])


def _parts(known: ClusterAtRest) -> dict[str, float]:
    found: dict[str, float] = dict.fromkeys(get_args(State), 0.0)
    least = min([_PIECE, *(each.gpus / each.pods for each in known.waiting)])
    for used in known.used.values():
        found["busy"] += used["usedMilliGPU"] / 1000
        found["part-unused"] += used["unusedMilliGPU"] / 1000
        found["unknown"] += used["unknownMilliGPU"] / 1000
    idle = sum(each["milliGPU"] for each in known.idle.values()) / 1000
    found["idle"], found["part-unused"] = idle, found["part-unused"] - idle
    for device in known.devices.values():
        free = _free(device)
        shut = _closed(known, device["node"]) or device["trouble"]
        found["closed" if shut else "free" if free >= least else "free-in-pieces"] += free
    return found


# Of projects


def _project(known: ClusterAtRest, c: Chain) -> Json:
    found: Json = known.projects[c[-1].name]
    return found


def _borrowed_since(known: ClusterAtRest, c: Chain) -> About | None:
    """Since the last of its pods that got a place: those before are inside the quota."""
    if not float(_project(known, c)["status"]["borrowedGPU"]):
        return None
    names = {
        holder["pod"]
        for device in known.devices.values()
        for holder in device["holders"]
        if holder["project"] == c[-1].name
    }
    placed = [
        (seconds(condition(pod, "PodScheduled")["lastTransitionTime"]), name)
        for (_, name), pod in known.pods.items()
        if name in names
    ]
    quota, held = float(_project(known, c)["spec"]["quota"]), 0.0
    for at, name in sorted(placed):
        held += sum(holder["milliGPU"] for _, holder in _holders(known, name)) / 1000
        if held > quota + 1e-6:
            return About(at, 15)  # the chart has a figure each ten seconds
    raise AssertionError(f"{c[-1].name} borrows by its status and not by its pods")


def _busy_of_project(known: ClusterAtRest, c: Chain) -> float | None:
    used = known.used.get(c[-1].name)
    if used is None:
        return 0.0
    return None if used["unknownMilliGPU"] else used["usedMilliGPU"] / 1000


def _idle_of_project(known: ClusterAtRest, c: Chain) -> float:
    mine = [e["milliGPU"] for e in known.idle.values() if e["project"] == c[-1].name]
    return sum(mine) / 1000


# Of one workload


def _job_ref(c: Chain) -> WorkRef:
    return next(each.row.ref for each in c if isinstance(each, views.JobView))


def _pod(known: ClusterAtRest, c: Chain) -> Json:
    return dict(known.pods[_job_ref(c).namespace, c[-1].pod])


def _bound(pod: Json) -> float:
    """When it got its place, by the API server's clock; startTime is by the node's."""
    return seconds(condition(pod, "PodScheduled")["lastTransitionTime"])


def _only(known: ClusterAtRest, c: Chain, *names: str) -> Any:
    """A figure of the whole workload, which is that of its only pod."""
    if len(known.top_jobs[key(_job_ref(c))]["pods"]) != 1:
        return None
    found: Any = known.use(key(_job_ref(c)))
    for name in names:
        found = (found or {}).get(name)
    return found


def _cores(value: int | None) -> float | None:
    return None if value is None else value / 1000


def _placed_use(*names: str) -> Rule:
    return lambda known, c: _only(known, c, *names)


def _report(known: ClusterAtRest, c: Chain) -> Json:
    """Its use, as ``kubectl gpu report`` has it: also of what has ended."""
    ref = _job_ref(c)
    what = ref.name if _is_job(ref) else f"{ref.kind.lower()}/{ref.name}"
    found: Json = known.gpu("report", what, "-n", ref.namespace)["use"]
    return found


def _used(*names: str) -> Rule:
    def rule(known: ClusterAtRest, c: Chain) -> Any:
        found: Any = _report(known, c)
        for name in names:
            found = found[name]
        return _percent(found) if names[0] == "busyPercent" else found

    return rule


def _points(name: str, unit: float = 1) -> Rule:
    def rule(known: ClusterAtRest, c: Chain) -> Grows:
        points = _report(known, c)["curve"][name]
        return Grows(tuple(None if each is None else each / unit for each in points))

    return rule


def _ranks_start(known: ClusterAtRest, c: Chain) -> float:
    """No object keeps it: a look of this leader while the job was there."""
    first, last = c[0].row.created - 60, c[0].at
    return float(min(max(c[-1].start, first), last))


def _step(known: ClusterAtRest, c: Chain) -> Any:
    """When it was submitted, a condition changed, or its first pod started."""
    if isinstance(c[0], views.SweepView):
        return _now(known, c)  # a status does not tell when a trial failed
    ref, step = _job_ref(c), c[-1]
    job = known.jobs.get(key(ref))
    pods = known.of_owner(key(ref))
    if step.kind == "submitted":
        return min(
            seconds(each["metadata"]["creationTimestamp"]) for each in ([job] if job else pods)
        )
    if step.kind == "runs":
        return min(map(_bound, pods))
    told = (job or {}).get("status", {}).get("conditions", ())
    times = [seconds(e["lastTransitionTime"]) for e in told if e.get("reason") == step.words]
    if not times:  # what it waits for now, since its last step
        assert job is not None and job["status"]["reason"] == step.words, step
        times = [max(each.at for each in c[0].steps)]
    return step.at if step.at in times else times


# Of searches


def _search(known: ClusterAtRest, c: Chain) -> Json:
    row = next((each for each in c if hasattr(each, "ref")), None) or c[0].row
    found: Json = _status(known, row.ref)["sweep"]
    return found


def _trials(known: ClusterAtRest, c: Chain) -> dict[str, int]:
    search = _search(known, c)
    counts = search["counts"]
    failed = sum(counts.get(e, 0) for e in ("failed", "resultMissing", "objectiveNotFinite"))
    found = {name: counts.get(name, 0) for name in ("running", "succeeded", "pruned")}
    waiting = search["trials"] - failed - sum(found.values())
    return {"waiting": waiting, **found, "failed": failed}


def _value(known: ClusterAtRest, c: Chain) -> float:
    top = _search(known, c)["top"]
    return float(next(each["value"] for each in top if each["trial"] == c[-1].trial))


def _trial(known: ClusterAtRest, c: Chain) -> int:
    """Best first: so the place in the list says which it has to be."""
    search = _search(known, c)
    if isinstance(c[0], views.SweepView) and c[-1] in c[0].top:
        return int(search["top"][c[0].top.index(c[-1])]["trial"])
    return int(search["best"]["trial"])


def _now(known: ClusterAtRest, c: Chain) -> About:
    return About(time.time(), 60)


def _phases(known: ClusterAtRest, c: Chain) -> dict[str, int]:
    found: dict[str, int] = {}
    for job in known.jobs.values():
        phase = job["status"]["phase"]
        found[phase] = found.get(phase, 0) + 1
    for phase in _of_owners(known).values():
        found[phase] = found.get(phase, 0) + 1
    return found


def _of_owners(known: ClusterAtRest) -> dict[Key, str]:
    """Workloads that ask by themselves, with their phases."""
    found: dict[Key, str] = {}
    for (namespace, _), pod in known.pods.items():
        kind, name = owner_of(pod)
        if kind == "GPUJob" or not asks(pod) or ended(pod):
            continue
        runs = pod["status"].get("phase") == "Running"
        before = found.get((namespace, kind, name))
        found[namespace, kind, name] = "Running" if runs or before == "Running" else "Pending"
    return found


RULES: dict[str, Rule] = {
    **{f"{each.__name__}.at": _now for each in ANSWERS if "at" in each.__struct_fields__},
    **{
        f"{name}.idle_seconds": lambda known, c: 3600
        for name in ("OverviewView", "GpusView", "DeviceView")
    },
    **{f"{name}.offset": lambda known, c: 0 for name in ("QueueView", "JobsView", "SweepsView")},
    "OverviewView.gpus": lambda known, c: len(known.devices),
    "OverviewView.nodes": lambda known, c: len(known.top_nodes),
    "OverviewView.silent_agents": lambda known, c: 0,  # the one there is answers
    "OverviewView.idle_count": lambda known, c: len(known.idle),
    "OverviewView.advice_count": lambda known, c: sum(
        len(row["use"]["advice"]) for row in known.top_jobs.values() if row["use"]
    ),
    "PartRow.gpus": lambda known, c: _parts(known)[c[-1].state],
    "ProjectRow.quota": lambda known, c: float(_project(known, c)["spec"]["quota"]),
    "ProjectRow.limit": lambda known, c: (
        None if (limit := _project(known, c)["spec"].get("limit")) is None else float(limit)
    ),
    "ProjectRow.fair_share": lambda known, c: float(_project(known, c)["status"]["fairShareGPU"]),
    "ProjectRow.held": lambda known, c: float(_project(known, c)["status"]["allocatedGPU"]),
    "ProjectRow.borrowed": lambda known, c: float(_project(known, c)["status"]["borrowedGPU"]),
    "ProjectRow.borrowed_since": _borrowed_since,
    "ProjectRow.busy": _busy_of_project,
    "ProjectRow.idle": _idle_of_project,
    "ProjectRow.pending": lambda known, c: float(_project(known, c)["status"]["pendingGPU"]),
    "ProjectRow.waiting": lambda known, c: _project(known, c)["status"]["jobs"]["pending"],
    "ProjectRow.running": lambda known, c: sum(
        row["project"] == c[-1].name for row in known.top_jobs.values()
    ),
    "ReasonRow.jobs": lambda known, c: len(_same_reason(known, c)),
    "ReasonRow.gpus": lambda known, c: sum(each.gpus for each in _same_reason(known, c)),
    "ReasonRow.since": lambda known, c: About(
        min(each.since for each in _same_reason(known, c)), 2
    ),
    "IdleRow.gpus": lambda known, c: _held(known, c[-1].ref),
    "IdleRow.idle_since": lambda known, c: _idle_since(known, c[-1].ref),
    "IdleRow.gpu_hours": lambda known, c: About(known.idle[key(c[-1].ref)]["gpuHoursWasted"], 0.02),
    "AdviceRow.since": lambda known, c: next(
        seconds(each["since"]) if each["since"] else None
        for each in known.use(key(c[-1].ref))["advice"]
        if each["rule"] == c[-1].rule
    ),
    "NodeRow.memory_mib": lambda known, c: _of_node(known, c[-1].name)[0]["usableMiB"],
    "NodeRow.free": _node_free,
    "NodeRow.cpu_free": lambda known, c: About(_cpu_free(known, c), 0.06),
    "NodeRow.cpu_total": _cpu_total,
    "DeviceRow.index": lambda known, c: _device(known, c)["index"],
    "DeviceRow.memory_mib": lambda known, c: _device(known, c)["usableMiB"],
    "DeviceRow.free": lambda known, c: _free(_device(known, c)),
    "DeviceRow.busy": _agent("busy"),
    "DeviceRow.memory_used_mib": _agent("memory_mib"),
    "DeviceRow.celsius": _health("celsius"),
    **{
        f"HealthRow.{name}": _health(name)
        for name in (
            "watts",
            "nvlink_mib_a_second",
            "uncorrected_ecc",
            "remapped_after_corrected",
            "remapped_after_uncorrected",
        )
    },
    "XidRow.code": lambda known, c: c[-1].code if _xid(known, c) else None,
    "XidRow.times": _xid,
    **{f"ProcessRow.{name}": _process(name) for name in ("pid", "memory_mib", "busy")},
    "DeviceView.earlier_from": lambda known, c: About(known.led_since, 10),
    "EarlierRow.gpus": lambda known, c: max(gpus for _, gpus in _gave_back(known, c)),
    "EarlierRow.pods": lambda known, c: len(_gave_back(known, c)),
    "EarlierRow.since": lambda known, c: About(min(_bound(p) for p, _ in _gave_back(known, c)), 2),
    "EarlierRow.until": lambda known, c: About(max(_over(p) for p, _ in _gave_back(known, c)), 3),
    "ShareRow.gpus": lambda known, c: _share(known, c)["milliGPU"] / 1000,
    "ShareRow.busy": _share_busy,
    "ShareRow.memory_mib": lambda known, c: (
        known.use(key(c[-1].ref)).get("memoryMiB", {}).get("now")
    ),
    "ShareRow.cap_mib": lambda known, c: _share(known, c)["memoryMiB"],
    "ShareRow.idle_since": lambda known, c: _idle_since(known, c[-1].ref),
    "QueueView.total": lambda known, c: len(known.waiting),
    "QueueRow.position": lambda known, c: _row_waits(known, c).position,
    "QueueRow.pods": lambda known, c: _row_waits(known, c).pods,
    "QueueRow.gpus": lambda known, c: _row_waits(known, c).gpus,
    "QueueRow.since": lambda known, c: About(_row_waits(known, c).since, 2),
    "JobsView.phases": _phases,
    "JobsView.total": lambda known, c: len(known.jobs) + len(_of_owners(known)),
    "JobRow.asked": _asked,
    "JobRow.held": lambda known, c: _held(known, c[-1].ref),
    "JobRow.running": _counted("running"),
    "JobRow.succeeded": _counted("succeeded"),
    "JobRow.pods": _pods,
    "JobRow.created": _created,
    "JobRow.ended": _ended,
    "JobRow.busy": _of_use("busyPercent", "now"),
    "JobRow.memory_mib": _of_use("memoryMiB", "now"),
    "JobRow.idle_since": lambda known, c: _idle_since(known, c[-1].ref),
    "Step.at": _step,
    "Placed.devices": lambda known, c: tuple(
        sorted(device["index"] for device, _ in _holders(known, c[-1].pod))
    ),
    "Placed.gpus": lambda known, c: (
        sum(holder["milliGPU"] for _, holder in _holders(known, c[-1].pod)) / 1000
    ),
    "Placed.started": lambda known, c: _bound(_pod(known, c)),
    "Placed.busy": lambda known, c: _percent(_only(known, c, "busyPercent", "now")),
    "Placed.memory_mib": _placed_use("memoryMiB", "now"),
    "Placed.cap_mib": lambda known, c: sum(
        holder["memoryMiB"] for _, holder in _holders(known, c[-1].pod)
    ),
    "Placed.cpu_cores": lambda known, c: _cores(_only(known, c, "host", "cpuMilli")),
    "Placed.cpu_limit": lambda known, c: _cores(_only(known, c, "host", "cpuLimitMilli")),
    "Placed.ram_mib": _placed_use("host", "ramMiB"),
    "Placed.ram_limit_mib": _placed_use("host", "ramLimitMiB"),
    **{
        f"SlowestRow.{name}": lambda known, c, field=f"{name}Percent": (
            known.use(key(c[0].row.ref))["slowestRank"][field] / 100
        )
        for name in ("mean", "median")
    },
    "RanksRow.start": _ranks_start,
    "RanksRow.step_seconds": lambda known, c: 60,
    # No agent tells of those of the scene: not known, and never nought.
    "RankRow.busy": lambda known, c: tuple(None for _ in c[-1].busy),
    "CurveRow.start": lambda known, c: seconds(_report(known, c)["startedAt"]),
    "CurveRow.step_seconds": lambda known, c: _report(known, c)["curve"]["stepSeconds"],
    "CurveRow.busy": _points("busyPercent", 100),
    "CurveRow.memory_mib": _points("memoryMiB"),
    "CurveRow.cpu_cores": _points("cpuPercent", 100),
    "CurveRow.cpu_limit": lambda known, c: _cores(_report(known, c)["host"]["cpuLimitMilli"]),
    "Used.gpu_hours": _used("gpuHoursHeld"),
    "Used.used_gpu_hours": _used("gpuHoursUsed"),
    "Used.idle_gpu_hours": lambda known, c: None,  # of what runs it is not recorded
    "Used.mean": _used("busyPercent", "mean"),
    "Used.p50": _used("busyPercent", "p50"),
    "Used.p95": _used("busyPercent", "p95"),
    "Used.peak_mib": _used("memoryMiB", "peak"),
    "Used.cap_mib": _used("memoryMiB", "cap"),
    "SweepsView.total": lambda known, c: sum("sweep" in job["spec"] for job in known.jobs.values()),
    "SweepRow.trials": lambda known, c: _search(known, c)["trials"],
    "SweepRow.counts": _trials,
    "SweepRow.created": _created,
    "Ranked.trial": _trial,
    "Ranked.value": _value,
    **{f"ChartView.{name}": lambda known, c: BESIDE for name in _OF_CHART},
    "WhatIfAnswer.omitted": lambda known, c: 0,
    "WhatIfRow.pods": lambda known, c: next(
        each.pods for each in known.waiting if each.key[2] == re.split("[/ ]", c[-1].name)[-1]
    ),
}
