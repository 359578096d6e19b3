"""Results that somebody deleted or changed: written again from what is known, or told of."""

import asyncio
from typing import Any

import pytest
from tests.unit.runtime.virtual_loop import Running, virtual
from tests.unit.sweeps.runtime.cases import KEY, Case
from tests.unit.sweeps.runtime.test_results import SECONDS, Store, done

from gpu_scheduler.api.gpujob import Phase
from gpu_scheduler.api.names import RESULTS_KEY
from gpu_scheduler.runtime.status.judged import Judged
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState
from gpu_scheduler.sweeps.runtime.loading import Loading
from gpu_scheduler.sweeps.runtime.salvage import as_it_ended, lost, salvage
from gpu_scheduler.sweeps.runtime.status import judged
from gpu_scheduler.sweeps.runtime.trials import VANISHED


def spoil(store: Store) -> None:
    store.maps["job-results-0"]["data"][RESULTS_KEY] = "hello"


@pytest.mark.parametrize("harm", [lambda s: s.maps.clear(), spoil], ids=["deleted", "changed"])
def test_what_is_known_is_written_again(harm: Any) -> None:
    @virtual
    async def run() -> None:
        case, store = Case(), Store()
        case.job()
        async with Running(store.results(case).run()):
            case.sweep.put(done(0))
            await asyncio.sleep(1)
            harm(store)
            await asyncio.sleep(2 * SECONDS)
            assert store.rows() == [done(0)]

    run()


@virtual
async def test_so_it_is_when_the_jobs_are_gone() -> None:
    case, store = Case(), Store()
    case.job()
    case.sweep.put(done(1))
    async with Running(store.results(case).run()):
        await asyncio.sleep(1)
    after = Case(loaded=False)
    results = store.results(after)
    await results.load(after.sweep)
    store.maps.clear()
    async with Running(results.run()):
        await asyncio.sleep(2 * SECONDS)
        assert store.rows() == [done(1)]


@virtual
async def test_looking_costs_one_request_a_second_however_many_there_are() -> None:
    case, store = Case(completions=30), Store()
    for number in range(10):
        case.job(number, first=3 * number, size=3)
    async with Running(store.results(case).run()):
        for trial in range(30):
            case.sweep.put(done(trial))
        await asyncio.sleep(2)
        store.client.sent.clear()
        await asyncio.sleep(20)
        assert 19 <= len(store.client.sent) <= 21
        assert len({sent.path for sent in store.client.of("GET")}) == 10, "all, in turn"


@virtual
async def test_somebody_elses_is_left_alone() -> None:
    case, store = Case(), Store()
    case.job()
    async with Running(store.results(case).run()):
        case.sweep.put(done(0))
        await asyncio.sleep(1)
        store.maps["job-results-0"] = {"metadata": {"uid": "x"}, "data": {RESULTS_KEY: "mine"}}
        await asyncio.sleep(60)
        assert store.maps["job-results-0"]["data"] == {RESULTS_KEY: "mine"}


def status_of(case: Case) -> dict[str, Any]:
    return judged(case.sweep, 0).status.model_dump(mode="json", by_alias=True)


def leader_after(phase: str = "Succeeded", **sweep: Any) -> tuple[Case, dict[str, Any]]:
    """A leader that finds a status of a sweep of 40 trials, and no stored results."""
    before = Case(completions=40, **sweep)
    before.job(size=40)
    for trial in range(38):
        before.sweep.given(trial, {"lr": 0.25})
        before.trials.end(before.sweep, done(trial, 1.0 + (trial * 7) % 40))
    before.trials.end(before.sweep, Outcome(38, TrialState.FAILED, message="boom"))
    before.trials.end(before.sweep, Outcome(39, TrialState.FAILED, message="bang"))
    told = status_of(before)
    after = Case(completions=40, **sweep)
    job = after.state.gpujobs[KEY]
    job.status = {"phase": phase, "sweep": told, "message": "all trials have ended"}
    return after, told


