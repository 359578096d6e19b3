"""Jobs whose pods wait become as narrow as their pods that have a place, and nothing is lost."""

from typing import Any

from tests.unit.state.builders import half, make_job, make_pod
from tests.unit.state.queue.test_prospective import KEY, accepted, pods

from gpu_scheduler.api.names import JOB_TRACKING
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.jobs.narrowing import WAIT_SECONDS, Narrowing
from gpu_scheduler.runtime.jobs.parallelism import parallelism_of


class Case:
    """A job of four pods, three of which exist: one runs, two wait."""

    def __init__(self, **spec: Any) -> None:
        self.now, self.version = 0.0, 1
        self.state = accepted(**{"parallelism": 4, "completions": 8, **spec})
        self.looked: list[JobKey] = []
        self.stays = False
        self.narrowing = Narrowing(
            self.state,
            self.looked.append,
            stays=lambda uid: self.stays,
            clock=lambda: self.now,
        )
        self.size = 8 if not spec.get("gang") else 4
        self.told(parallelism=3, active=3, ready=1)
        self.state.pod_changed(make_pod("job-0", node="a", devices=half(), phase="Running"))
        for index in (1, 2):
            self.state.pod_changed(make_pod(f"job-{index}", index=index))

    def told(self, **job: Any) -> None:
        """The Job is this now."""
        self.version += 1
        made = make_job(completions=self.size, version=self.version, **job)
        self.state.job_changed(made)

    def after(self, seconds: float) -> dict[str, int]:
        """What is to become narrower, once so many seconds have passed."""
        self.narrowing.check()
        self.now += seconds
        self.narrowing.check()
        return dict(self.state.decisions.narrowed)

    @property
    def parallelism(self) -> int:
        """How wide the Job is to be."""
        return parallelism_of(self.state, self.state.jobs.believed["job-uid"])


def ended(name: str, *, tracked: bool) -> Pod:
    finalizers = [JOB_TRACKING] if tracked else []
    return make_pod(name, index=3, node="a", phase="Succeeded", finalizers=finalizers)


def test_pods_that_wait_for_long_are_not_needed() -> None:
    case = Case()
    assert case.after(WAIT_SECONDS - 0.1) == {}
    assert case.after(0.2) == {"job-uid": 1}
    assert case.looked == [KEY] and case.parallelism == 1
    assert pods(case.state) == 0, "nothing of it is placed meanwhile"


def test_what_waits_only_for_a_moment_changes_nothing() -> None:
    case = Case()
    for number in range(3, 40):
        assert case.after(WAIT_SECONDS / 2) == {}
        for uid in [p.uid for p in case.state.pods.known.values() if not p.node]:
            case.state.pod_gone(uid)
        case.state.pod_changed(make_pod(f"job-{number}", index=number % 8))


def test_once_its_pods_are_gone_it_is_planned_again_without_them() -> None:
    case = Case()
    case.after(WAIT_SECONDS)
    case.told(parallelism=1, active=3, ready=1, narrowed=True)
    assert case.after(0.5) == {}, "what is left to do stands on the Job"
    assert pods(case.state) == 0, "the pods are still there"
    case.state.pod_gone(PodUID("uid-job-1"))
    assert pods(case.state) == 0, "one is"
    case.state.pod_gone(PodUID("uid-job-2"))
    assert pods(case.state) == 3


def test_whoever_leads_next_places_none_of_what_its_controller_may_delete() -> None:
    for job in (
        {"parallelism": 1, "active": 3, "narrowed": True},  # written, and nothing was done yet
        {"parallelism": 1, "active": 3},  # by somebody else
        {"parallelism": 3, "active": 3, "suspend": True},
        {"parallelism": 3, "active": 3, "ended": "Failed"},
        {"parallelism": 3, "active": 3, "narrowed": True},  # one ended, two may be chosen
        {"parallelism": 3, "active": 4},  # its controller has not heard of an end
    ):
        case = Case()
        case.told(ready=1, **job)
        assert pods(case.state) == 0, job


def test_a_pod_that_waits_for_its_controller_is_never_placed_however_long_that_takes() -> None:
    case = Case()
    case.told(parallelism=1, active=3, ready=1, narrowed=True)
    case.after(100_000)
    assert pods(case.state) == 0


def test_it_is_not_narrowed_before_its_controller_knows_what_runs() -> None:
    for active, ready in ((3, 0), (2, 0), (2, 1), (4, 1)):
        case = Case()
        if active < 3:  # it counted as ready whoever has ended since
            case.state.pod_changed(ended("job-3", tracked=True))
        case.told(parallelism=3, active=active, ready=ready)
        assert case.after(WAIT_SECONDS) == {"job-uid": 1}
        assert case.parallelism == 3 and not case.looked, (active, ready)
        case.told(parallelism=3, active=3, ready=1)
        case.after(0.5)
        assert case.parallelism == 1 and case.looked


def test_a_job_is_narrowed_while_its_controller_makes_pods_without_end() -> None:
    """It writes what it counts once it has made 500 of them, 25 s later at its usual pace."""
    case = Case()
    case.state.pod_changed(ended("job-3", tracked=False))
    case.told(parallelism=90_000, active=1, ready=1)
    assert case.after(WAIT_SECONDS) == {"job-uid": 1}
    assert case.parallelism == 1 and case.looked


def test_a_pod_that_is_being_deleted_may_be_the_one_that_was_ready() -> None:
    case = Case()
    goes = {"node": "a", "devices": half(), "phase": "Running", "deleting": True, "index": 3}
    case.state.pod_changed(make_pod("job-3", finalizers=[JOB_TRACKING], **goes))
    case.told(parallelism=3, active=2, ready=1)
    case.after(WAIT_SECONDS)
    assert case.parallelism == 3 and not case.looked


def test_a_pod_that_has_just_got_its_place_keeps_its_job_wide() -> None:
    case = Case()
    case.state.pod_changed(make_pod("job-1", index=1, node="a", devices=half("1"), version=2))
    case.after(WAIT_SECONDS)
    assert case.parallelism == 3, "its controller may take it for one that waits"
    case.told(parallelism=1, active=3, ready=1, narrowed=True)
    assert case.parallelism == 2, "somebody narrowed it below its pods with places"


def test_what_cannot_be_written_keeps_nobody_waiting() -> None:
    case = Case()
    case.stays = True
    assert case.after(WAIT_SECONDS) == {}
    assert pods(case.state) == 3


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
    assert case.parallelism == 0
