"""What is remembered of jobs whose pods could not start for a reason of their own."""

from dataclasses import replace

from tests.unit.state.builders import make_gpujob

from gpu_scheduler.core.model.decision import Reason, Wait
from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.state.doubts import About, Doubts, elsewhere_first

JOB = make_gpujob()
KEY, ABOUT = JOB.key, About(JOB.uid, JOB.generation)
DELAYS = elsewhere_first(Backoff(30.0, 600.0))
WAIT = Wait(KEY, Reason.WAITING_FOR_GPU, "needs 1 GPU", 1)


def noted(doubts: Doubts, now: float = 0.0, why: str = "a policy says no", **more: bool) -> float:
    return doubts.note(KEY, ABOUT, Reason.PLACEMENT_REFUSED, why, now, DELAYS, **more)


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


def test_a_new_leader_takes_the_words_from_the_status_and_tries_at_once() -> None:
    doubts = Doubts(lambda: 0.0)
    noted(doubts)
    before = doubts.of(KEY)
    assert before is not None
    for _ in range(3):  # leaders, while it is held back and while it waits
        reason, message = before.said(WAIT)
        status = {"phase": "Pending", "reason": reason, "message": message}
        doubts = Doubts(lambda: 0.0)
        doubts.see(replace(JOB, status=status), new=True)
        before = doubts.of(KEY)
        assert before is not None and not doubts.held_back(KEY)
        assert (before.reason, before.why) == (Reason.PLACEMENT_REFUSED, "a policy says no")


def test_a_status_is_read_once_and_no_other_reason_counts() -> None:
    doubts = Doubts(lambda: 0.0)
    forged = replace(JOB, status={"reason": "PlacementRefused", "message": "x"})
    doubts.see(forged, new=False)
    doubts.see(replace(JOB, status={"reason": "WaitingForGPU", "message": "x"}), new=True)
    assert KEY not in doubts


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
