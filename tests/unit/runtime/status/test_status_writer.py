"""When status is written: at once, then gathered, and only what changed."""

import asyncio
from itertools import chain, repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.runtime.fake_client import (
    ANOTHER,
    AWAY,
    CONFLICT,
    NOT_FOUND,
    NOT_LEADER,
    UNPROCESSABLE,
    Sent,
)
from tests.unit.runtime.informers.test_custom_resources import project_body
from tests.unit.runtime.status_case import INTERVAL, JOB_PATH, KEY, PROJECT_PATH, Case
from tests.unit.runtime.virtual_loop import virtual
from tests.unit.state.builders import gpujob_body, half, make_job, make_pod

from gpu_scheduler.core.model.decision import Reason, Reservation, ReservationReason, Wait
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.kube import errors
from gpu_scheduler.runtime.status import status_writer
from gpu_scheduler.runtime.status.status_writer import difference


@virtual
async def test_the_first_news_are_written_at_once() -> None:
    case = Case()
    case.planning.waits[KEY] = Wait(KEY, Reason.WAITING_FOR_GPU, "no GPU is free", 1)
    async with case.running():
        await asyncio.sleep(0.2)
    (write,) = case.written()
    assert write.body["metadata"] == {"uid": "gpujob-uid"}
    assert write.body["status"]["reason"] == "WaitingForGPU"
    assert len(case.written(PROJECT_PATH)) == 1


@virtual
async def test_what_passes_within_a_second_is_not_written() -> None:
    case = Case()
    async with case.running():
        await asyncio.sleep(0.8)  # its Job and its pod are being made
        case.pod(1)
        await asyncio.sleep(0.2)
    (write,) = case.written()
    assert write.body["status"]["phase"] == "Running"


@virtual
async def test_what_lasts_is_written_after_a_second() -> None:
    case = Case()
    async with case.running():
        await asyncio.sleep(1.2)
    (write,) = case.written()
    assert write.body["status"]["reason"] == "CreatingJob"


@virtual
async def test_who_has_said_something_waits_longer_with_what_passes() -> None:
    case = Case()
    async with case.running():
        await asyncio.sleep(INTERVAL + 1)
        case.state.job_changed(make_job())
        await asyncio.sleep(4.5)
        assert len(case.written()) == 1
        await asyncio.sleep(1)
    told = [write.body["status"]["reason"] for write in case.written()]
    assert told == ["CreatingJob", "CreatingPods"]


@virtual
async def test_a_reason_that_is_over_stands_for_less_than_two_seconds() -> None:
    case = Case(seconds=1.0)
    case.waits()
    async with case.running():
        await asyncio.sleep(INTERVAL)
        del case.planning.waits[KEY]
        case.state.job_changed(make_job())
        case.state.pod_changed(make_pod(node="a", devices=half()))
        await asyncio.sleep(1.3)
        assert len(case.written()) == 1, "a pod that starts at once costs no write of its own"
        await asyncio.sleep(0.5)
        assert case.written()[-1].body["status"]["reason"] == "Starting"
        await asyncio.sleep(60)
    assert len(case.written()) == 2


@virtual
async def test_a_slow_way_to_a_running_pod_costs_one_write_more_than_a_quick_one() -> None:
    """A second and a half each for its Job, its pod, the pod's place and its containers."""
    case = Case(seconds=1.0)
    case.waits()
    async with case.running():
        await asyncio.sleep(INTERVAL)
        del case.planning.waits[KEY]
        case.state.changes.touch(KEY)
        for step in (
            lambda: case.state.job_changed(make_job()),
            lambda: case.state.pod_changed(make_pod()),
            lambda: case.state.pod_changed(make_pod(version=2, node="a", devices=half())),
            lambda: case.state.pod_changed(
                make_pod(version=3, node="a", devices=half(), phase="Running")
            ),
        ):
            await asyncio.sleep(1.7)
            step()
        await asyncio.sleep(60)
    told = [write.body["status"] for write in case.written()]
    assert [each.get("reason", each.get("phase")) for each in told][:2] == [
        "WaitingForGPU",
        "CreatingJob",
    ]
    assert told[-1]["phase"] == "Running" and len(told) == 3


