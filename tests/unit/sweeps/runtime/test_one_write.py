"""Parameters travel in the write that places a pod, on both paths; whoever makes up its mind slowly
holds up nobody else, and the planner asks first."""

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.runtime.binding.test_failed_placements import FakeEvents
from tests.unit.runtime.evicting import Evicting, FakePreemption, last_plan
from tests.unit.runtime.fake_client import FakeClient, FakeTerm
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.builders import make_assignment, make_pod
from tests.unit.sweeps.runtime.cases import KEY, Case, trial_pod

from gpu_scheduler.api.names import ALLOCATION, GATE, HPARAMS, TRIAL
from gpu_scheduler.jobs.place import Pin
from gpu_scheduler.runtime.binding.binder import Binder, Writing
from gpu_scheduler.runtime.planning import Planning, PlanningRules, Times
from gpu_scheduler.sweeps.runtime.start import Start
from gpu_scheduler.sweeps.search.studies import Studies
from gpu_scheduler.sweeps.search.tpe import TpeStudy


def waiting(case: Case, **settings: Any) -> Any:
    pod = trial_pod(2, node="", devices=(), phase="Pending", **settings)
    case.state.pod_changed(pod)
    return pod


def binder_of(case: Case, client: FakeClient, start: Start) -> Binder:
    """A binder with one request in flight."""
    return Binder(
        case.state,
        client,  # type: ignore[arg-type]
        FakeTerm(),  # type: ignore[arg-type]
        Evicting(case.state, client, FakeEvents()).gangs,
        Writing(1, Pin.AFFINITY, more=start),
        clock=clock,
    )


@pytest.mark.parametrize("gates", [None, (GATE,)])
def test_one_write_has_the_devices_and_the_parameters(gates: tuple[str, ...] | None) -> None:
    @virtual
    async def run() -> None:
        case, client = Case(), FakeClient()
        case.job()
        pod = waiting(case, gates=gates)
        binder = binder_of(case, client, Start(case.state, case.sweeps, Studies()))
        case.state.decisions.assume(make_assignment("job-2"))
        binder.submit(make_assignment("job-2"), pod)
        async with Running(binder.run()):
            await asyncio.sleep(1)
        (sent,) = client.sent
        notes = sent.body["metadata"]["annotations"]
        assert notes.keys() >= {ALLOCATION, TRIAL, HPARAMS} and notes[TRIAL] == "2"

    run()


@pytest.mark.parametrize(
    ("hold", "placed"),
    [
        (lambda case: None, 1),
        (lambda case: setattr(case.sweep, "loaded", False), 0),
        (lambda case: case.pod(1, message='{"loss": 0}'), 0),
    ],
    ids=["it may start", "results are not read yet", "the target is reached"],
)
def test_the_planner_places_trials_only_when_they_may_start(
    hold: Callable[[Case], None], placed: int
) -> None:
    @virtual
    async def run() -> None:
        case = Case(objective={"metric": "loss", "target": 0.1})
        case.job()
        waiting(case)
        hold(case)
        given: list[Any] = []

        class Given:
            def submit(self, decision: Any, pod: Any, *, gang: bool) -> None:
                given.append(decision)

        planning = Planning(
            case.state,
            Given(),  # type: ignore[arg-type]
            FakePreemption(),  # type: ignore[arg-type]
            last_plan(case.state),
            PlanningRules(may_start=case.sweeps.may_start),
            Times(0, clock, clock),
        )
        planning.cycle()
        assert [decision.job for decision in given] == [KEY] * placed

    run()


class SlowSampler:
    """Answers when somebody lets it, at the latest after five seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.released, self.threads, self.in_time = threading.Event(), set[int](), list[bool]()
        monkeypatch.setattr(TpeStudy, "ask", lambda study, trial: self._ask(trial))

    def _ask(self, trial: int) -> Any:
        self.threads.add(threading.get_ident())
        self.in_time.append(self.released.wait(5))
        return {"lr": trial + 0.5}


async def test_others_are_placed_while_the_sampler_thinks(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler, case = SlowSampler(monkeypatch), Case(algorithm="tpe")
    client = FakeClient(lambda sent: sampler.released.set())
    case.job()
    start = Start(case.state, case.sweeps, Studies())
    binder = binder_of(case, client, start)
    other = make_pod("other", node="", devices=(), phase="Pending", job="other")
    for pod, decision in (
        (waiting(case), make_assignment("job-2")),
        (other, make_assignment("other", job="team-a/other")),
    ):
        case.state.pod_changed(pod)
        case.state.decisions.assume(decision)
        binder.submit(decision, pod)

    async with Running(start.run(), binder.run()):
        async with asyncio.timeout(30):
            await binder.idle.wait()
    assert sampler.in_time == [True], "it answered when it was let, so others went on meanwhile"
    assert threading.get_ident() not in sampler.threads
    first, second = (sent.body["metadata"]["annotations"] for sent in client.sent)
    assert HPARAMS not in first, "the other pod did not wait"
    assert json.loads(second[HPARAMS]) == {"lr": 2.5}
