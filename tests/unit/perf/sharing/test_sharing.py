"""Work of several projects, played: figures of small plays that can be worked out by hand."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.perf.replay.arrivals import cluster_of
from tests.perf.replay.trace import TraceNode
from tests.perf.sharing import workloads
from tests.perf.sharing.command import play
from tests.perf.sharing.figures import Figures, merged, percentile
from tests.perf.sharing.workload import SimulatedJob, Workload

from gpu_scheduler.core.model.preemption_policy import FAIR, STRICT, PreemptionPolicy
from gpu_scheduler.core.model.request import DeviceRequest, PodShape, Project, ProjectName

A, B = ProjectName("a"), ProjectName("b")
WHOLE = PodShape(devices=(DeviceRequest(0, 1, 1000),))
OPENB = Path(__file__).parents[3] / "fixtures" / "traces" / "openb"


def work(
    *jobs: SimulatedJob, gpus: int = 1, seconds: float = 1000.0, quota: int = 1000
) -> Workload:
    """One node; ``a`` is guaranteed one GPU and ``b`` borrows."""
    cluster = cluster_of([TraceNode("n", 64_000, 1 << 40, gpus, "gpu")])
    teams = {A: Project(A, quota), B: Project(B, 0)}
    return Workload("small", cluster, teams, jobs, seconds)


def test_what_an_evicted_pod_did_is_lost_and_done_again():
    """B runs for 100 s and 2 s of grace, a for 200 s, then b for 300 s anew."""
    jobs = (
        SimulatedJob("b", B, WHOLE, (300.0,)),
        SimulatedJob("a", A, WHOLE, (200.0,), arrives=100.0),
    )
    found = play(work(*jobs), STRICT)
    assert found.used_percent == pytest.approx(60.2)
    assert found.useful_percent == pytest.approx(50.0)
    assert found.lost_percent == pytest.approx(100 * 102 / 602)
    assert (found.ended, found.evictions.total(), found.guarantee_delays) == (2, 1, [2.0])


def test_a_checkpoint_saves_what_was_done_until_then():
    saved = SimulatedJob("b", B, WHOLE, (300.0,), checkpoint_seconds=40.0)
    found = play(work(saved, SimulatedJob("a", A, WHOLE, (200.0,), arrives=100.0)), STRICT)
    assert found.lost_percent == pytest.approx(100 * 22 / 522)  # since 80 s
    assert found.useful_percent == pytest.approx(50.0)


def test_a_guarantee_takes_its_seconds_and_the_grace():
    jobs = (
        SimulatedJob("b", B, WHOLE, (900.0,)),
        SimulatedJob("a", A, WHOLE, (200.0,), arrives=100.0),
    )
    found = play(work(*jobs, seconds=2000.0), FAIR)
    assert found.guarantee_delays == [62.0]
    assert found.evictions.total() == 1


def test_nobody_is_evicted_for_what_ends_in_time():
    jobs = (
        SimulatedJob("b", B, WHOLE, (150.0,)),
        SimulatedJob("a", A, WHOLE, (200.0,), arrives=100.0),
    )
    found = play(work(*jobs), FAIR)
    assert (found.guarantee_delays, found.evictions.total()) == ([50.0], 0)
    assert found.lost_percent == 0.0


def test_who_gave_way_twice_to_one_job_is_a_repeat():
    """By strict rules: each of the job's pods finds the one borrower in its way again."""
    jobs = (
        SimulatedJob("b", B, WHOLE, (400.0,)),
        SimulatedJob("a", A, WHOLE, (10.0, 10.0), arrives=100.0, parallelism=1),
    )
    assert play(work(*jobs), STRICT).repeats == 0  # the next pod is there at once
    split = replace(jobs[1], runs=(10.0,)), replace(jobs[1], name="a2", runs=(10.0,), arrives=200.0)
    found = play(work(jobs[0], *split), STRICT)
    assert (found.evictions.total(), found.repeats, found.most_evicted) == (2, 0, 2)


def test_a_project_is_short_while_another_holds_more_than_its_share():
    """Of two GPUs b holds both for 450 s of 900, a waits for one; then b's end."""
    jobs = (
        SimulatedJob("b", B, WHOLE, (450.0, 450.0)),
        SimulatedJob("a", A, WHOLE, (450.0,), arrives=0.0),
    )
    first = replace(jobs[1], arrives=1.0)
    never = PreemptionPolicy(1e9, 1e9, 0.0, 1e9)
    found = play(work(jobs[0], first, gpus=2, seconds=900.0, quota=0), never)
    assert found.short_of_shares == [pytest.approx(100 * 449 / 899, rel=0.01)]
    assert found.below_shares == []  # it waited for less than half of the window


def test_pods_beyond_the_parallelism_come_as_others_end():
    trials = SimulatedJob("b", B, WHOLE, (10.0,) * 30, parallelism=3)
    found = play(work(trials, gpus=3), FAIR)
    assert found.ended == 30
    assert found.waits == {"normal": {f"b-{n}": 0.0 for n in range(30)}}
    assert found.used_percent == pytest.approx(100 * 300 / 3000)


def test_a_play_is_the_same_each_time():
    workload = workloads.random_work(7, 0.9, hours=1 / 6)
    assert play(workload, FAIR).to_json() == play(workload, FAIR).to_json()
    assert workloads.random_work(7, 0.9, hours=1 / 6) == workload