@virtual
async def test_room_that_is_held_for_a_moment_is_not_written_and_what_lasts_is() -> None:
    case = Case()
    case.waits()
    room = Reservation(PodUID("p"), KEY, "a", ReservationReason.RESERVED, None, half("0"))
    async with case.running():
        await asyncio.sleep(INTERVAL)
        for held in ([room], [], [room]):
            case.planning.reservations = held
            case.state.changes.touch(KEY)
            await asyncio.sleep(2)
        assert len(case.written()) == 1
        await asyncio.sleep(5)
    told = [write.body["status"] for write in case.written()][1:]
    held_room = {"node": "a", "device": "0", "milliGPU": 500, "heldAs": "reserved"}
    assert told == [{"heldRoom": [held_room]}]


@virtual
async def test_a_place_in_the_queue_is_told_in_turn_and_not_because_the_job_was_touched() -> None:
    case = Case()
    case.planning.waits[KEY] = Wait(KEY, Reason.WAITING_FOR_GPU, "no GPU is free", 9)
    async with case.running():
        for position in range(8, 0, -1):
            await asyncio.sleep(11)
            case.planning.waits[KEY] = Wait(KEY, Reason.WAITING_FOR_GPU, "no GPU is free", position)
            case.state.changes.touch(KEY)
    assert len(case.written()) == 1


@virtual
async def test_few_writes_at_once_are_of_sums() -> None:
    """With each job that comes, what all projects say may be another thing."""
    case, projects, ticks = Case(), 400, 60
    loop = asyncio.get_running_loop()
    for number in range(projects):
        case.custom_resources.project(
            project_body(f"p{number}", uid=f"p{number}", namespaces=[f"ns-{number}"])
        )
    case.client.reply = lambda sent: asyncio.sleep(0.2, {})  # 160 writes a second
    async with case.running():
        await asyncio.sleep(10)
        case.client.sent.clear()
        began = loop.time()
        for tick in range(ticks):
            for number in range(9):  # 180 jobs a second
                name, space = f"job-{tick}-{number}", f"ns-{(9 * tick + number) % projects}"
                case.planning.waits[JobKey(f"{space}/{name}")] = Wait(
                    JobKey(f"{space}/{name}"), Reason.WAITING_FOR_GPU, "no GPU is free", 1
                )
                case.custom_resources.gpujob(gpujob_body(name, uid=name, namespace=space))
            case.planning.shares_milli = dict.fromkeys(case.state.projects.records, tick)
            await asyncio.sleep(0.05)
        for _ in range(1000):
            if len([s for s in case.client.sent if "/gpujobs/" in s.path]) == 9 * ticks:
                break
            await asyncio.sleep(0.05)
        sums = [sent for sent in case.client.sent if "/gpuprojects/" in sent.path]
        assert len(sums) <= 8 / 0.2 * (loop.time() - began)
        await asyncio.sleep(30)
    told = case.state.projects.statuses.values()
    assert {status["fairShareGPU"] for status in told} == {"0.059"}


@pytest.mark.parametrize(("hurried", "most"), [(False, 16 + 1), (True, 2)])
@virtual
async def test_news_leave_the_api_server_to_placements_that_are_on_their_way(
    hurried: bool, most: int
) -> None:
    case = Case(hurried=lambda: hurried)
    case.client.reply = lambda sent: asyncio.sleep(1, {})
    for number in range(100):
        case.waits(f"many-{number}")
        case.custom_resources.gpujob(gpujob_body(f"many-{number}", uid=f"many-{number}"))
    async with case.running():
        await asyncio.sleep(0.9)
        assert len(case.client.sent) == most
        hurried = False
        await asyncio.sleep(100 / 16 + 2)
    assert len({sent.path for sent in case.client.sent if "many-" in sent.path}) == 100


