"""Pods that come take the places that were kept for them, a gang's all together."""

from typing import Any

from tests.unit.state.builders import half, make_job, make_pod
from tests.unit.state.cluster_states import free
from tests.unit.state.queue.test_prospective import KEY, accepted, pods

from gpu_scheduler.core.model.decision import Assignment
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.binding.arrivals import Arrivals


class FakeBinder:
    def __init__(self) -> None:
        self.submitted: list[tuple[str, str, bool]] = []

    def submit(self, decision: Assignment, pod: Pod, *, gang: bool = False) -> None:
        assert decision.pod == pod.metadata.uid
        self.submitted.append((pod.metadata.name, decision.devices[0].device, gang))


class Case:
    """Two pods of a job have places, on device 0 and on device 1."""

    def __init__(self, **spec: Any) -> None:
        self.state, self.binder = accepted(**{"parallelism": 2, **spec}), FakeBinder()
        self.arrivals = Arrivals(self.state, self.binder)  # type: ignore[arg-type]
        (job,) = self.state.waiting_jobs()
        for pod, device in zip(job.pods, "01", strict=True):
            self.state.decisions.assume(Assignment(KEY, pod.uid, "a", half(device)))
        self.state.job_changed(make_job(parallelism=2, completions=2))

    def comes(self, index: int, **pod: Any) -> None:
        obj = make_pod(f"job-{index}", index=index, **pod)
        record = self.state.pod_changed(obj)
        assert record is not None
        self.arrivals.observe(obj, record)


def test_each_is_bound_as_it_comes_whichever_comes_first() -> None:
    case = Case()
    case.comes(1)
    case.comes(0)
    assert case.binder.submitted == [("job-1", "1", False), ("job-0", "0", False)]
    assert free(case.state) == [500, 500] and pods(case.state) == 0


def test_news_of_one_that_was_bound_take_nothing() -> None:
    case = Case()
    case.comes(0)
    case.comes(0, version=2)
    assert len(case.binder.submitted) == 1 and len(case.state.decisions.nominated.of(KEY)) == 1


def test_one_that_does_not_fit_waits_and_the_other_takes_its_place() -> None:
    case = Case()
    case.comes(0, cpu="65")
    case.comes(1)
    assert case.binder.submitted == [("job-1", "1", False)]
    assert pods(case.state) == 1


def test_one_that_somebody_else_holds_back_keeps_no_devices() -> None:
    case = Case()
    case.comes(0, gates=("example.com/wait",))
    assert case.binder.submitted == [] and free(case.state) == [1000, 1000]


def test_the_members_of_a_gang_are_bound_once_all_have_come_each_in_its_place() -> None:
    case = Case(gang=True)
    case.comes(1)
    assert case.binder.submitted == [] and free(case.state) == [500, 500]
    case.comes(0)
    assert sorted(case.binder.submitted) == [("job-0", "0", True), ("job-1", "1", True)]


def test_no_member_is_bound_where_one_does_not_fit() -> None:
    case = Case(gang=True)
    case.comes(0)
    case.comes(1, cpu="65")
    assert case.binder.submitted == [] and not case.state.decisions.assumed
    assert free(case.state) == [1000, 1000] and pods(case.state) == 2
