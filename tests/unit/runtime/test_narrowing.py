"""Jobs whose pods wait become as narrow as their pods that have a place, and nothing is lost."""

from typing import Any

from tests.unit.state.builders import half, make_job, make_pod
from tests.unit.state.test_unmade import KEY, accepted, pods

from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.runtime.narrowing import PATIENCE_SECONDS, WAIT_SECONDS, Narrowing


class Case:
    """A job of four pods, three of which exist: one runs, two wait."""

    def __init__(self, **spec: Any) -> None:
        self.now = 0.0
        self.state = accepted(**{"parallelism": 4, "completions": 8, **spec})
        self.looked: list[JobKey] = []
        self.narrowing = Narrowing(self.state, self.looked.append, clock=lambda: self.now)
        size = 8 if not spec.get("gang") else 4
        self.state.job_changed(make_job(parallelism=3, completions=size))
        self.state.pod_changed(make_pod("job-0", node="a", grants=half(), phase="Running"))
        for index in (1, 2):
            self.state.pod_changed(make_pod(f"job-{index}", index=index))

    def after(self, seconds: float) -> dict[str, int]:
        """What is to become narrower, once so many seconds have passed."""
        self.narrowing.check()
        self.now += seconds
        self.narrowing.check()
        return dict(self.state.narrowed)


def test_pods_that_wait_for_long_are_not_needed() -> None:
    case = Case()
    assert case.after(WAIT_SECONDS - 0.1) == {}
    assert case.after(0.2) == {"job-uid": 1}
    assert case.looked == [KEY]
    assert pods(case.state) == 0, "nothing of it is placed meanwhile"


def test_what_waits_only_for_a_moment_changes_nothing() -> None:
    case = Case()
    for number in range(3, 40):
        assert case.after(WAIT_SECONDS / 2) == {}
        for uid in [p.uid for p in case.state.pods.values() if not p.node]:
            case.state.pod_gone(uid)
        case.state.pod_changed(make_pod(f"job-{number}", index=number % 8))


def test_once_its_pods_are_gone_it_is_planned_again_without_them() -> None:
    case = Case()
    case.after(WAIT_SECONDS)
    case.state.job_changed(make_job(parallelism=1, completions=8, version=2))
    assert case.after(0.5) == {"job-uid": 1}, "the pods are still there"
    for index in (1, 2):
        case.state.pod_gone(PodUID(f"uid-job-{index}"))
    assert case.after(0.5) == {}
    assert pods(case.state) == 3


def test_a_write_that_does_not_come_through_is_not_waited_for_for_ever() -> None:
    case = Case()
    case.after(WAIT_SECONDS)
    case.narrowing.check()
    case.now += PATIENCE_SECONDS
    case.narrowing.check()
    assert case.state.narrowed == {}


def test_a_pod_that_somebody_else_holds_back_is_left_alone() -> None:
    case = Case()
    for index in (1, 2):
        pod = make_pod(f"job-{index}", index=index, version=2, gates=("example.com/wait",))
        case.state.pod_changed(pod)
    assert case.after(60) == {}


def test_a_gang_that_waits_has_no_pods() -> None:
    case = Case(completions=4, gang=True)
    case.state.pod_gone(PodUID("uid-job-0"))
    assert case.after(WAIT_SECONDS) == {"job-uid": 0}