@virtual
async def test_statuses_that_get_no_answer_hold_up_those_of_no_other_namespace() -> None:
    case = Case()

    async def answer(sent: Sent) -> dict[str, Any]:
        if "namespaces/team-a" in sent.path:
            await asyncio.sleep(10)
            raise errors.Unavailable(message="no answer within 10 s")
        return {}

    case.client.reply = answer
    for number in range(300):
        case.waits(f"slow-{number}")
        case.custom_resources.gpujob(gpujob_body(f"slow-{number}", uid=f"slow-{number}"))
    async with case.running():
        await asyncio.sleep(5)
        body = gpujob_body("other", uid="other", namespace="team-b")
        case.custom_resources.gpujob(body)
        await asyncio.sleep(2)
        paths = [sent.path for sent in case.client.sent]
        assert sum("namespaces/team-a" in path for path in paths) == 16
        assert any("team-b" in path for path in paths)
        await asyncio.sleep(200)
    assert len({sent.path for sent in case.client.sent if "slow-" in sent.path}) == 300


@virtual
async def test_objects_that_are_too_large_are_written_to_one_after_the_other() -> None:
    case, begun = Case(), list[str]()

    async def answer(sent: Sent) -> dict[str, Any]:
        if "large-" in sent.path:
            begun.append(sent.path)
            await asyncio.sleep(10)
        return {}

    case.client.reply = answer
    for number in range(5):
        name = f"large-{number}"
        body = gpujob_body(name, uid=name) | {"tooLarge": "spec: has 1200000 bytes"}
        case.custom_resources.gpujob(body)
    case.custom_resources.gpujob(gpujob_body("other", uid="other"))
    async with case.running():
        await asyncio.sleep(5)
        assert len(begun) == 1
        assert any("other" in sent.path for sent in case.client.sent)
        await asyncio.sleep(50)
    assert len(set(begun)) == 5


@virtual
async def test_objects_that_are_too_large_hold_up_no_other_while_placements_are_on_their_way() -> (
    None
):
    case = Case(hurried=lambda: True)

    async def answer(sent: Sent) -> dict[str, Any]:
        if "large" in sent.path:
            await asyncio.sleep(10)
        return {}

    case.client.reply = answer
    for space in ("team-a", "team-b", "team-c"):
        body = gpujob_body("large", uid=f"large-{space}", namespace=space)
        case.custom_resources.gpujob(body | {"tooLarge": "spec: has 1200000 bytes"})
    async with case.running():
        await asyncio.sleep(2)
        assert sum("large" in sent.path for sent in case.client.sent) == 2
        case.waits("other")
        case.custom_resources.gpujob(gpujob_body("other", uid="other"))
        await asyncio.sleep(1)
    assert any("other" in sent.path for sent in case.client.sent)


@virtual
async def test_who_makes_what_is_wrong_by_the_thousand_hears_of_it_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(status_writer, "_REFUSED_AT_ONCE", 20)
    case = Case()
    for number in range(60):
        name = f"wrong-{number}"
        case.custom_resources.gpujob(gpujob_body(name, uid=name, gpu=-1))

    def told() -> int:
        return len({sent.path for sent in case.client.sent if "wrong-" in sent.path})

    async with case.running():
        await asyncio.sleep(2)
        assert 20 <= told() <= 20 + 2 * 2 + 1
        case.waits("good")
        case.custom_resources.gpujob(gpujob_body("good", uid="good"))
        await asyncio.sleep(1)
        assert any("good" in sent.path for sent in case.client.sent)
        await asyncio.sleep(20)
    assert told() == 60


@virtual
async def test_however_many_have_other_numbers_only_so_many_a_second_are_looked_at() -> None:
    case = Case()
    for number in range(1000):
        case.waits(f"many-{number}")
        case.custom_resources.gpujob(gpujob_body(f"many-{number}", uid=f"many-{number}"))
    async with case.running():
        await asyncio.sleep(20)
        before = len(case.client.sent)
        for key in case.planning.waits:
            case.planning.waits[key] = Wait(key, Reason.WAITING_FOR_GPU, "no GPU is free", 2)
        case.numbers = iter(tuple(case.planning.waits))
        await asyncio.sleep(10)
        assert len(case.client.sent) - before <= 10 * 41
        await asyncio.sleep(20)
    assert len(case.client.sent) - before >= 1000, "all have their turn"


