"""How soon what was refused is tried again, as a setting says."""

import pytest

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.runtime.jobs.refused.refusals import MOST_SECONDS, Refusals

KEY = JobKey("team-a/a")


@pytest.mark.parametrize("first", [3.0, 30.0, 600.0])
def test_a_refused_job_is_tried_again_after_the_setting_and_then_ever_more_seldom(
    first: float,
) -> None:
    now, asked = 0.0, list[float]()
    refusals = Refusals(lambda: now, lambda _, after: asked.append(after), first_seconds=first)
    for times in range(10):
        assert refusals.may_try(KEY, "as it is")
        refusals.refused(KEY, "as it is")
        due = now + min(first * 2**times, MOST_SECONDS)
        assert now + asked[-1] <= due
        assert not refusals.may_try(KEY, "as it is")
        now = due
