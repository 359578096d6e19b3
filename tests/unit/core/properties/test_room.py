"""Nobody is evicted for room that is there, and nobody inside quota waits beside it.

Random histories, judged by a count of room of their own: ``PLANS`` says how many plans in all, and
``PLANS_SEED`` which; ``make plans`` plays 30,000. Printed are evictions by reason, pods that ended,
indexes evicted for the same job twice in a row (``again``, and ``at once``: in the plan after their
start), and evictions that would not have been needed had a later one come first (``in hindsight``).
"""

import os
from collections import Counter

import pytest
from tests.unit.builders import pod_shape, project, projects
from tests.unit.core.actions.test_preemption import evicted, started
from tests.unit.core.properties.judge import Judge, Verdict
from tests.unit.core.properties.play import Play, Pod
from tests.unit.core.workload import Work
from tests.unit.parts import EXPLORE_SEED

from gpu_scheduler.core.model.decision import ReservationReason
from gpu_scheduler.core.model.preemption_policy import STRICT, PreemptionPolicy

PLANS = int(os.environ.get("PLANS", "6000"))
SEED = int(os.environ.get("PLANS_SEED", "1")) if EXPLORE_SEED is None else EXPLORE_SEED
EACH = 300  # plans of one history
PARTS = 5
FAIR = PreemptionPolicy(5.0, 5.0, 30.0, 60.0)  # short, so that much becomes due
WHOLE, HALF, PAIR = pod_shape(1000), pod_shape(500), pod_shape(1000, count=2)


def judged(seed: int, preemption_policy: PreemptionPolicy) -> tuple[Verdict, int]:
    """The verdict on one history, and how many of its pods ended."""
    work = Work(seed, preemption_policy)
    judge = Judge(work.play)
    for result in work.plans(EACH):
        judge.look(result)
    return judge.verdict, work.ended


@pytest.mark.long
@pytest.mark.parametrize("preemption_policy", [STRICT, FAIR], ids=["strict", "fair"])
@pytest.mark.parametrize("part", range(PARTS))
def test_no_eviction_where_the_beneficiary_fits_and_no_wait_beside_room(
    part: int, preemption_policy: PreemptionPolicy
):
    histories = max(1, PLANS // EACH // PARTS)
    found: Counter[str] = Counter()
    for seed in range(SEED + part * histories, SEED + (part + 1) * histories):
        verdict, ended = judged(seed, preemption_policy)
        assert verdict.needless == [], f"seed {seed}"
        assert verdict.idle == [], f"seed {seed}"
        found += verdict.evicted
        found += Counter({"plans": verdict.plans, "ended": ended, "again": verdict.again})
        found += Counter({"at once": len(verdict.at_once), "in hindsight": verdict.hindsight})
    print({str(what): count for what, count in found.items()})  # noqa: T201
    assert found["reclaim"] + found["priority"] > 0


def test_the_judge_sees_an_eviction_that_nobody_needs():
    play = Play((2,), projects(project("a", 4000)))
    play.place(Pod("v", "a", WHOLE, priority=10), "n0/0").wait(Pod("w", "a", PAIR, priority=90))
    result = play.plan()
    assert evicted(result) == ["v"]
    judge = Judge(play)
    judge.look(result)
    assert judge.verdict.needless == []
    play.waiting = [Pod("w", "a", WHOLE, priority=90)]
    judge.look(result)
    assert judge.verdict.needless != []


def test_a_higher_priority_takes_nothing_from_its_project_while_it_fits_beside():
    """Room that pods inside quota wait for is no reason to evict: who borrows waits for it."""
    teams = project("own", 2000), project("keeps", 500), project("lent", 0)
    play = Play((2,), projects(*teams))
    play.place(Pod("k", "keeps", HALF), "n0/0", milli=500)
    play.place(Pod("v", "lent", HALF, priority=10), "n0/1", milli=500)
    play.wait(Pod("pair", "own", PAIR, created=990.0))
    play.wait(*(Pod(f"w{i}", "lent", pod_shape(125), priority=90, created=i) for i in range(4)))
    for _ in range(3):
        result = play.cycle()
        assert (evicted(result), started(result)) == ([], [])


def test_of_what_is_short_only_in_the_project_no_more_goes_than_is_short():
    play = Play((1, 1), projects(project("a", 0, 1500)))
    for name in ("v0", "v1"):
        play.place(Pod(name, "a", HALF, priority=10), "n0/0", milli=500)
    first = play.wait(Pod("w", "a", WHOLE, priority=90)).cycle()
    assert evicted(first) == ["v0"]
    assert [reservation.node for reservation in first.reservations] == ["n1"]
    assert started(play.cycle()) == ["w"]


def test_nobody_is_started_only_to_give_way_in_the_next_plan():
    play = Play((2,), projects(project("a", 2000)))
    play.place(Pod("v", "a", WHOLE, priority=10), "n0/1")
    play.wait(Pod("low", "a", WHOLE, priority=10), Pod("high", "a", PAIR, priority=90))
    first = play.cycle()
    assert (started(first), evicted(first)) == ([], ["v"])
    assert started(play.cycle()) == ["high"]
    assert play.cycle().evicts == ()


def test_who_comes_first_in_the_queue_is_not_evicted_for_who_comes_later():
    """Interactive before training, whatever the priorities: else they took turns."""
    play = Play((1,), projects(project("a", 0)))
    play.place(Pod("shell", "a", WHOLE, interactive=True, priority=10), "n0/0")
    play.wait(Pod("train", "a", WHOLE, priority=90))
    assert play.plan().evicts == ()
    play.wait(Pod("other", "a", WHOLE, interactive=True, priority=90))
    assert evicted(play.plan()) == ["shell"]


def test_room_is_promised_on_the_devices_where_it_comes():
    play = Play((2,), projects(project("a", 0), project("b", 0)))
    for i in range(2):
        play.place(Pod(f"v{i}", "b", WHOLE), f"n0/{i}")
    first = play.wait(Pod("w", "a", WHOLE)).cycle()
    (reservation,) = first.reservations
    (evict,) = first.evicts
    assert (reservation.reason, reservation.devices[0].device) == (
        ReservationReason.FREED,
        f"n0/{evict.job[-1]}",
    )


def test_who_has_room_reserved_may_start_in_room_reserved_for_somebody_else():
    """As everybody may who ends before that starts."""
    play = Play((2, 1), projects(*(project(name, 3000) for name in "abc")))
    play.reserve_after_seconds = 0.0
    play.place(Pod("c0", "c", WHOLE, seconds=100, limit=True), "n0/0")
    play.place(Pod("c1", "c", WHOLE, seconds=1, limit=True), "n0/1")
    play.place(Pod("c2", "c", WHOLE, seconds=200, limit=True), "n1/0")
    play.wait(Pod("big", "a", PAIR, created=1.0))
    play.wait(Pod("small", "b", WHOLE, created=2.0, seconds=10, limit=True))
    assert {h.job: h.node for h in play.cycle().reservations} == {"ns/big": "n0", "ns/small": "n1"}
    assert started(play.cycle()) == ["small"]
