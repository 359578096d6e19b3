"""What if, on a dump: a GPUJob more, nodes like one there is, or another quota of a project.

Planned as it is and with the change; the answer is the difference. A reader who may not see
all is named their own work, and of the rest the number. Pure.
"""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from math import isfinite

from gpu_scheduler.api.names import API_VERSION
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Plan
from gpu_scheduler.core.model.request import JobKey, ProjectName, WaitingJob
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.dashboard.rows import Lead, LeadPiece
from gpu_scheduler.dashboard.views import WhatIfAnswer, WhatIfRow
from gpu_scheduler.dashboard.what_if import WhatIfTask
from gpu_scheduler.kube.times import timestamp
from gpu_scheduler.limits.bounded import quoted
from gpu_scheduler.simulate import what_if
from gpu_scheduler.simulate.cluster_objects import Objects, SimulationError
from gpu_scheduler.simulate.operator_rules import OPERATOR_NAMESPACE
from gpu_scheduler.simulate.simulated_cluster import scene_of
from gpu_scheduler.state.jobs.job import namespace_of

MOST_ROWS, MOST_NODES, MOST_GPUS, MOST_JOBS = 50, 64, 1_000_000, 10
STARTS = "starts now"
_HOSTNAME = "kubernetes.io/hostname"


class PlannedInput:
    """What plans are made from, and the plan as it is: made once, when it is asked for."""

    def __init__(self, given: PlanInput) -> None:
        self.given = given

    @cached_property
    def outcome(self) -> "_Outcome":
        """Without any change."""
        return _Outcome.of(plan(self.given))


