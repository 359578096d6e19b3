"""For how long pods whose owner is gone are counted on, and what is said of those that stay."""

from tests.unit.runtime.status.test_pod_conditions import RecordedEvents
from tests.unit.state.builders import (
    half,
    make_gpujob,
    make_job,
    make_node,
    make_pod,
    make_project,
)

from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.eviction.left_behind import IDLE_SECONDS, MOST_SECONDS, LeftBehind
from gpu_scheduler.runtime.status.pod_warnings import PodWarnings
from gpu_scheduler.state.cluster_state import ClusterState

OWNED = "gpu-scheduler.io/Owned"


def pod(number: int, version: int = 1, **settings: object) -> Pod:
    named = {"uid": f"pod-{number}", "job": f"job-{number}"}
    return make_pod(
        f"job-{number}-0",
        version=version,
        node="a",
        devices=half(),
        phase="Running",
        **(named | settings),  # type: ignore[arg-type]
    )


class Case:
    """Jobs with a pod each, all of them deleted; and a garbage collector that takes its time."""

    def __init__(self, jobs: int = 1) -> None:
        self.state, self.now = ClusterState(), 1000.0
        self.state.project_changed(make_project())
        self.state.nodes.changed(make_node("a", gpus=8))
        for number in range(jobs):
            name = f"job-{number}"
            self.state.gpujob_changed(make_gpujob(name, uid=f"gpujob-{number}"))
            self.state.job_changed(make_job(name, uid=name, owner_uid=f"gpujob-{number}"))
            self.state.pod_changed(pod(number))
            self.state.gpujob_gone(JobKey(f"team-a/{name}"))
        self.loop = LeftBehind(self.state, clock=lambda: self.now)
        self.loop.check()

    def passes(self, seconds: float) -> None:
        for _ in range(int(seconds // 5)):
            self.now += 5
            self.loop.check()


def test_one_that_does_not_go_stays_after_a_minute() -> None:
    case = Case()
    case.passes(IDLE_SECONDS - 5)
    assert len(case.state.bereft.following) == 1
    case.passes(5)
    assert case.state.bereft.staying == {"pod-0"} and not case.state.bereft.following
    case.passes(5)


def test_while_the_garbage_collector_takes_others_it_is_waited_for() -> None:
    case = Case(jobs=8)
    for number in range(8):
        assert len(case.state.bereft.following) == 8 - number
        case.passes(IDLE_SECONDS - 5)
        case.state.pod_changed(pod(number, 2, deleting=True))
    assert not case.state.bereft.staying and not case.state.bereft.following


def test_after_ten_minutes_it_is_waited_for_no_more() -> None:
    case = Case(jobs=200)
    for number in range(199):
        case.passes(5)
        case.state.pod_gone(PodUID(f"pod-{number}"))
    assert 5 * 199 > MOST_SECONDS
    assert case.state.bereft.staying == {"pod-199"}


def test_one_that_stays_says_so_until_it_has_an_owner_again() -> None:
    state, said = ClusterState(), RecordedEvents()
    warnings = PodWarnings(state, said, now=lambda: "now")  # type: ignore[arg-type]
    state.project_changed(make_project())
    state.nodes.changed(make_node("a"))
    state.pod_changed(pod(0, job=""))
    (uid,) = warnings.touched()
    before, after = warnings.status(uid)
    assert before == {} and after[OWNED]["reason"] == "OwnerGone"
    message = after[OWNED]["message"]
    assert "holds 0.5 GPUs of a, charged to project team-a" in message
    assert message.endswith("kubectl delete pod -n team-a job-0-0 gives them back")
    (condition,) = warnings.write(uid, uid, after, after).body["status"]["conditions"]
    assert (condition["type"], condition["status"]) == (OWNED, "False")
    warnings.written(uid, before, after)
    assert said.events == [("Pod", "Warning", "OwnerGone", message)]

    state.pod_changed(pod(0, 2, job="", conditions=(condition,)))
    assert not list(warnings.touched())
    state.gpujob_changed(make_gpujob("job-0", uid="gpujob-0"))
    state.job_changed(make_job("job-0", uid="job-0", owner_uid="gpujob-0"))
    state.pod_changed(pod(0, 3, conditions=(condition,)))
    assert list(warnings.touched()) == [uid]
    assert warnings.status(uid) == ({OWNED: after[OWNED]}, {})


def test_one_whose_owner_is_only_just_gone_says_nothing() -> None:
    case = Case()
    warnings = PodWarnings(case.state, RecordedEvents(), now=lambda: "now")  # type: ignore[arg-type]
    assert not list(warnings.touched())
    case.passes(IDLE_SECONDS)
    assert list(warnings.touched()) == ["pod-0"]
