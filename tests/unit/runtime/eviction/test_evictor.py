"""Who asks for a pod that is dealt with already is told so; what fails may be asked for again."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from tests.unit.runtime.binding.test_failed_placements import FakeEvents
from tests.unit.runtime.evicting import Evicting
from tests.unit.runtime.fake_client import BROKEN, CONFLICT, NOT_FOUND, NOT_LEADER, FakeClient, Sent
from tests.unit.runtime.virtual_loop import Running, virtual
from tests.unit.state.builders import half, make_gpujob, make_pod
from tests.unit.state.cluster_states import make_cluster_state

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.jobs.evict import mark_pruned
from gpu_scheduler.kube import errors
from gpu_scheduler.runtime.binding.failed_placements import STUCK
from gpu_scheduler.runtime.eviction.evictor import Eviction, EvictionMessage
from gpu_scheduler.state.pods.pod import PodRecord

KEY = make_gpujob().key
POD = PodUID("uid-job-0")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
HANGS = EvictionMessage(STUCK, "job-0 hangs; placing it elsewhere")


class Case:
    """A cluster with one pod that runs."""

    def __init__(self, answer: object = None) -> None:
        self.state = make_cluster_state(make_pod(node="a", devices=half(), phase="Running"))
        self.answer, self.events = answer, FakeEvents()
        self.client = FakeClient(self._reply)
        self.all = evicting = Evicting(self.state, self.client, self.events)
        self.evictor, self.losses = evicting.evictor, evicting.losses
        self.ended = self.stays = 0

    def _reply(self, sent: Sent) -> object:
        return self.answer or {"metadata": {}}

    @property
    def pod(self) -> PodRecord:
        return self.state.pods.known[POD]

    def evict(self) -> bool:
        return self.evictor.evict(Eviction(self.pod, HANGS))

    def end(self) -> bool:
        return self.evictor.evict(
            Eviction(self.pod, grace_seconds=2, done=self._ends, gave_up=self._stays)
        )

    def mark(self) -> bool:
        known = self.evictor.handles(POD)
        self.evictor.mark(self.pod, mark_pruned(self.pod.meta, "", NOW), "x")
        return not known

    def _ends(self) -> None:
        self.ended += 1

    def _stays(self) -> None:
        self.stays += 1


ASK: dict[str, Callable[[Case], bool]] = {
    "evict": Case.evict,
    "end": Case.end,
    "owed": lambda case: case.evictor.evict(Eviction(case.pod, in_spite_of_budgets=True)),
    "mark": Case.mark,
}


@pytest.mark.parametrize("second", ASK)
@pytest.mark.parametrize("first", ASK)
def test_a_pod_is_dealt_with_once_whoever_asks(first: str, second: str) -> None:
    @virtual
    async def run() -> None:
        case = Case()
        assert ASK[first](case)
        assert not ASK[second](case)
        await asyncio.sleep(1)
        assert not ASK[second](case)
        assert len(case.client.sent) == 1
        case.evictor.gone(POD)
        assert ASK[second](case)

    run()


@pytest.mark.parametrize("ask", [Case.evict, Case.end])
def test_nobody_is_evicted_by_what_cannot_be_seen(ask: Callable[[Case], bool]) -> None:
    @virtual
    async def run() -> None:
        case = Case()
        case.all.blind = True
        assert not ask(case)
        await asyncio.sleep(1)
        assert (case.client.sent, case.events.said) == ([], [])
        case.all.blind = False
        assert ask(case)
        await asyncio.sleep(1)
        assert len(case.client.sent) == 1

    run()


@pytest.mark.parametrize("answer", [BROKEN, CONFLICT])
def test_what_failed_may_be_asked_for_again_and_is_told_once(answer: errors.ApiError) -> None:
    @virtual
    async def run() -> None:
        case = Case(answer)
        asked = 0
        for _ in range(300):
            asked += case.evict()
            await asyncio.sleep(1)
        assert asked > 2
        assert len(case.client.sent) <= 150, "not without a rest"
        assert case.events.said == [("job", "PodStuck", "job-0 hangs; placing it elsewhere")]
        assert case.losses.of(KEY) == "job-0 hangs; placing it elsewhere"
        assert case.evictor.counts == {"stuck": 1}

    run()


@pytest.mark.parametrize("answer", [None, NOT_FOUND, CONFLICT])
def test_who_ends_a_pod_hears_when_it_goes_by_that(answer: object) -> None:
    @virtual
    async def run() -> None:
        case = Case(answer)
        assert case.end()
        await asyncio.sleep(1)
        assert case.client.sent[0].body["deleteOptions"]["gracePeriodSeconds"] == 2
        assert (case.ended, case.stays) == ((1, 0) if answer is None else (0, 1))
        assert case.events.said == []  # who asks tells

    run()


@pytest.mark.parametrize("ask", ASK)
def test_a_closed_fence_ends_it_whoever_asked(ask: str) -> None:
    @virtual
    async def run() -> None:
        case = Case(NOT_LEADER)
        with pytest.raises(errors.NotLeader):
            async with Running(case.evictor.run()):
                await asyncio.sleep(0)
                ASK[ask](case)
                await asyncio.sleep(10)

    run()