def answer(task: WhatIfTask, planned: PlannedInput) -> WhatIfAnswer:
    """What would be.

    Raises:
        SimulationError: the question cannot be used.
    """
    asked, given = task.question, planned.given
    if sum((bool(asked.manifest), bool(asked.like_node), bool(asked.project))) != 1:
        raise SimulationError("ask for one of: a manifest, a node, a project")
    if asked.manifest:
        return _with_jobs(task, given)
    changed = _with_nodes(task, given) if asked.like_node else _with_quota(task, given)
    return _difference(task, planned, changed)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Of one plan: pods that start by job, why others wait, who gives way, what is taken."""

    starts: Counter[JobKey]
    waits: dict[JobKey, tuple[str, str]]
    evicted: int
    milli: int

    @classmethod
    def of(cls, planned: Plan) -> "_Outcome":
        waits = {each.job: (str(each.reason), each.message) for each in planned.waits}
        starts = Counter(place.job for place in planned.assignments)
        milli = sum(allocated.milli for place in planned.assignments for allocated in place.devices)
        return cls(starts, waits, len(planned.evicts), milli)


def _with_jobs(task: WhatIfTask, given: PlanInput) -> WhatIfAnswer:
    jobs, stopped = _waiting(task, given)
    planned = plan(replace(given, jobs=(*given.jobs, *jobs)))
    found, rows = _Outcome.of(planned), list(stopped)
    for job in jobs:
        reason, message = found.waits.get(job.key, ("", ""))
        starts = found.starts[job.key]
        if starts:
            message = "" if starts == len(job.pods) else f"{starts} of {len(job.pods)} pods"
            reason = STARTS
        rows.append(
            WhatIfRow(name=job.key, result=reason or "waits", message=message, pods=len(job.pods))
        )
    started = sum(row.result == STARTS for row in rows)
    if started == len(rows):
        said = "It would start now." if started == 1 else "All of them would start now."
    elif started:
        said = f"{started} of {len(rows)} would start now."
    elif len(rows) == 1:
        said = f"It would wait: {rows[0].message}" if rows[0].message else "It would wait."
    else:
        said = "None of them would start now."
    then = f"{_pods(found.evicted)} would give way." if found.evicted else ""
    return WhatIfAnswer(lead=_lead(said, then), rows=tuple(rows[:MOST_ROWS]), omitted=0)


def _waiting(task: WhatIfTask, given: PlanInput) -> tuple[list[WaitingJob], list[WhatIfRow]]:
    """The pasted GPUJobs as the planner would see them, and those that it never would."""
    objects, now = Objects(), timestamp(datetime.fromtimestamp(given.now, UTC))
    what_if.add_gpujobs(objects, task.question.manifest, now)
    bodies = list(objects.of("GPUJob"))
    if len(bodies) > MOST_JOBS:
        raise SimulationError(f"at most {MOST_JOBS} GPUJobs at a time")
    owners = given.owners()
    for body in bodies:
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
        if not task.visible.sees(namespace):
            raise SimulationError(f"metadata.namespace: you may not see {quoted(namespace)}")
        if JobKey(f"{namespace}/{name}") in owners:
            raise SimulationError(f"metadata.name: there is a job {name} already")
    for name, spec in task.classes.items():
        objects.put("GPUClass", _body("GPUClass", name, now, spec))
    for project in sorted(set(task.owners.values())):
        own = sorted(each for each, owner in task.owners.items() if owner == project)
        spec = {"quota": 1, "namespaces": own}
        objects.put("GPUProject", _body("GPUProject", project, now, spec))
    scene = scene_of(objects, OPERATOR_NAMESPACE, now)
    stopped = [
        WhatIfRow(name=each.job, result=str(each.reason), message=each.message, pods=0)
        for each in scene.stopped
    ]
    return scene.state.waiting_jobs(), stopped


def _body(kind: str, name: str, now: str, spec: dict[str, object]) -> dict[str, object]:
    meta = {"name": name, "uid": f"what-if-{kind}-{name}", "creationTimestamp": now}
    return {
        "apiVersion": API_VERSION, "kind": kind, "metadata": meta, "spec": spec, "status": {}
    }  # fmt: skip


def _with_nodes(task: WhatIfTask, given: PlanInput) -> PlanInput:
    asked, cluster = task.question, given.cluster
    if not 1 <= asked.nodes <= MOST_NODES:
        raise SimulationError(f"nodes: 1 to {MOST_NODES}")
    names = [node.name for node in cluster.nodes]
    if not (task.visible.all or task.visible.inventory) or asked.like_node not in names:
        raise SimulationError(f"likeNode: there is no node {quoted(asked.like_node)} with GPUs")
    return replace(given, cluster=more_nodes(cluster, names.index(asked.like_node), asked.nodes))


def more_nodes(cluster: Cluster, like: int, count: int) -> Cluster:
    """A cluster with so many more nodes, empty and ready, like the one of this index."""
    node, devices = cluster.nodes[like], range(cluster.first[like], cluster.first[like + 1])
    found = cluster.copy()
    for name in ("nodes", "first", "dev_id", "dev_model", "dev_usable_mib", "dev_compute"):
        setattr(found, name, list(getattr(cluster, name)))
    found.dev_healthy = list(cluster.dev_healthy)
    for number in range(1, count + 1):
        called = f"{node.name}-what-if-{number}"
        labels = {**node.labels, _HOSTNAME: called}
        found.add_empty(
            replace(
                node, name=called, labels=labels, unschedulable="", foreign=False, tainted=False
            )
        )
        for device in devices:
            found.dev_id.append(f"{called}-{device - devices.start}")
            found.dev_model.append(cluster.dev_model[device])
            found.dev_usable_mib.append(cluster.dev_usable_mib[device])
            found.dev_compute.append(cluster.dev_compute[device])
            found.dev_healthy.append(True)
            found.free_milli.append(DEVICE_MILLI)
            found.free_mib.append(cluster.dev_usable_mib[device])
        found.first.append(len(found.dev_id))
    return found


def _with_quota(task: WhatIfTask, given: PlanInput) -> PlanInput:
    name, quota = ProjectName(task.question.project), task.question.quota
    if quota is None or not (isfinite(quota) and 0 <= quota <= MOST_GPUS):
        raise SimulationError(f"quota: 0 to {MOST_GPUS:,} GPUs")
    own = any(owner == name and task.visible.sees(each) for each, owner in task.owners.items())
    project = given.projects.get(name)
    if project is None or not (task.visible.all or task.visible.inventory or own):
        raise SimulationError(f"project: there is no project {quoted(name)}")
    milli = round(quota * DEVICE_MILLI)
    if project.limit_milli is not None and project.limit_milli < milli:
        limit = project.limit_milli / DEVICE_MILLI
        raise SimulationError(f"quota: the limit of {name} is {limit:g} GPUs, which is less")
    changed = replace(project, quota_milli=milli)
    return replace(given, projects={**given.projects, name: changed})


def _difference(task: WhatIfTask, planned: PlannedInput, changed: PlanInput) -> WhatIfAnswer:
    given, before, after = planned.given, planned.outcome, _Outcome.of(plan(changed))
    pods = {job.key: len(job.pods) for job in given.jobs}
    rows, others, jobs = list[WhatIfRow](), 0, 0
    for job in given.jobs:
        key, now = job.key, after.starts[job.key]
        if now == before.starts[key]:
            continue
        jobs += now > before.starts[key]
        if not task.visible.sees(namespace_of(key)):
            others += 1
            continue
        reason, message = after.waits.get(key, ("waits", ""))
        if now:
            reason, message = STARTS, "" if now == pods[key] else f"{now} of {pods[key]} pods"
        name = given.cluster.name_of(key)
        rows.append(WhatIfRow(name=name, result=reason, message=message, pods=pods[key]))
    said = _said(jobs, after.milli - before.milli)
    more = after.evicted - before.evicted
    then = f"{_pods(more)} would give way." if more > 0 else ""
    shown = tuple(rows[:MOST_ROWS])
    return WhatIfAnswer(lead=_lead(said, then), rows=shown, omitted=others + len(rows) - len(shown))


def _said(jobs: int, milli: int) -> str:
    if not jobs:
        return "No job that waits would start because of it."
    one = f"{jobs} more job{'' if jobs == 1 else 's'} would start now"
    amount = f"{milli / DEVICE_MILLI:.2f}".rstrip("0").rstrip(".")
    return f"{one}, with {amount} GPU{'' if amount == '1' else 's'}." if milli > 0 else f"{one}."


def _pods(number: int) -> str:
    return f"{number} pod{'' if number == 1 else 's'}"


def _lead(first: str, then: str) -> Lead:
    return Lead(first=(LeadPiece(text=first),), then=(LeadPiece(text=then),) if then else ())
