"""Queues that are kept from cycle to cycle are those that would be made anew."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.builders import ClusterBuilder, job, pod_shape, project, projects

from gpu_scheduler.core.model.affinity import AffinityInfo, AffinityRules, AffinityTerm, PodSelector
from gpu_scheduler.core.model.decision import Assignment, Reason
from gpu_scheduler.core.model.pod_request import PodRequests
from gpu_scheduler.core.model.request import Gang, Project, ProjectName, WaitingJob
from gpu_scheduler.core.model.requirement import Requirement
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.queue.pod_group import PodGroup
from gpu_scheduler.core.queue.queues import FEW, Queue, Queues

HALF, WHOLE = pod_shape(500), pod_shape(1000)


class Counting:
    """Says of groups of more than one GPU that they can never start, and counts how often."""

    def __init__(self) -> None:
        self.asked = 0

    def never(self, group: PodGroup) -> Reason | None:
        self.asked += 1
        return Reason.UNSATISFIABLE if group.needs.least_milli > 1000 else None


def pod_requests() -> PodRequests:
    return PodRequests(Snapshot(ClusterBuilder().node("a", 4).obj()))


def shown(queues: list[Queue]) -> list[object]:
    """Everything about queues, without the objects in which it is kept."""
    found: list[object] = []
    for queue in queues:
        groups = [
            (g.job, g.project, g.index, g.position, g.never, g.startable, g.uids)
            for g in queue.groups()
        ]
        counts = sorted(
            (s.needs.least_milli, s.priority, s.startable, n) for s, n in queue.counts.items()
        )
        firsts = [group.first_uid for group in queue.firsts()]
        found.append((queue.project, groups, counts, firsts, [run.job for run in queue.heads]))
    return found


@st.composite
def cycles(draw: st.DrawFn) -> list[tuple[dict[ProjectName, Project], list[WaitingJob]]]:
    """Job lists, each of jobs that were there before and of others, and now and then projects."""
    there: list[WaitingJob] = []
    teams = projects(project("team-a"), project("team-b"))
    found = []
    for n in range(draw(st.integers(1, 6))):
        there = [one for one in there if draw(st.booleans())]
        for i in range(draw(st.integers(0, 4))):
            one = job(
                f"j{n}-{i}",
                draw(st.sampled_from([HALF, WHOLE])),
                draw(st.integers(0, 3)),
                project=draw(st.sampled_from(["team-a", "team-b", "nobody"])),
                priority=draw(st.sampled_from([40, 50])),
                created=draw(st.integers(0, 3)),
                avoid=draw(st.sampled_from([(), ("a",)])),
            )
            if len(one.pods) > 1 and draw(st.booleans()):
                one = replace(one, gang=Gang(2, 2))
            there.append(one)
        if draw(st.integers(0, 3)) == 0:  # the same, in other objects
            there = [replace(one) for one in there]
        if draw(st.integers(0, 5)) == 0:
            teams = projects(project("team-a", draw(st.integers(0, 3))), project("nobody"))
        found.append((teams, draw(st.permutations(there))))
    return found


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(cycles(), st.randoms(use_true_random=False))
def test_they_are_those_that_would_be_made_anew(played, random):
    known = pod_requests()
    kept = Queues(known, {})
    for teams, jobs in played:
        kept = kept.renewed(known, teams)
        queues, orphans = kept.line_up(jobs, Counting())
        fresh = Queues(known, teams).line_up(jobs, Counting())
        assert shown(queues) == shown(fresh[0])
        assert orphans == fresh[1]
        for queue in queues:  # some start, and others have their turn later
            for group in list(queue.groups()):
                if random.random() < 0.3:
                    group.assignments = (Assignment(group.job.key, group.first_uid, "a", ()),)
                    kept.started.append(group)
            queue.until = random.choice([None, (True,)])


def test_of_jobs_that_stay_nothing_is_made_again():
    queues, judge = Queues(pod_requests(), projects()), Counting()
    jobs = [job(f"j{i}", HALF, 2, created=i) for i in range(5)]
    before = queues.line_up(jobs, judge)[0][0]
    groups = list(before.groups())
    jobs[2:3] = []
    jobs += [job("new", HALF, 2, created=9)]
    after = list(queues.line_up(jobs, judge)[0][0].groups())
    assert all(new is old for new, old in zip(after, groups[:4] + groups[6:], strict=False))
    assert len(after) == 10
    assert judge.asked == 1  # they are all alike


def test_they_hold_as_long_as_nodes_and_projects_stay():
    known = pod_requests()
    queues = Queues(known, projects())
    queues.line_up([job("j", HALF)], Counting())
    assert queues.renewed(known, projects()) is queues
    assert queues.renewed(pod_requests(), projects()) is not queues
    assert queues.renewed(known, projects(project(quota_milli=1))) is not queues


def test_signatures_that_nobody_waits_for_are_not_remembered_for_ever(monkeypatch):
    monkeypatch.setattr("gpu_scheduler.core.queue.queues.MOST_SIGNATURES", 5)
    known = pod_requests()
    queues = Queues(known, projects())
    held = [
        queues.line_up([job("j", HALF, avoid=(f"n{n}",))], Counting())
        and queues.renewed(known, projects()) is queues
        for n in range(10)
    ]
    assert held == [True] * 7 + [False] * 3


@pytest.mark.parametrize("count", [3, FEW + 1])
def test_many_that_come_and_go_find_their_places_as_few_do(count: int):
    queues = Queues(pod_requests(), projects())
    jobs = [job(f"j{i}", HALF, created=-i) for i in range(3 * count)]
    (queue,) = queues.line_up(jobs[count:], Counting())[0]
    queues.line_up(jobs[: 2 * count], Counting())
    assert [group.job for group in queue.groups()] == jobs[2 * count - 1 :: -1]
    assert [run.job for run in queue.heads] == jobs[2 * count - 1 :: -1]
    assert queues.line_up([], Counting()) == ([], [])


def test_a_plan_that_raised_leaves_nothing_half_made():
    class Raising:
        def never(self, group: PodGroup) -> None:
            raise RuntimeError

    known = pod_requests()
    queues = Queues(known, projects())
    queues.line_up([job("a", HALF)], Counting())
    with pytest.raises(RuntimeError):
        queues.line_up([job("b", WHOLE)], Raising())
    assert queues.renewed(known, projects()) is not queues


AWAY = AffinityTerm("zone", PodSelector(None, (Requirement("app", "In", ("web",)),)))


def labelled(name: str, app: str, rules: AffinityRules | None = None) -> WaitingJob:
    one = job(name, HALF)
    affinity = AffinityInfo("ns", (("app", app), ("job", name)), rules)
    return replace(one, pods=tuple(replace(pod, affinity=affinity) for pod in one.pods))


def test_labels_tell_pods_apart_only_where_a_rule_asks_for_them():
    jobs = [labelled(f"j{n}", "web" if n < 2 else "train") for n in range(6)]
    known = pod_requests()
    queues = Queues(known, projects())
    (queue,) = queues.line_up(jobs, Counting())[0]
    assert sorted(queue.counts.values()) == [6]
    ruled = queues.renewed(known, projects(), {AWAY})
    (queue,) = ruled.line_up(jobs, Counting())[0]
    assert sorted(queue.counts.values()) == [1, 1, 4]
    assert ruled.renewed(known, projects()) is ruled, "the rule may come again"
    own = [labelled(f"near-{n}", "db", AffinityRules(affinity=(AWAY,))) for n in range(2)]
    (queue,) = ruled.line_up([*jobs, *own], Counting())[0]
    assert sorted(queue.counts.values()) == [1, 1, 1, 1, 4]


def test_terms_that_are_gone_are_not_remembered_for_ever(monkeypatch):
    monkeypatch.setattr("gpu_scheduler.core.queue.queues.MOST_TERMS", 3)
    queues = Queues(known := pod_requests(), projects())
    for n in range(5):
        queues = queues.renewed(known, projects(), {replace(AWAY, owner_namespace=f"ns-{n}")})
    two = {replace(AWAY, owner_namespace=f"ns-{n}") for n in (2, 4)}
    assert queues.renewed(known, projects(), two) is not queues


def test_signatures_can_be_passed_over_but_for_jobs_for_which_room_is_kept():
    jobs = [job("a", HALF, 2), job("b", WHOLE), job("c", HALF, 2), job("d", HALF, 2)]
    queue = Queues(pod_requests(), projects()).line_up(jobs, Counting())[0][0]
    passed = {next(queue.groups()).signature}
    assert [g.first_uid for g in queue.groups(passed)] == ["b-0"]
    assert [g.first_uid for g in queue.groups(passed, {jobs[2].key})] == ["b-0", "c-0", "c-1"]
    growing, found = set(), []
    for group in queue.groups(growing):
        found.append(group.first_uid)
        growing.add(group.signature)
    assert found == ["a-0", "b-0"]
