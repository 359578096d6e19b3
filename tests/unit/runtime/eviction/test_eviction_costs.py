"""What an eviction lost is known when the pod has gone, and is counted once."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.unit.state.builders import half, make_gpujob, make_pod
from tests.unit.state.test_cluster_state import make_cluster_state

from gpu_scheduler.api.names import CHECKPOINTED
from gpu_scheduler.core.model.decision import Evict, EvictReason
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.eviction.eviction_costs import EvictionCost, EvictionCosts
from gpu_scheduler.state.cluster_state import ClusterState

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
JOB, POD = make_gpujob().key, PodUID("uid-job-0")
EVICT = Evict(POD, JOB, JobKey("team-a/urgent"), EvictReason.RECLAIM, "job-0 gives way")


def text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def ended(seconds: float, code: int = 1) -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "finishedAt": text(seconds)}}
    phase = "Failed" if code else "Succeeded"
    return {"phase": phase, "containerStatuses": [{"name": "main", "state": state}]}


def pod(version: int = 1, saved: float = 0.0, **changes: Any) -> Pod:
    """Half a GPU since ten minutes before noon."""
    given: dict[str, Any] = {"node": "a", "devices": half(), "phase": "Running"}
    annotations = {CHECKPOINTED: text(saved)} if saved else {}
    status = {"startTime": text(NOON - 600)}
    return make_pod(version=version, annotations_=annotations, **(given | status | changes))


@dataclass
class Case:
    """The pod's eviction is decided at noon."""

    saved: float = 0.0
    now: float = NOON
    state: ClusterState = field(init=False)
    costs: EvictionCosts = field(init=False)

    def __post_init__(self) -> None:
        self.state = make_cluster_state(pod(saved=self.saved))
        self.costs = EvictionCosts(self.state, lambda: self.now)
        self.costs.began(self.state.pods.known[POD], EVICT)

    def see(self, at: float, obj: Pod) -> None:
        """The watch shows the pod, then."""
        self.now = NOON + at
        record = self.state.pod_changed(obj)
        assert record is not None
        self.costs.observe(obj, record)

    def gone(self, at: float) -> None:
        self.now = NOON + at
        self.state.pod_gone(POD)
        self.costs.gone(POD)

    @property
    def cost(self) -> EvictionCost:
        return self.costs.of(self.state.gpujobs[JOB])

    @property
    def lost(self) -> float:
        return self.cost.lost_gpu_seconds


def test_an_eviction_counts_at_once_and_its_loss_when_the_containers_have_ended() -> None:
    case = Case()
    assert case.cost == EvictionCost(1, 0.0)
    case.see(1, pod(2, deleting=True))
    assert case.cost == EvictionCost(1, 0.0)
    case.state.changes.take_touched()
    case.see(25, pod(3, deleting=True, **ended(NOON + 20)))
    assert case.cost == EvictionCost(1, 310.0)
    assert case.costs.lost_gpu_seconds == {"reclaim": 310.0}
    assert case.state.changes.touched == {JOB}, "its status is written anew"
    case.gone(26)
    assert case.cost == EvictionCost(1, 310.0), "it is counted once"


def test_who_saves_when_it_is_told_to_stop_has_lost_nothing_however_long_it_cleans_up() -> None:
    case = Case()
    case.see(1, pod(2, deleting=True))
    case.see(3, pod(3, saved=NOON + 2, deleting=True))
    case.see(30, pod(4, saved=NOON + 2, deleting=True, **ended(NOON + 29)))
    assert case.cost == EvictionCost(1, 0.0)


def test_a_time_in_whole_seconds_is_soon_enough() -> None:
    case = Case()
    case.see(1.9, pod(2, deleting=True))
    case.see(9, pod(3, saved=NOON + 1, deleting=True, **ended(NOON + 9)))
    assert case.lost == 0


def test_work_after_the_last_checkpoint_is_lost_until_the_program_has_ended() -> None:
    case = Case(saved=NOON - 300)
    case.see(0.5, pod(2, saved=NOON - 40))  # one more, before it is told
    case.see(1, pod(3, saved=NOON - 40, deleting=True))
    case.see(9, pod(4, saved=NOON - 40, deleting=True, **ended(NOON + 8)))
    assert case.lost == 24


