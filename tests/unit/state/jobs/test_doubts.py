"""What is remembered of jobs whose pods could not start for a reason of their own."""

from dataclasses import replace

import pytest
from tests.unit.state.builders import make_gpujob

from gpu_scheduler.core.model.decision import Reason, Wait
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.state.jobs.doubts import (
    KEPT_SECONDS,
    About,
    Doubts,
    FailedStart,
    elsewhere_first,
)

JOB = make_gpujob()
KEY, ABOUT = JOB.key, About(JOB.uid, JOB.generation)
DELAYS = elsewhere_first(Backoff(30.0, 600.0))
WAIT = Wait(KEY, Reason.WAITING_FOR_GPU, "needs 1 GPU", 1)


def noted(doubts: Doubts, now: float = 0.0, why: str = "a policy says no", **more: bool) -> float:
    return doubts.note(KEY, ABOUT, FailedStart(now, why, delays=DELAYS, **more))


def test_no_moment_is_promised_that_has_passed() -> None:
    doubts = Doubts(lambda: 1_767_225_600.0)
    noted(doubts, 0.0)
    known = doubts.of(KEY)
    assert known is not None
    told = "a policy says no; it is tried again at 2026-01-01T00:00:01Z"
    assert known.said(None) == known.said(WAIT) == (Reason.PLACEMENT_REFUSED, told)
    assert doubts.next_expiry() == 1.0
    assert list(doubts.expire(0.9)) == [] and list(doubts.expire(1.0)) == [KEY]
    assert doubts.next_expiry() is None and "tried again at" not in known.said(None)[1]
    reason, said = known.said(WAIT)
    assert reason == Reason.PLACEMENT_REFUSED and "tried again at" not in said
    assert said.startswith("a policy says no; ") and said.endswith("; needs 1 GPU")


def test_one_that_knows_more_is_heard_and_pods_of_one_try_count_once() -> None:
    doubts = Doubts(lambda: 0.0)
    assert noted(doubts, 0.0, "slow", explained=False) == 1.0
    assert noted(doubts, 0.5, "no image") == 1.0
    assert noted(doubts, 0.6, "another") == 1.0
    known = doubts.of(KEY)
    assert known is not None and (known.why, known.times) == ("no image", 1)


def test_what_was_said_is_bounded() -> None:
    doubts = Doubts(lambda: 0.0)
    noted(doubts, why="word " * 10_000)
    known = doubts.of(KEY)
    assert known is not None and len(known.why) < 700


def in_doubt(reason: str, message: str, status: str = "True") -> dict[str, object]:
    condition = {"type": "InDoubt", "status": status, "reason": reason, "message": message}
    return {"phase": "Pending", "reason": "Placing", "conditions": [condition]}


def test_a_new_leader_takes_the_words_from_the_status_and_tries_at_once() -> None:
    doubts = Doubts(lambda: 0.0)
    noted(doubts)
    before = doubts.of(KEY)
    assert before is not None
    for _ in range(3):  # leaders, whatever its reason is by then
        status = in_doubt(before.reason, before.why)
        doubts = Doubts(lambda: 0.0)
        doubts.see(replace(JOB, status=status), new=True)
        before = doubts.of(KEY)
        assert before is not None and not doubts.held_back(KEY)
        assert (before.reason, before.why) == (Reason.PLACEMENT_REFUSED, "a policy says no")


def test_a_status_is_read_once_and_no_other_reason_counts() -> None:
    doubts = Doubts(lambda: 0.0)
    doubts.see(replace(JOB, status=in_doubt("PlacementRefused", "x")), new=False)
    doubts.see(replace(JOB, status=in_doubt("WaitingForGPU", "x")), new=True)
    doubts.see(replace(JOB, status=in_doubt("PlacementRefused", "x", "False")), new=True)
    assert KEY not in doubts


def test_a_status_of_an_older_version_has_the_reason_alone() -> None:
    doubts = Doubts(lambda: 0.0)
    status = {"reason": "StartTimedOut", "message": "slow; it is tried again at 2026"}
    doubts.see(replace(JOB, status=status), new=True)
    known = doubts.of(KEY)
    assert known is not None and (known.reason, known.why) == (Reason.START_TIMED_OUT, "slow")


def test_of_a_pod_that_asks_by_itself_the_words_stand_in_its_condition() -> None:
    doubts = Doubts(lambda: 0.0)
    noted(doubts)
    known = doubts.of(KEY)
    assert known is not None
    for quiet in (False, True):
        known.until, known.quiet = None, quiet
        said = ": ".join(known.said(WAIT))
        another = Doubts(lambda: 0.0)
        another.read(KEY, ABOUT, said)
        read = another.of(KEY)
        assert read is not None and "a policy says no" in read.why
    another = Doubts(lambda: 0.0)
    another.read(KEY, ABOUT, "WaitingForGPU: needs 1 GPU")
    assert KEY not in another


def test_another_spec_and_another_job_of_the_name_are_in_no_doubt() -> None:
    for other in (replace(JOB, generation=2), replace(JOB, uid="other")):
        doubts = Doubts(lambda: 0.0)
        noted(doubts)
        doubts.see(JOB, new=False)
        assert KEY in doubts
        doubts.see(other, new=other.uid != JOB.uid)
        assert KEY not in doubts