@virtual
async def test_a_place_in_the_queue_waits_for_longer_or_for_other_news() -> None:
    case = Case()

    def waits(reason: str, position: int) -> None:
        case.planning.waits[KEY] = Wait(KEY, Reason.WAITING_FOR_GPU, reason, position)
        case.state.changes.touch(KEY)
        case.numbers = iter((KEY,))

    waits("no GPU is free", 9)
    async with case.running():
        await asyncio.sleep(0.2)
        for position in range(8, 3, -1):
            waits("no GPU is free", position)
            await asyncio.sleep(1.8)
        assert len(case.written()) == 1
        await asyncio.sleep(1.2)
        assert [w.body["status"] for w in case.written()[1:]] == [{"queuePosition": 4}]
        waits("no GPU is free", 3)
        await asyncio.sleep(INTERVAL)
        waits("one GPU is free", 2)
        await asyncio.sleep(0.2)
    (write,) = case.written()[2:]
    assert (write.body["status"]["queuePosition"], write.body["status"]["message"]) == (
        2,
        "one GPU is free",
    )


@pytest.mark.long
@virtual
async def test_the_first_news_do_not_wait_for_thousands_of_later_ones() -> None:
    case = Case()

    async def slow_server() -> dict[str, Any]:
        await asyncio.sleep(0.02)
        return {}

    case.client.reply = lambda sent: slow_server()
    for number in range(2000):
        old = gpujob_body(f"old-{number}", uid=f"old-{number}", status={"phase": "Running"})
        case.custom_resources.gpujob(old)
    async with case.running():
        await asyncio.sleep(1)
        assert 0 < len(case.client.sent) < 1000  # ten at a time
        case.waits("new")
        case.custom_resources.gpujob(gpujob_body("new", uid="new"))
        await asyncio.sleep(1)
        assert case.written(JOB_PATH.replace("/job/", "/new/"))
        await asyncio.sleep(15)  # and all others have their turn
    assert {sent.path for sent in case.client.sent} >= {
        JOB_PATH.replace("/job/", f"/old-{number}/") for number in range(2000)
    }


@virtual
async def test_later_news_are_gathered() -> None:
    case = Case()
    async with case.running():
        await asyncio.sleep(1)
        for index in range(3):
            case.pod(version=index + 1, index=index)
            await asyncio.sleep(0.5)
        assert len(case.written()) == 1
        await asyncio.sleep(INTERVAL)
    first, second = case.written()
    assert second.body["status"]["pods"]["running"] == 3
    assert second.body["status"].keys() <= first.body["status"].keys() | {"node"}
    assert "project" not in second.body["status"]  # it did not change


@virtual
async def test_nothing_is_written_when_nothing_changed() -> None:
    case = Case()
    case.waits()
    async with case.running():
        await asyncio.sleep(1)
        before = len(case.client.sent)
        for _ in range(5):
            case.state.changes.touched.add(KEY)
            case.state.projects.touched.add(next(iter(case.state.projects.records)))
            await asyncio.sleep(INTERVAL)
    assert len(case.client.sent) == before


@virtual
async def test_a_status_that_says_it_already_is_left_alone_after_a_restart() -> None:
    case = Case()
    case.waits()
    async with case.running():
        await asyncio.sleep(1)
    again = Case()
    again.waits()
    status = case.written()[0].body["status"]
    again.custom_resources.gpujob(gpujob_body(version=2, status=status))
    async with again.running():
        await asyncio.sleep(1)
    assert again.written() == []


@pytest.mark.parametrize("answer", [AWAY, CONFLICT, errors.TooManyRequests(429)])
def test_a_status_that_was_not_written_is_written_later(answer: errors.ApiError) -> None:
    @virtual
    async def run() -> None:
        case = Case()
        case.answers = iter([answer] * 4 + [{}] * 100)
        async with case.running():
            await asyncio.sleep(INTERVAL * 6)
        writes = case.written()
        assert 2 <= len(writes) <= 5
        assert all(write.body == writes[0].body for write in writes)
        assert len(case.events.said) == 0

    run()


