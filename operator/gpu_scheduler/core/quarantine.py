"""Which object makes a plan raise: a search that asks about parts of what there is.

A generator: it yields what to keep, is sent whether planning that raises, and returns the faulty
object after a few dozen questions, whatever the size of the cluster. One object at a time: of
several culprits the next is found once the first is left out. Whoever asks decides what happens
between two questions.

Objects are let in one by one, in halves: the first that makes it raise is under suspicion. Where
that takes a job and a node together, each is tried alone with some others of the other kind: the
one that raises with more of them is to blame, and of two that raise with each other only, the job.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias, TypeVar

from gpu_scheduler.core.model.request import JobKey, ProjectName

_SAMPLE = 8  # of the others that are asked about one by one


class ObjectType(StrEnum):
    """What a faulty object is."""

    JOB = "job"
    NODE = "node"
    PROJECT = "project"


class ObjectRef(NamedTuple):
    """An object: a GPUJob by its key, a node or a GPUProject by its name."""

    type: ObjectType
    name: str


@dataclass(frozen=True, slots=True)
class PlannedObjects:
    """What is planned with; jobs whose project is not among these are left out too."""

    projects: Sequence[ProjectName] = ()
    nodes: Sequence[str] = ()
    jobs: Sequence[JobKey] = ()


Search: TypeAlias = Generator[PlannedObjects, bool, ObjectRef | None]
Name = TypeVar("Name", bound=str)
_At: TypeAlias = Generator[PlannedObjects, bool, int]


def find_faulty(
    nodes: Sequence[str], jobs: Mapping[JobKey, ProjectName], projects: Sequence[ProjectName]
) -> Search:
    """The object without which less raises; None when nothing raises, or even nothing does.

    Args:
        nodes: by name.
        jobs: with the project of each; that of a pod without a GPUJob, too.
        projects: by name.
    """
    keys = tuple(jobs)
    if not (yield PlannedObjects(projects, nodes, keys)) or (yield PlannedObjects()):
        return None
    if (yield PlannedObjects(projects)):
        at = yield from _first(lambda n: PlannedObjects(projects[:n]), len(projects))
        return ObjectRef(ObjectType.PROJECT, projects[at])
    if (yield PlannedObjects(projects, nodes)):
        at = yield from _first(lambda n: PlannedObjects(projects, nodes[:n]), len(nodes))
        return ObjectRef(ObjectType.NODE, nodes[at])
    if (yield PlannedObjects(projects, (), keys)):
        at = yield from _first(lambda n: PlannedObjects(projects, (), keys[:n]), len(keys))
        return (yield from _job_or_project(keys[at], (), jobs, projects))
    return (yield from _job_or_node(nodes, jobs, projects))


def _job_or_node(
    nodes: Sequence[str], jobs: Mapping[JobKey, ProjectName], projects: Sequence[ProjectName]
) -> Search:
    """Neither kind raises without the other."""
    keys = tuple(jobs)
    at = yield from _first(lambda n: PlannedObjects(projects, nodes, keys[:n]), len(keys))
    job, some = keys[at], keys[: at + 1]
    at = yield from _first(lambda n: PlannedObjects(projects, nodes[:n], some), len(nodes))
    node = nodes[at]
    other_nodes = _sample([each for each in nodes if each != node])
    other_jobs = _sample([each for each in keys if each != job])
    of_job = yield from _raising(PlannedObjects(projects, (each,), (job,)) for each in other_nodes)
    of_node = yield from _raising(PlannedObjects(projects, (node,), (each,)) for each in other_jobs)
    if other_nodes and other_jobs:
        is_node = of_node * len(other_nodes) > of_job * len(other_jobs)
    elif other_nodes:
        is_node = 2 * of_job <= len(other_nodes)
    else:
        is_node = 2 * of_node > len(other_jobs)
    if is_node:
        return ObjectRef(ObjectType.NODE, node)
    return (yield from _job_or_project(job, nodes, jobs, projects))


def _job_or_project(
    job: JobKey,
    nodes: Sequence[str],
    jobs: Mapping[JobKey, ProjectName],
    projects: Sequence[ProjectName],
) -> Search:
    """The job, unless each job of its project raises and all others together do not."""
    project = jobs[job]
    own = [key for key, of in jobs.items() if of == project]
    others = tuple(key for key, of in jobs.items() if of != project)
    if len(own) == 1 or not others or project not in projects:
        return ObjectRef(ObjectType.JOB, job)
    if (yield PlannedObjects(projects, nodes, others)):
        return ObjectRef(ObjectType.JOB, job)
    for key in _sample(own):
        if not (yield PlannedObjects(projects, nodes, (key,))):
            return ObjectRef(ObjectType.JOB, job)
    return ObjectRef(ObjectType.PROJECT, project)


def _raising(parts: Iterable[PlannedObjects]) -> _At:
    """How many of these raise."""
    found = 0
    for part in parts:
        found += yield part
    return found


def _sample(those: Sequence[Name]) -> Sequence[Name]:
    """Some of them, from all parts of the list."""
    return those[:: -(-len(those) // _SAMPLE)] if those else those


def _first(keep: Callable[[int], PlannedObjects], count: int) -> _At:
    """The first that makes it raise, where ``keep(0)`` does not and ``keep(count)`` does."""
    good, bad = 0, count
    while bad - good > 1:
        middle = (good + bad) // 2
        if (yield keep(middle)):
            bad = middle
        else:
            good = middle
    return bad - 1