def test_a_job_that_is_gone_is_forgotten() -> None:
    doubts = Doubts(lambda: 0.0)
    noted(doubts)
    doubts.forget(lambda key: key != KEY)
    assert KEY in doubts
    doubts.forget(lambda key: True)
    assert KEY not in doubts


# --- those that are alike ---

LIKE = replace(ABOUT, alike="team-a/digest")
OTHER = make_gpujob("other").key


def failed(doubts: Doubts, about: About = LIKE, now: float = 0.0) -> None:
    doubts.note(KEY, about, FailedStart(now, "a policy says no", delays=DELAYS))


def test_who_is_made_again_waits_as_long_and_for_longer_each_time() -> None:
    doubts, now = Doubts(lambda: 0.0), 0.0
    for delay in (1.0, 30.0, 60.0):
        failed(doubts, now=now)
        doubts.forget(lambda key: True)
        assert doubts.inherit(KEY, replace(LIKE, uid="made again"), now)
        assert doubts.held_back(KEY) and doubts.next_expiry() == now + delay
        now += delay
        doubts.expire(now)


def test_nothing_is_known_of_those_who_are_not_alike_or_elsewhere() -> None:
    doubts = Doubts(lambda: 0.0)
    failed(doubts)
    for alike in ("", "team-a/another", "team-b/digest"):
        assert not doubts.inherit(OTHER, replace(LIKE, alike=alike), 0.0)
    assert doubts.any_of("team-a") and not doubts.any_of("team-b")


def test_once_one_has_started_none_that_has_not_failed_itself_is_in_doubt() -> None:
    doubts, third = Doubts(lambda: 0.0), make_gpujob("third").key
    failed(doubts)
    assert doubts.inherit(OTHER, LIKE, 0.0) and doubts.inherit(third, LIKE, 0.0)
    assert doubts.drop(OTHER) == [OTHER, third]
    assert KEY in doubts, "its name may be what a policy refuses"
    assert not doubts.any_of("team-a") and doubts.drop(OTHER) == []


def test_what_is_wrong_with_a_name_is_wrong_with_no_other() -> None:
    doubts = Doubts(lambda: 0.0)
    why = "metadata.name: a Job named job exists in namespace team-a already"
    doubts.note(KEY, LIKE, FailedStart(0.0, why))
    assert KEY in doubts and not doubts.inherit(OTHER, replace(LIKE, uid="other"), 0.0)
    later = Doubts(lambda: 0.0)  # of a new leader, which reads it
    later.restore(KEY, replace(LIKE, alike=""), Reason.PLACEMENT_REFUSED, why)
    later.complete(KEY, LIKE, 0.0)
    assert KEY in later and not later.inherit(OTHER, replace(LIKE, uid="other"), 0.0)


def test_what_is_known_of_those_that_are_alike_has_an_end() -> None:
    doubts = Doubts(lambda: 0.0)
    failed(doubts)
    doubts.forget(lambda key: True)
    doubts.expire(KEPT_SECONDS - 1)
    assert doubts.any_of("team-a")
    doubts.expire(KEPT_SECONDS)
    assert not doubts.any_of("team-a")


@pytest.mark.long
def test_it_is_bounded_of_one_namespace_and_of_all() -> None:
    doubts = Doubts(lambda: 0.0)
    for number in range(10_000):
        alike = f"ns-{0 if number % 2 else number}/{number}"
        doubts.note(
            JobKey(f"{alike}"),
            replace(ABOUT, alike=alike),
            FailedStart(float(number), "x" * 10_000, delays=DELAYS),
        )
    kept = [each for of in doubts._alike.values() for each in of.items()]
    assert len(kept) <= 1024 and len(doubts._alike["ns-0"]) <= 64
    assert sum(len(alike) + len(doubt.why) for alike, (doubt, _) in kept) < 1 << 20
    assert doubts.inherit(OTHER, replace(ABOUT, alike="ns-0/9999"), 9999.0), "the last are known"


def test_a_doubt_on_free_room_holds_nobody_back_and_another_one_does() -> None:
    doubts = Doubts(lambda: 0.0)
    doubts.note(KEY, ABOUT, FailedStart(0.0, "rejected"))
    known = doubts.of(KEY)
    assert known is not None and known.quiet and not doubts.held_back(KEY)
    reason, said = known.said(WAIT)
    assert reason is WAIT.reason and said.startswith("needs 1 GPU; rejected; until one of its pods")
    assert noted(doubts) == 1.0 and doubts.held_back(KEY)
    doubts.expire(1.0)
    doubts.note(KEY, ABOUT, FailedStart(2.0, "rejected"))
    again = doubts.of(KEY)
    assert again is not None and again.why == "a policy says no"


def test_what_an_earlier_leader_knew_is_known_of_those_that_are_alike() -> None:
    doubts = Doubts(lambda: 0.0)
    doubts.see(replace(JOB, status=in_doubt("PlacementRefused", "x")), new=True)
    assert not doubts.inherit(OTHER, LIKE, 0.0)
    doubts.complete(KEY, LIKE, 0.0)
    assert doubts.inherit(OTHER, LIKE, 0.0)
