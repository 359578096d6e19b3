"""Results ConfigMaps: gathered, read back, and left alone where they are somebody else's."""

import asyncio
from typing import Any

from tests.unit.runtime.fake_client import (
    BROKEN,
    CONFLICT,
    NOT_FOUND,
    UNPROCESSABLE,
    FakeClient,
    Sent,
)
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.sweeps.runtime.cases import Case

from gpu_scheduler.api.names import RESULTS_KEY
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState
from gpu_scheduler.sweeps.core.rows import decode
from gpu_scheduler.sweeps.runtime.results import Results, text_of

SECONDS = 5.0


class Store:
    """An API server with ConfigMaps; ``refuse``: answers to the next requests."""

    def __init__(self) -> None:
        self.maps: dict[str, dict[str, Any]] = {}
        self.refuse: list[Any] = []
        self.client = FakeClient(self._reply)
        self._uids = 0

    def _reply(self, sent: Sent) -> Any:
        if self.refuse and (answer := self.refuse.pop(0)) is not None:
            return answer
        if sent.method == "POST":
            name = sent.body["metadata"]["name"]
            if name in self.maps:
                return CONFLICT
            self._uids += 1
            sent.body["metadata"]["uid"] = f"uid-{self._uids}"
            self.maps[name] = sent.body
            return self.maps[name]
        name = sent.path.rpartition("/")[2]
        if name not in self.maps:
            return NOT_FOUND
        if sent.method == "PATCH":
            if sent.body["metadata"]["uid"] != self.maps[name]["metadata"]["uid"]:
                return UNPROCESSABLE
            self.maps[name]["data"] |= sent.body["data"]
        return self.maps[name]

    @property
    def writes(self) -> int:
        return len(self.client.of("POST")) + len(self.client.of("PATCH"))

    def rows(self, name: str = "job-results-0") -> list[Outcome]:
        return decode(self.maps[name]["data"][RESULTS_KEY])[1]

    def results(self, case: Case) -> Results:
        return Results(self.client, case.sweeps, seconds=SECONDS, clock=clock)  # type: ignore[arg-type]


def done(trial: int, value: float = 1.0) -> Outcome:
    return Outcome(trial, TrialState.SUCCEEDED, value)


@virtual
async def test_a_hundred_outcomes_in_a_second_are_one_write_and_another() -> None:
    case, store = Case(completions=200), Store()
    case.job(size=200)
    async with Running(store.results(case).run()):
        case.sweep.put(done(0))
        await asyncio.sleep(1)
        assert store.writes == 1, "the first is written at once"
        for trial in range(1, 101):
            case.sweep.put(done(trial))
            await asyncio.sleep(0.01)
        await asyncio.sleep(SECONDS)
        assert store.writes == 2
    assert [o.trial for o in store.rows()] == list(range(101))


@virtual
async def test_what_was_written_is_read_back_by_the_next_leader() -> None:
    case, store = Case(completions=8, algorithm="tpe"), Store()
    case.job()
    case.job(1, first=4)
    case.sweep.given(0, {"lr": 0.25})
    case.trials.end(case.sweep, done(0))
    case.sweep.given(5, {"lr": 0.5})
    case.sweep.stop(5)
    async with Running(store.results(case).run()):
        await asyncio.sleep(1)
    after = Case(completions=8, algorithm="tpe", loaded=False)
    after.job()
    after.job(1, first=4)
    await store.results(after).load(after.sweep)
    assert after.sweep.loaded
    assert list(after.sweep.table) == list(case.sweep.table)
    assert after.sweep.parameters(0) == {"lr": 0.25}
    assert after.sweep.told_to_stop(5) and not after.sweep.final(5)
    assert after.sweep.dirty == set(), "what was read need not be written"


@virtual
async def test_results_of_an_earlier_sweep_of_that_name_are_not_read() -> None:
    case, store = Case(loaded=False), Store()
    owner = [{"uid": "another", "kind": "GPUJob", "name": "job"}]
    meta = {"name": "job-results-0", "uid": "x", "ownerReferences": owner}
    other = Case()
    other.job()
    other.sweep.put(done(3))
    text = text_of(other.sweep, next(iter(other.sweep.segments)))
    store.maps["job-results-0"] = {"metadata": meta, "data": {RESULTS_KEY: text}}
    case.job()
    results = store.results(case)
    await results.load(case.sweep)
    assert len(case.sweep.table) == 0
    async with Running(results.run()):
        case.sweep.put(done(0))
        await asyncio.sleep(1)
        assert store.rows() == [done(3)], "it is left alone"
        assert case.sweep.dirty == {0}
        del store.maps["job-results-0"]  # the garbage collector comes
        await asyncio.sleep(40)
        assert store.rows() == [done(0)]