@pytest.mark.long
@pytest.mark.parametrize("answer", [errors.Forbidden(403), UNPROCESSABLE, errors.TooLarge(413)])
def test_a_status_that_is_refused_is_written_ever_more_seldom_and_said_once(
    answer: errors.ApiError, caplog: pytest.LogCaptureFixture
) -> None:
    @virtual
    async def run() -> None:
        case = Case()
        case.answers = iter([answer] * 100)
        async with case.running():
            await asyncio.sleep(29)
            assert len(case.written()) == 1
            await asyncio.sleep(600)
            refused = len(case.written())
            assert refused <= 6
            case.answers = iter([{}] * 100)
            await asyncio.sleep(1200)
        assert len(case.written()) == refused + 1
        assert sum("jobs/job/status not written" in line for line in caplog.messages) == 1

    run()


@virtual
async def test_the_status_of_what_is_another_object_now_is_dropped() -> None:
    case = Case()
    case.answers = iter([ANOTHER] * 100)
    async with case.running():
        await asyncio.sleep(60)
    assert (len(case.written()), len(case.written(PROJECT_PATH))) == (1, 1)


@virtual
async def test_what_was_not_found_is_written_once_it_is_and_dropped_when_it_is_gone() -> None:
    """An API server that starts does not know our kinds for a moment."""
    case = Case()
    case.answers = chain(repeat(NOT_FOUND, 2), repeat({}))
    async with case.running():
        await asyncio.sleep(INTERVAL)
        assert case.state.gpujobs[KEY].shown == {}
        await asyncio.sleep(60)
        assert len(case.written()) == 2
        assert case.state.gpujobs[KEY].shown["phase"] == "Pending"
        case.answers = repeat(NOT_FOUND)
        case.pod(version=1)
        await asyncio.sleep(INTERVAL)
        case.custom_resources.gpujob_gone("team-a", "job", "gpujob-uid")
        before = len(case.written())
        await asyncio.sleep(600)
    assert len(case.written()) == before


@virtual
async def test_a_gpujob_that_is_gone_is_not_written() -> None:
    case = Case()
    case.custom_resources.gpujob_gone("team-a", "job", "gpujob-uid")
    async with case.running():
        await asyncio.sleep(1)
    assert case.written() == []
    assert case.state.changes.touched == set()


@virtual
async def test_a_closed_fence_ends_it() -> None:
    case = Case()
    case.answers = iter([NOT_LEADER] * 9)
    with pytest.raises(BaseExceptionGroup) as caught:
        async with case.running():
            await asyncio.sleep(1)
    assert caught.value.subgroup(errors.NotLeader) is not None


@virtual
async def test_an_error_that_nobody_foresaw_concerns_one_object_only() -> None:
    case = Case()
    broken = KeyError("surprise")
    case.client.reply = lambda sent: broken if sent.path == JOB_PATH else {}
    async with case.running():
        await asyncio.sleep(1)
        case.waits("other")
        case.custom_resources.gpujob(gpujob_body("other", uid="other"))
        await asyncio.sleep(1)
    assert len(case.written(JOB_PATH.replace("/job/", "/other/"))) == 1


VALUES = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2))


@given(VALUES, VALUES)
def test_a_difference_applied_as_a_merge_patch_gives_the_new_status(
    before: dict[str, int], after: dict[str, int]
) -> None:
    patch = difference(before, after)
    merged = {k: v for k, v in (before | patch).items() if v is not None}
    assert merged == after
    assert all(before.get(k) != v for k, v in patch.items())


@virtual
async def test_what_an_object_was_told_is_not_kept_for_its_successor() -> None:
    case = Case()
    case.waits()

    async def slow_server() -> dict[str, Any]:
        await asyncio.sleep(1)
        return {}

    case.client.reply = lambda sent: slow_server()
    async with case.running():
        await asyncio.sleep(0.5)
        assert case.written() and not case.state.gpujobs[KEY].status
        case.custom_resources.gpujob_gone("team-a", "job", "gpujob-uid")
        case.custom_resources.gpujob(gpujob_body(uid="another", version=9))
        await asyncio.sleep(0.8)
        assert not case.state.gpujobs[KEY].status
        await asyncio.sleep(3)
    assert [sent.body["metadata"]["uid"] for sent in case.written()] == ["gpujob-uid", "another"]
    assert case.state.gpujobs[KEY].status
