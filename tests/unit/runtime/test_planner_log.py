"""The planner's log: off, it says nothing; on, it says enough and not more."""

import logging
import re
from collections.abc import Iterator

import pytest
from tests.unit.builders import ClusterBuilder, job, pod_shape, project, projects
from tests.unit.core.properties.play import Play, Pod

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.core.steps import STEPS
from gpu_scheduler.runtime import planner_log
from gpu_scheduler.runtime.planner_log import MOST, log, write


@pytest.fixture
def on(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    level = log.level
    planner_log.switch_on()
    yield caplog
    log.setLevel(level)


def told(given: PlanInput) -> None:
    ticks = iter(range(1000))
    session = PlannerCache(lambda: next(ticks) / 1000)
    result = plan(given, session)
    write(7, given, result, session.readings, {wait.job for wait in result.waits})


def crowd(jobs: int) -> PlanInput:
    cluster = ClusterBuilder().node("a", 1).obj()
    waiting = [job(f"j{n}", pod_shape(1000), created=float(n)) for n in range(jobs)]
    return PlanInput(cluster, projects(project(quota_milli=9000)), waiting, now=100.0)


def test_it_is_off_even_where_everything_else_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    told(crowd(3))
    assert caplog.messages == []


def test_a_cycle_and_its_decisions_are_told_with_what_they_were_made_from(
    on: pytest.LogCaptureFixture,
) -> None:
    told(crowd(2))
    cycle, start, wait = on.messages
    assert cycle.startswith(
        "cycle 7: at 100.000: 2 jobs wait on 1 nodes; 1 start, 0 give way, 0 reservations, 1 wait;"
    )
    assert [name for name, _ in re.findall(r"([a-z-]+) (\d+\.\d)[,)]", cycle)] == [*STEPS]
    assert start == (
        "cycle 7: start ns/j0 pod j0-0 on a (1000 milli, 40448 MiB of a/0): waited 100.0 s, "
        "priority 50, project team-a held 0: quota 9, limit none, fair share 1"
    )
    assert wait.startswith("cycle 7: ns/j1 waits: WaitingForGPU, number 1: needs 1 GPU; ")
    assert wait.endswith("; project team-a held 0: quota 9, limit none, fair share 1")


def test_evictions_and_reservations_are_told(on: pytest.LogCaptureFixture) -> None:
    play = Play((1,), projects(project("a", 1000), project("b", 0)))
    play.place(Pod("v", "b", pod_shape(1000)), "n0/0").wait(Pod("w", "a", pod_shape(1000)))
    told(play.given())
    assert "cycle 7: evict pod v-0 (reclaim): " in "\n".join(on.messages)
    assert "cycle 7: keep n0 (n0/0) for ns/w pod w-0: freed" in on.messages


def test_however_many_wait_a_cycle_has_few_lines(on: pytest.LogCaptureFixture) -> None:
    told(crowd(2_000))
    assert len(on.messages) == 1 + 1 + MOST + 1
    assert on.messages[-1] == f"cycle 7: {1_999 - MOST} more waits are left out"
    assert sum(map(len, on.messages)) < 10_000
