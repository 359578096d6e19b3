"""Every report has one answer, and only the pod that runs a trial speaks for it."""

import asyncio

import pytest
from tests.unit.runtime.fake_client import AWAY, NOT_FOUND
from tests.unit.runtime.pod_tokens import HERE, of
from tests.unit.runtime.virtual_loop import virtual
from tests.unit.sweeps.runtime.pruned import Case, told, uid

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.runtime.reports.report_tokens import Sender
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState
from gpu_scheduler.sweeps.runtime.reports import BURST, PER_SECOND


@virtual
async def test_a_good_trial_goes_on_and_a_hopeless_one_is_told_to_stop() -> None:
    case = Case()
    assert (await case.report(0, 0.1)).body == {"stop": False}
    answer = await case.report(1, 0.9)
    assert (answer.status, answer.body) == (200, {"stop": True})
    assert case.sweep.told_to_stop(1) and not case.sweep.told_to_stop(0)


@virtual
async def test_that_it_was_told_is_on_the_pod_before_it_is_told() -> None:
    case = Case()
    await case.report(0, 0.1)
    await case.report(1, 0.9, step=3)
    (mark,) = case.client.sent
    assert mark.path.endswith("/team-a/pods/job-1/status")
    condition = mark.body["status"]["conditions"][0]
    assert condition["type"] == "gpu-scheduler.io/Pruned"
    assert condition["message"] == "trial 1 had loss 0.9 at step 3, worse than the others"


@pytest.mark.parametrize("trouble", [AWAY, NOT_FOUND])
def test_what_could_not_be_written_is_not_said_and_said_the_next_time(trouble: object) -> None:
    @virtual
    async def next_time() -> None:
        case = Case()
        await case.report(0, 0.1)
        case.answer = trouble
        assert (await case.report(1, 0.9)).body == {"stop": False}
        assert not case.sweep.told_to_stop(1)
        case.answer = {}
        assert (await case.report(1, 0.9, step=2)).body == {"stop": True}

    next_time()


@virtual
async def test_it_is_told_again_as_often_as_it_asks_with_one_write() -> None:
    case = Case()
    await case.report(0, 0.1)
    for step in (1, 2, 3):
        assert (await case.report(1, 0.9, step=step)).body == {"stop": True}
    assert (await case.report(1, 0.01, step=4)).body == {"stop": True}, "however good it gets"
    assert case.marks == ["job-1"]


@virtual
async def test_a_new_leader_says_what_the_old_one_said() -> None:
    case = Case()
    case.see(case.pod(1, version=2, conditions=(told(),)))
    assert (await case.report(1, 0.1)).body == {"stop": True}
    assert case.sweep.told_to_stop(1)
    assert not case.client.sent


@virtual
async def test_without_early_stopping_nothing_is_reported() -> None:
    for case in (Case(None), Case(None, objective=None)):
        answer = await case.report(0, 0.1)
        assert answer.status == 403
        assert "earlyStopping" in str(answer.body["error"])
        assert not case.client.sent and not case.reviewer.sent


@virtual
async def test_the_token_of_another_trial_and_none_are_refused() -> None:
    case = Case()
    assert (await case.report(1, sender=of(uid(0)))).status == 403
    assert (await case.report(1, sender=Sender("", HERE))).status == 401
    assert not case.client.sent
    assert case.reports.answers == {401: 1, 403: 1}


@virtual
async def test_a_pod_speaks_for_its_trial_no_more_when_another_has_its_place() -> None:
    case = Case()
    case.see(case.pod(1, version=2, phase="Failed"))
    assert (await case.report(1)).status == 410
    again = PodUID("uid-again")
    case.see(case.pod(1, version=3, uid=again))
    assert (await case.reports.take(again, b"{}")).status == 410, "it is not known to run it"
    case.sweep.live[1] = again
    assert await case.reports.refusal(again, of(again)) is None
    refused = await case.reports.refusal(again, of(uid(1)))
    assert refused is not None and refused.status == 403


@virtual
async def test_pods_that_do_not_run_and_sweeps_that_are_gone_are_told_so() -> None:
    case = Case()
    assert (await case.reports.take(PodUID("other"), b"{}")).status == 410
    del case.sweep.live[1]
    assert (await case.report(1)).status == 410
    del case.state.gpujobs[case.sweep.key]
    assert (await case.report(0)).status == 403
    assert not case.reviewer.sent, "nobody is asked whose tokens these are"


@virtual
async def test_a_new_leader_that_still_reads_results_asks_to_try_again() -> None:
    case = Case()
    case.sweep.loaded = False
    answer = await case.report(0)
    assert (answer.status, answer.retry_after_seconds) == (503, 1)


@virtual
async def test_a_trial_that_is_in_the_table_already_is_not_pruned() -> None:
    case = Case()
    await case.report(0, 0.1)
    case.sweep.put(Outcome(1, TrialState.SUCCEEDED, 0.9))
    assert (await case.report(1, 0.9)).body == {"stop": False}
    assert not case.client.sent


@virtual
async def test_a_trial_that_reports_too_often_is_told_when_to_try_again() -> None:
    case = Case()
    answers = [(await case.report(0, step=step)).status for step in range(int(BURST) + 5)]
    assert answers == [200] * int(BURST) + [429] * 5
    assert (await case.report(0)).retry_after_seconds == 1
    assert (await case.report(1)).status == 200, "another trial is not to blame"
    await asyncio.sleep(1)
    answers = [(await case.report(0)).status for _ in range(int(PER_SECOND) + 1)]
    assert answers == [200] * int(PER_SECOND) + [429]


@virtual
async def test_strangers_use_up_nobodys_allowance() -> None:
    case = Case()
    for _ in range(100):
        assert (await case.report(0, sender=of(uid(1)))).status == 403
    assert (await case.report(0)).status == 200


@virtual
async def test_who_will_be_refused_is_refused_before_there_is_a_body() -> None:
    case = Case()
    assert await case.reports.refusal(uid(0), of(uid(0))) is None
    for asked, said, status in (
        (PodUID("other"), of(uid(0)), 410),
        (uid(0), of(uid(1)), 403),
        (uid(0), Sender("", HERE), 401),
    ):
        refused = await case.reports.refusal(asked, said)
        assert refused is not None and refused.status == status
    for step in range(int(BURST)):
        await case.report(0, step=step)
    refused = await case.reports.refusal(uid(0), of(uid(0)))
    assert refused is not None and refused.status == 429
    assert case.reports.answers == {200: BURST, 401: 1, 403: 1, 410: 1, 429: 1}


@pytest.mark.parametrize("value", [b"NaN", b"Infinity", b"-Infinity", b"-1e999", b"1" + b"0" * 400])
def test_a_trial_that_diverged_is_the_worst_of_all(value: bytes) -> None:
    @virtual
    async def worst() -> None:
        case = Case()
        await case.report(0, 1e300)
        body = b'{"step": 1, "metrics": {"loss": ' + value + b"}}"
        assert (await case.report(1, body=body)).body == {"stop": True}
        assert (await case.report(0, 1e300, step=2)).body == {"stop": False}

    worst()


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\x00", b"[]", b'{"step": 1, "metrics": {"loss": "low"}}', b'{"metrics": {}}'],
)
def test_a_report_that_means_nothing_is_refused_with_a_sentence(body: bytes) -> None:
    @virtual
    async def refused() -> None:
        case = Case()
        answer = await case.report(0, body=body)
        assert answer.status == 400
        assert len(str(answer.body["error"]).split()) > 3

    refused()