@virtual
async def test_one_that_was_deleted_by_hand_is_made_anew_with_all_rows() -> None:
    case, store = Case(), Store()
    case.job()
    async with Running(store.results(case).run()):
        case.sweep.put(done(0))
        await asyncio.sleep(1)
        store.maps.clear()
        case.sweep.put(done(1))
        await asyncio.sleep(SECONDS + 1)
        assert store.rows() == [done(0), done(1)]


@virtual
async def test_a_write_that_failed_is_tried_again() -> None:
    case, store = Case(), Store()
    case.job()
    store.refuse = [BROKEN]
    async with Running(store.results(case).run()):
        case.sweep.put(done(0))
        await asyncio.sleep(1)
        assert store.maps == {}
        await asyncio.sleep(SECONDS)
        assert store.rows() == [done(0)]


@virtual
async def test_rows_that_somebody_spoilt_are_as_if_they_were_not_there() -> None:
    case, store = Case(loaded=False), Store()
    case.job()
    owner = [{"uid": case.sweep.uid, "kind": "GPUJob", "name": "job"}]
    meta = {"name": "job-results-0", "uid": "x", "ownerReferences": owner}
    store.maps["job-results-0"] = {"metadata": meta, "data": {RESULTS_KEY: "hello"}}
    await store.results(case).load(case.sweep)
    assert case.sweep.loaded and len(case.sweep.table) == 0


@virtual
async def test_results_are_found_when_the_jobs_are_gone() -> None:
    case, store = Case(), Store()
    case.job()
    case.sweep.put(done(0))
    async with Running(store.results(case).run()):
        await asyncio.sleep(1)
    after = Case(loaded=False)
    await store.results(after).load(after.sweep)
    assert list(after.sweep.table) == [done(0)]


@virtual
async def test_a_row_that_cannot_be_written_stops_no_other_write() -> None:
    case, store = Case(), Store()
    case.job()
    async with Running(store.results(case).run()):
        case.sweep.put(done(0, float("nan")))
        await asyncio.sleep(1)
        assert store.maps == {}
        case.sweep.table.put(done(0, 1.0))
        await asyncio.sleep(SECONDS + 1)
        assert store.rows() == [done(0)]


@virtual
async def test_rows_of_trials_that_the_sweep_does_not_have_are_left_out() -> None:
    case, store = Case(loaded=False), Store()
    other = Case(completions=9)
    other.job(size=9)
    other.sweep.put(done(8))
    other.sweep.put(done(3))
    owner = [{"uid": case.sweep.uid, "kind": "GPUJob", "name": "job"}]
    meta = {"name": "job-results-0", "uid": "x", "ownerReferences": owner}
    text = text_of(other.sweep, next(iter(other.sweep.segments)))
    store.maps["job-results-0"] = {"metadata": meta, "data": {RESULTS_KEY: text}}
    await store.results(case).load(case.sweep)
    assert list(case.sweep.table) == [done(3)]


@virtual
async def test_gaps_in_what_is_stored_cost_a_few_requests_whatever_a_jobs_number_is() -> None:
    case, store = Case(loaded=False, completions=100_000), Store()
    case.job(90_000, 95_000, 1)
    for number in (0, 2, 90_000):
        name = f"job-results-{number}"
        owner = {"uid": case.sweep.uid}
        store.maps[name] = {"metadata": {"uid": name, "ownerReferences": [owner]}, "data": {}}
    results = Results(store.client, case.sweeps, seconds=SECONDS, clock=clock)  # type: ignore[arg-type]
    await results.load(case.sweep)
    asked = [int(sent.path.rpartition("-")[2]) for sent in store.client.of("GET")]
    assert len(asked) < 20 and {0, 1, 2, 3, 90_000} <= set(asked)
    assert case.sweep.loaded


@virtual
async def test_whose_results_are_refused_is_told_so_once() -> None:
    case, store, told = Case(completions=8), Store(), list[tuple[str, str]]()
    case.job()
    store.client.reply = lambda sent: NOT_FOUND if sent.method == "GET" else UNPROCESSABLE
    results = Results(
        store.client,  # type: ignore[arg-type]
        case.sweeps,
        seconds=SECONDS,
        clock=clock,
        refused=lambda key, why: told.append((key, why)),
    )
    async with Running(results.run()):
        case.sweep.put(done(0))
        await asyncio.sleep(300)
        assert told == [(case.sweep.key, str(UNPROCESSABLE))]
