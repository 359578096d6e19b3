"""Work of several projects, played: figures of small plays that can be worked out by hand."""

from dataclasses import replace
from pathlib import Path

import pytest

from gpu_scheduler.core.model.promises import FAIR, STRICT, Promises
from gpu_scheduler.core.model.request import DeviceRequest, PodKind, Project, ProjectName
from gpu_scheduler.simulate.arrivals import cluster_of
from gpu_scheduler.simulate.sharing import workloads
from gpu_scheduler.simulate.sharing.command import play
from gpu_scheduler.simulate.sharing.figures import Figures, merged, percentile
from gpu_scheduler.simulate.sharing.workload import Job, Workload
from gpu_scheduler.simulate.trace import TraceNode

A, B = ProjectName("a"), ProjectName("b")
WHOLE = PodKind(devices=(DeviceRequest(0, 1, 1000),))
OPENB = Path(__file__).parents[2] / "fixtures" / "traces" / "openb"


def work(*jobs: Job, gpus: int = 1, seconds: float = 1000.0, quota: int = 1000) -> Workload:
    """One node; ``a`` is guaranteed one GPU and ``b`` borrows."""
    cluster = cluster_of([TraceNode("n", 64_000, 1 << 40, gpus, "gpu")])
    teams = {A: Project(A, quota), B: Project(B, 0)}
    return Workload("small", cluster, teams, jobs, seconds)


def test_what_an_evicted_pod_did_is_lost_and_done_again():
    """B runs for 100 s and 2 s of grace, a for 200 s, then b for 300 s anew."""
    jobs = Job("b", B, WHOLE, (300.0,)), Job("a", A, WHOLE, (200.0,), arrives=100.0)
    found = play(work(*jobs), STRICT)
    assert found.used_percent == pytest.approx(60.2)
    assert found.useful_percent == pytest.approx(50.0)
    assert found.lost_percent == pytest.approx(100 * 102 / 602)
    assert (found.ended, found.evictions.total(), found.guarantee_delays) == (2, 1, [2.0])


def test_a_checkpoint_saves_what_was_done_until_then():
    saved = Job("b", B, WHOLE, (300.0,), checkpoint_seconds=40.0)
    found = play(work(saved, Job("a", A, WHOLE, (200.0,), arrives=100.0)), STRICT)
    assert found.lost_percent == pytest.approx(100 * 22 / 522)  # since 80 s
    assert found.useful_percent == pytest.approx(50.0)


def test_a_guarantee_takes_its_seconds_and_the_grace():
    jobs = Job("b", B, WHOLE, (900.0,)), Job("a", A, WHOLE, (200.0,), arrives=100.0)
    found = play(work(*jobs, seconds=2000.0), FAIR)
    assert found.guarantee_delays == [62.0]
    assert found.evictions.total() == 1


def test_nobody_is_evicted_for_what_ends_in_time():
    jobs = Job("b", B, WHOLE, (150.0,)), Job("a", A, WHOLE, (200.0,), arrives=100.0)
    found = play(work(*jobs), FAIR)
    assert (found.guarantee_delays, found.evictions.total()) == ([50.0], 0)
    assert found.lost_percent == 0.0


def test_who_gave_way_twice_to_one_job_is_a_repeat():
    """By strict rules: each of the job's pods finds the one borrower in its way again."""
    jobs = (
        Job("b", B, WHOLE, (400.0,)),
        Job("a", A, WHOLE, (10.0, 10.0), arrives=100.0, parallelism=1),
    )
    assert play(work(*jobs), STRICT).repeats == 0  # the next pod is there at once
    split = replace(jobs[1], runs=(10.0,)), replace(jobs[1], name="a2", runs=(10.0,), arrives=200.0)
    found = play(work(jobs[0], *split), STRICT)
    assert (found.evictions.total(), found.repeats, found.most_evicted) == (2, 0, 2)


def test_a_project_is_short_while_another_holds_more_than_its_share():
    """Of two GPUs b holds both for 450 s of 900, a waits for one; then b's end."""
    jobs = Job("b", B, WHOLE, (450.0, 450.0)), Job("a", A, WHOLE, (450.0,), arrives=0.0)
    first = replace(jobs[1], arrives=1.0)
    never = Promises(1e9, 1e9, 0.0, 1e9)
    found = play(work(jobs[0], first, gpus=2, seconds=900.0, quota=0), never)
    assert found.share_errors == [pytest.approx(100 * 449 / 899, rel=0.01)]


def test_pods_beyond_the_parallelism_come_as_others_end():
    trials = Job("b", B, WHOLE, (10.0,) * 30, parallelism=3)
    found = play(work(trials, gpus=3), FAIR)
    assert found.ended == 30
    assert found.waits == [0.0] * 30
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
    one, other = Figures(50.0, 40.0, ended=2, waits=[1.0]), Figures(100.0, 80.0, ended=3)
    both = merged([one, other])
    assert (both.used_percent, both.useful_percent, both.lost_percent) == (
        75.0,
        60.0,
        pytest.approx(20.0),
    )
    assert (both.ended, both.waits) == (5, [1.0])


def test_percentiles():
    assert percentile([], 0.5) == 0.0
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile(list(map(float, range(1, 101))), 0.99) == 99.0
    values = [float(n) for n in range(60, 0, -1)]
    assert percentile(values, 0.5) == 30.0
    assert percentile(values, 0.99) == 60.0
    assert percentile([0.5], 0.99) == 0.5