@pytest.mark.parametrize("seed", range(5))
def test_quotas_of_random_work_are_no_more_than_there_is(seed: int):
    workload = workloads.random_work(seed, 0.9)
    assert sum(team.quota_milli for team in workload.projects.values()) <= 80_000
    assert {job.priority for job in workload.jobs} == {10, 30, 50, 70, 90}
    assert all(20 <= run <= 900 for job in workload.jobs for run in job.runs)


def test_interactive_jobs_come_by_day():
    workload = workloads.day_work(1, 0.5)
    notes = [job.arrives for job in workload.jobs if job.interactive]
    assert notes and all(8 <= time / 3600 < 19 for time in notes)
    assert any(job.arrives / 3600 < 8 for job in workload.jobs if not job.interactive)


def test_the_sweep_has_ten_thousand_trials_and_gangs_inside_their_quota():
    workload = workloads.sweep_work(1, 0.9)
    assert [len(job.runs) for job in workload.jobs if not job.gang] == [10_000]
    assert all(job.project == "models" for job in workload.jobs if job.gang)


def test_plays_of_several_seeds_are_put_together():
    one = Figures(50.0, 40.0, ended=2, waits={"high": {"a-0": 1.0}})
    other = Figures(100.0, 80.0, ended=3, waits={"high": {"a-0": 5.0}})
    both = merged([one, other])
    assert (both.used_percent, both.useful_percent, both.lost_percent) == (
        75.0,
        60.0,
        pytest.approx(20.0),
    )
    assert both.ended == 5
    assert both.waits_of("high") == [1.0, 5.0]
    assert both.later_than(merged([one, one]), "high") == [0.0, 4.0]


def test_percentiles():
    assert percentile([], 0.5) == 0.0
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile(list(map(float, range(1, 101))), 0.99) == 99.0
    values = [float(n) for n in range(60, 0, -1)]
    assert percentile(values, 0.5) == 30.0
    assert percentile(values, 0.99) == 60.0
    assert percentile([0.5], 0.99) == 0.5


NEVER = PreemptionPolicy(1e9, 1e9, 0.0, 1e9)


def test_what_was_done_before_counting_began_is_neither_used_nor_lost():
    jobs = (
        SimulatedJob("b", B, WHOLE, (900.0,)),
        SimulatedJob("a", A, WHOLE, (200.0,), arrives=100.0),
    )
    found = play(replace(work(*jobs), counted_from=90.0), STRICT)
    assert found.lost_percent == pytest.approx(100 * 12 / 910)  # of 102 s the last twelve


def test_all_waits_of_a_pod_are_one_and_who_never_started_waits_too():
    """B waits 30 s for its first start, 202 s for its second, and what comes last to the end."""
    jobs = (
        SimulatedJob("first", A, WHOLE, (30.0,)),
        SimulatedJob("b", B, WHOLE, (300.0,), priority=90),
        SimulatedJob("a", A, WHOLE, (200.0,), arrives=60.0),
        SimulatedJob("last", B, WHOLE, (900.0,), arrives=80.0, priority=10),
    )
    found = play(work(*jobs), STRICT)
    assert found.waits["high"] == {"b-0": 30.0 + 200.0}
    assert found.waits["low"] == {"last-0": 562.0 - 80.0}
    assert found.waits["normal"] == {"first-0": 0.0, "a-0": 2.0}
    short = play(work(*jobs, seconds=500.0), STRICT)  # who comes in the last 900 s is left out
    assert short.waits == {"high": {"b-0": 230.0}, "normal": {"first-0": 0.0}}


def test_a_guarantee_that_lapses_late_is_counted():
    """A second job, of a higher priority, takes over what the first one was owed for 200 s.

    The room was reserved for the first all the same, so the second is late, too.
    """
    jobs = (
        SimulatedJob("b", B, WHOLE, (900.0,)),
        SimulatedJob("a", A, WHOLE, (50.0,), arrives=100.0),
        SimulatedJob("above", A, WHOLE, (50.0,), arrives=300.0, priority=90),
    )
    found = play(work(*jobs), NEVER)
    assert found.guarantee_delays == [200.0, 0.0, 600.0, 0.0]


def test_a_gang_is_owed_its_places_as_one():
    """Each of its pods alone would be inside the quota of one GPU; the two are not."""
    gang = SimulatedJob("a", A, WHOLE, (50.0, 50.0), gang=True)
    assert play(work(gang, gpus=2), STRICT).guarantee_delays == []
    assert play(work(gang, gpus=2, quota=2000), STRICT).guarantee_delays == [0.0]
    two = replace(gang, gang=False)
    assert play(work(two, gpus=2), STRICT).guarantee_delays == [0.0]


def test_what_can_never_start_asks_for_nothing():
    large = SimulatedJob("large", A, PodShape(devices=(DeviceRequest(0, 2, 1000),)), (50.0,))
    gang = SimulatedJob("gang", A, WHOLE, (50.0,) * 3, gang=True)
    found = play(work(large, gang, quota=9000), FAIR)
    assert (found.waits, found.guarantee_delays, found.short_of_shares) == ({}, [], [])


def test_no_eviction_helps_where_others_are_inside_their_quota():
    """B and c hold the one GPU by their quotas for 300 s, while a waits inside its own."""
    jobs = (
        SimulatedJob("b", B, WHOLE, (300.0,)),
        SimulatedJob("a", A, WHOLE, (50.0,), arrives=100.0),
    )
    over = {A: Project(A, 1000), B: Project(B, 1000)}
    found = play(replace(work(*jobs), projects=over), STRICT)
    assert sorted(found.guarantee_delays) == [0.0, 200.0]
    assert found.helpable_delays == [0.0, 0.0]
    assert play(work(*jobs), NEVER).helpable_delays == [200.0]