def test_a_checkpoint_between_decision_and_eviction_does_not_save_what_comes_after_it() -> None:
    """A disruption budget may hold up an eviction for three quarters of a minute."""
    case = Case()
    case.see(5, pod(2, saved=NOON + 4))
    case.see(40, pod(3, saved=NOON + 4, deleting=True))
    case.see(44, pod(4, saved=NOON + 4, deleting=True, **ended(NOON + 44)))
    assert case.lost == 20


def test_a_checkpoint_of_the_future_saves_nothing_while_it_runs() -> None:
    case = Case(saved=NOON + 3600)
    case.gone(0)
    assert case.lost == 300


@pytest.mark.parametrize("told", [False, True])
def test_of_a_pod_that_vanishes_its_last_checkpoint_counts(told: bool) -> None:
    case = Case()
    if told:
        case.see(1, pod(2, saved=NOON - 10, deleting=True))
    case.gone(10)
    assert case.lost == (10 if told else 305)


def test_who_ends_well_has_lost_nothing() -> None:
    case = Case()
    case.see(1, pod(2, deleting=True))
    case.see(2, pod(3, deleting=True, **ended(NOON + 2, code=0)))
    assert case.cost == EvictionCost(1, 0.0)


@pytest.mark.parametrize("finished", [NOON + 500, 0.0])
def test_an_end_that_is_not_yet_or_is_not_told_is_now(finished: float) -> None:
    case = Case()
    status = ended(finished) if finished else {"phase": "Failed"}
    case.see(20, pod(2, deleting=True, **status))
    assert case.lost == 310


def test_an_eviction_that_is_given_up_counts_as_none() -> None:
    case = Case()
    case.costs.stays(POD)
    assert case.cost == EvictionCost()
    case.gone(60)
    case.costs.stays(POD)
    assert case.cost == EvictionCost()
    assert case.costs.lost_gpu_seconds == {}


def test_what_evictions_cost_a_job_outlives_an_operator_and_not_the_job() -> None:
    case = Case()
    job = case.state.gpujobs[JOB]
    costs = EvictionCosts(case.state, lambda: case.now)  # of the next leader
    job.status = {"evictions": 2, "lostGPUSeconds": 100}
    assert costs.of(job) == EvictionCost(2, 100)
    costs.began(case.state.pods.known[POD], EVICT)
    assert costs.of(job) == EvictionCost(3, 100)
    job.status = {"evictions": 2, "lostGPUSeconds": 100}  # an old one, seen late
    costs.gone(POD)
    assert costs.of(job) == EvictionCost(3, 400.0)
    case.state.gpujob_changed(make_gpujob(uid="another"))
    assert costs.of(case.state.gpujobs[JOB]) == EvictionCost()
    costs.expire()
    assert costs._costs == {}


def test_a_later_gpujob_of_the_name_does_not_pay_for_a_pod_of_the_one_before() -> None:
    case = Case()
    case.state.gpujob_changed(make_gpujob(uid="another"))
    case.gone(0)
    assert case.cost == EvictionCost()
    assert case.costs.lost_gpu_seconds == {"reclaim": 300.0}, "but the GPUs were worked in vain"


def test_a_new_leader_does_not_know_what_a_pod_lost_that_was_on_its_way_out() -> None:
    case = Case()
    costs = EvictionCosts(case.state, lambda: case.now)
    costs.gone(POD)
    assert costs.lost_gpu_seconds == {}


@pytest.mark.parametrize("said", [{}, {"evictions": "2"}, {"evictions": None}])
def test_a_status_that_says_no_numbers_costs_nothing(said: dict[str, Any]) -> None:
    assert EvictionCost.of_status(said) == EvictionCost()


@pytest.mark.parametrize("ahead", [3600.0, -3600.0, 1e9, -1e9])
def test_the_clock_of_its_node_makes_no_loss_larger_or_smaller_than_it_can_be(ahead: float) -> None:
    case = Case()
    case.see(30, pod(version=2, **ended(NOON + 20 + ahead)))
    assert 300.0 <= case.lost <= 315.0
