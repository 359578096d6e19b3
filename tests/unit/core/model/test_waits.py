from gpu_scheduler.core.model.decision import Reason, Wait, Waits
from gpu_scheduler.core.model.request import JobKey

A, B, C = (JobKey(f"ns/{name}") for name in "abc")
FULL, QUOTA = (Reason.WAITING_FOR_GPU, "no GPU is free"), (Reason.WAITING_FOR_QUOTA, "needs 1")
WAITS = Waits([A, B, C], [FULL, FULL, QUOTA], [1, 2, 1])


def test_waits_are_those_of_all_jobs_in_order():
    expected = (Wait(A, *FULL, 1), Wait(B, *FULL, 2), Wait(C, *QUOTA, 1))
    assert tuple(WAITS) == expected
    assert WAITS == expected
    assert len(WAITS) == 3
    assert WAITS[-1] == expected[-1]
    assert WAITS[1:] == expected[1:]
    assert Waits() == ()
    assert WAITS != expected[1:]


def test_that_of_a_job_is_found_by_its_key():
    assert WAITS.of(B) == Wait(B, *FULL, 2)
    assert Waits([B], [FULL], [1]).of(A) is None


def test_another_sentence_is_news_and_another_position_is_none():
    later = Waits([B, C], [(Reason.WAITING_FOR_GPU, "no GPU is free"), FULL], [1, 1])
    assert later.news(WAITS.verdicts()) == {A, C}
    assert later.news(later.verdicts()) == set()
    assert Waits().news(WAITS.verdicts()) == {A, B, C}
    assert WAITS.news({}) == {A, B, C}