def test_the_best_trial_stays_the_best_and_what_is_lost_is_counted() -> None:
    case, told = leader_after(phase="Running")
    assert salvage(case.sweep, case.state.gpujobs[KEY])
    found = judged(case.sweep, 0, lost(case.sweep)).status.model_dump(mode="json", by_alias=True)
    for part in ("best", "top", "errors"):
        assert found[part] == told[part]
    assert found["lostResults"].startswith("28 of 40 results are lost: a ConfigMap job-results-N")


def test_the_end_of_a_sweep_stays_what_it_was() -> None:
    case, told = leader_after()
    salvage(case.sweep, case.state.gpujobs[KEY])
    found = as_it_ended(case.state.gpujobs[KEY], case.sweep)
    assert isinstance(found, Judged)
    assert (found.ended, found.message) == (Phase.SUCCEEDED, "all trials have ended")
    status = found.status.model_dump(mode="json", by_alias=True)
    assert status == told | {"lostResults": status["lostResults"]}
    assert status["lostResults"]


def test_looking_for_their_pods_in_vain_changes_nothing_of_that() -> None:
    case, _ = leader_after()
    salvage(case.sweep, case.state.gpujobs[KEY])
    sentence = lost(case.sweep)
    case.job(size=40)
    for trial in range(40):
        case.trials.end(case.sweep, Outcome(trial, TrialState.RESULT_MISSING, message=VANISHED))
    assert lost(case.sweep) == sentence != ""


def test_what_pods_tell_is_not_lost() -> None:
    case, _ = leader_after()
    case.job(size=40)
    for trial in range(40):
        case.sweep.restore(done(trial))
    assert not salvage(case.sweep, case.state.gpujobs[KEY])
    assert lost(case.sweep) == ""
    assert as_it_ended(case.state.gpujobs[KEY], case.sweep) is None


def test_what_is_read_later_from_logs_is_found_again() -> None:
    case, _ = leader_after()
    salvage(case.sweep, case.state.gpujobs[KEY])
    for trial in range(40):
        case.trials.end(case.sweep, done(trial))
    assert lost(case.sweep) == ""


def test_parameters_of_an_adaptive_search_come_back_as_the_status_shows_them() -> None:
    case, told = leader_after(algorithm="tpe")
    salvage(case.sweep, case.state.gpujobs[KEY])
    assert status_of(case)["best"] == told["best"]


@pytest.mark.parametrize(
    "odd", [{}, {"sweep": None}, {"sweep": 7}, {"sweep": {"counts": "many"}}, {"phase": "Running"}]
)
def test_a_status_that_says_nothing_salvages_nothing(odd: dict[str, Any]) -> None:
    case = Case()
    case.state.gpujobs[KEY].status = odd
    assert not salvage(case.sweep, case.state.gpujobs[KEY])


@virtual
async def test_a_leader_that_finds_nothing_stored_takes_the_status_at_its_word() -> None:
    case, told = leader_after(phase="Running")
    case.sweep.loaded = False
    case.job(size=40)
    store = Store()
    loading = Loading(case.state, case.sweeps, case.trials, store.results(case))
    await loading.loaded(case.state.gpujobs[KEY])
    assert status_of(case)["best"] == told["best"]
    assert case.sweep.dirty == {0}, "what is known is stored again"


def test_what_is_being_read_from_logs_is_left_to_them() -> None:
    """They have the other metrics as well."""
    case, told = leader_after(phase="Running")
    assert not salvage(case.sweep, case.state.gpujobs[KEY], range(40))
    best = told["best"]["trial"]
    salvage(case.sweep, case.state.gpujobs[KEY], {best})
    assert not case.sweep.final(best)
    assert lost(case.sweep).startswith("28 of 39 results are lost")


@virtual
async def test_what_only_the_status_knew_is_stored_again_also_without_a_job() -> None:
    case, told = leader_after()
    store = Store()
    results = store.results(case)
    results.keep(case.sweep, salvage(case.sweep, case.state.gpujobs[KEY]))
    async with Running(results.run()):
        await asyncio.sleep(1)
    stored = [row.trial for row in store.rows()]
    shown = [*told["top"], *told["errors"]]
    assert stored == sorted(each["trial"] for each in shown)
