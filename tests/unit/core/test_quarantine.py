"""Which object makes a plan raise, asked of a made-up planner."""

from collections.abc import Callable
from math import log2

from hypothesis import given
from hypothesis import strategies as st

from gpu_scheduler.core.model.request import JobKey, ProjectName
from gpu_scheduler.core.quarantine import ObjectRef, ObjectType, PlannedObjects, find_faulty

NODES = [f"n{i:03}" for i in range(100)]
PROJECTS = [ProjectName(f"p{i}") for i in range(5)]
JOBS = {JobKey(f"p{i % 5}/j{i:03}"): PROJECTS[i % 5] for i in range(200)}


class Planner:
    """Raises when ``bad`` says so of what is kept; left out is what was found before."""

    def __init__(self, bad: Callable[[set[str], set[str], set[str]], bool]) -> None:
        self.bad, self.asked, self.gone = bad, 0, set[ObjectRef]()

    def raises(self, kept: PlannedObjects) -> bool:
        self.asked += 1
        jobs = {key for key in kept.jobs if JOBS[key] in kept.projects}
        return self.bad(set(kept.projects), set(kept.nodes), jobs)

    def find(self) -> ObjectRef | None:
        self.asked = 0
        out = {each.name for each in self.gone}
        projects = [name for name in PROJECTS if name not in out]
        jobs = {k: p for k, p in JOBS.items() if k not in out and p in projects}
        search = find_faulty([name for name in NODES if name not in out], jobs, projects)
        try:
            question = next(search)
            while True:
                question = search.send(self.raises(question))
        except StopIteration as done:
            found: ObjectRef | None = done.value
        if found is not None:
            self.gone.add(found)
        return found

    def find_all(self) -> set[ObjectRef]:
        while self.find() is not None:
            assert len(self.gone) < 20
        return self.gone


def jobs(*names: str) -> set[ObjectRef]:
    return {ObjectRef(ObjectType.JOB, name) for name in names}


def nodes(*names: str) -> set[ObjectRef]:
    return {ObjectRef(ObjectType.NODE, name) for name in names}


@given(st.sampled_from(sorted(JOBS)), st.booleans())
def test_a_job_is_found_whether_it_takes_a_node_or_not(bad: JobKey, alone: bool) -> None:
    planner = Planner(lambda _, nodes, jobs: bad in jobs and (alone or bool(nodes)))
    assert planner.find_all() == jobs(bad)


@given(st.sampled_from(NODES), st.booleans())
def test_a_node_is_found_whether_it_takes_a_job_or_not(bad: str, alone: bool) -> None:
    planner = Planner(lambda _, nodes, jobs: bad in nodes and (alone or bool(jobs)))
    assert planner.find_all() == nodes(bad)


def test_a_project_is_found_by_itself_and_by_its_jobs() -> None:
    for takes_jobs in (False, True):
        planner = Planner(
            lambda names, nodes, jobs, takes_jobs=takes_jobs: (  # type: ignore[misc]
                any(key.startswith("p2/") for key in jobs) and bool(nodes)
                if takes_jobs
                else "p2" in names
            )
        )
        assert planner.find_all() == {ObjectRef(ObjectType.PROJECT, "p2")}


@given(
    st.sets(st.sampled_from(sorted(JOBS)), max_size=3), st.sets(st.sampled_from(NODES), max_size=3)
)
def test_several_are_found_one_after_the_other(bad: set[JobKey], sick: set[str]) -> None:
    planner = Planner(
        lambda _, nodes, jobs: bool(bad & jobs and nodes) or bool(sick & nodes and jobs)
    )
    assert planner.find_all() == jobs(*bad) | nodes(*sick)


def test_of_a_job_and_a_node_that_cannot_bear_each_other_the_job_goes() -> None:
    planner = Planner(lambda _, nodes, jobs: "n050" in nodes and "p1/j101" in jobs)
    assert planner.find_all() == jobs("p1/j101")


def test_nobody_is_blamed_for_what_raises_without_anybody_or_not_at_all() -> None:
    assert Planner(lambda *_: True).find() is None
    assert Planner(lambda *_: False).find() is None


def test_the_only_job_on_several_nodes_and_the_only_node_of_several_jobs() -> None:
    for bad, kind in (("only", ObjectType.JOB), ("n1", ObjectType.NODE)):
        some = (
            {JobKey("only"): PROJECTS[0]}
            if kind is ObjectType.NODE
            else {JobKey("only"): PROJECTS[0]}
        )
        search = find_faulty(["n0", "n1", "n2"], some, PROJECTS[:1])
        try:
            kept = next(search)
            while True:
                there = {*kept.jobs, *kept.nodes}
                kept = search.send(bool(kept.jobs and kept.nodes and bad in there))
        except StopIteration as done:
            assert done.value == ObjectRef(kind, bad)


def test_a_few_dozen_questions_are_enough() -> None:
    for bad in ("n077", "p3/j123"):
        planner = Planner(
            lambda _, nodes, jobs, bad=bad: bad in nodes | jobs and bool(nodes and jobs)
        )  # type: ignore[misc]
        planner.find()
        assert planner.asked <= 5 + 2 * log2(len(JOBS)) + 3 * 8 + 4
