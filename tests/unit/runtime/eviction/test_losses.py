"""Why a job's pods had to leave their node is known until it has pods again."""

from typing import Any

from tests.unit.runtime.binding.test_failed_placements import Case as RecoveryCase
from tests.unit.state.builders import half, make_gpujob, make_pod

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.eviction.evictor import Eviction, EvictionMessage
from gpu_scheduler.runtime.eviction.overcap import OVER_CAP
from gpu_scheduler.runtime.informers.event_handlers import PodHandler

KEY = make_gpujob().key
DRAINED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


class Case(RecoveryCase):
    def __init__(self) -> None:
        super().__init__()
        self.losses = self.evicting.losses
        self.handler = PodHandler(self.state, self.placements, (self.losses,))


def pod(name: str = "job-0", **settings: Any) -> Pod:
    return make_pod(name, **{"node": "a", "devices": half(), "phase": "Running"} | settings)


async def test_a_drained_pod_says_so_until_the_job_has_another() -> None:
    case = Case()
    await case.see(pod())
    assert case.losses.of(KEY) == ""
    await case.see(pod(version=2, deleting=True, conditions=(DRAINED,)))
    told = "pod job-0 had to leave a: EvictionByEvictionAPI: Eviction API: evicting"
    assert case.losses.of(KEY) == told
    case.handler.gone("team-a", "job-0", "uid-job-0")
    await case.see(make_pod("job-1"))
    assert case.losses.of(KEY) == told
    await case.see(pod("job-1", version=3))
    assert case.losses.of(KEY) == ""


async def test_who_evicts_knows_better_than_the_condition() -> None:
    case = Case()
    await case.see(pod())
    case.evictor.evict(
        Eviction(
            case.state.pods.known[PodUID("uid-job-0")],
            EvictionMessage(OVER_CAP, "above its cap; it starts again"),
        )
    )
    await case.see(pod(version=2, deleting=True, conditions=(DRAINED,)))
    assert case.losses.of(KEY) == "above its cap; it starts again"


async def test_a_pod_that_makes_room_for_others_is_no_loss() -> None:
    case = Case()
    await case.see(pod())
    case.state.set_leaving(PodUID("uid-job-0"), True)
    await case.see(pod(version=2, deleting=True, conditions=(DRAINED,)))
    assert case.losses.of(KEY) == ""


async def test_a_rejected_pod_is_one() -> None:
    case = Case()
    await case.see(pod(phase="Failed", reason="OutOfcpu", message="no CPU"))
    assert "the kubelet of a rejected the pod: no CPU" in case.losses.of(KEY)


async def test_a_later_job_of_the_name_has_lost_nothing() -> None:
    case = Case()
    await case.see(pod(deleting=True, conditions=(DRAINED,)))
    case.state.gpujob_changed(make_gpujob(uid="another"))
    assert case.losses.of(KEY) == ""
