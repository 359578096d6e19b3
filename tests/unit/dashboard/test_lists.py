"""Lists: what is asked for, in which order, and in pieces."""

import pytest
from tests.unit.dashboard import rows
from tests.unit.dashboard.rows import HOUR, NOW, picture

from gpu_scheduler.dashboard.content import jobs, queue
from gpu_scheduler.dashboard.question import BadQuestionError
from gpu_scheduler.dashboard.visible import ALL

WORKS = picture(
    works=(
        rows.job("a", busy=0.9, held=1.0, created=NOW - 1),
        rows.job("b", busy=None, held=0.0, phase="Pending", created=NOW - 2, project="speech"),
        rows.job("c", busy=0.1, held=4.0, idle_since=NOW, created=NOW - 3),
        rows.job("deploy", busy=0.2, kind="Deployment", type="service", created=NOW - 4),
    )
)


def names(**asked: str) -> list[str]:
    return [row.ref.name for row in jobs.page(WORKS, ALL, asked).rows]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, "a b c deploy"),
        ({"q": "DEPL"}, "deploy"),
        ({"q": "speech"}, "b"),
        ({"project": "vision", "sort": "name"}, "a c deploy"),
        ({"phase": "Pending"}, "b"),
        ({"type": "service"}, "deploy"),
        ({"idle": "1"}, "c"),
        ({"sort": "-busy"}, "a deploy c b"),
        ({"sort": "busy"}, "c deploy a b"),
        ({"sort": "-held"}, "c a deploy b"),
        ({"sort": "created"}, "deploy c b a"),
        ({"offset": "1", "limit": "2"}, "b c"),
        ({"offset": "9"}, ""),
    ],
)
def test_jobs(asked: dict[str, str], expected: str) -> None:
    assert names(**asked) == expected.split()


def test_how_many_match_is_said_beside_those_shown() -> None:
    page = jobs.page(WORKS, ALL, {"project": "vision", "limit": "1"})
    assert (page.total, page.offset, len(page.rows)) == (3, 0, 1)
    assert page.phases == {"Pending": 1, "Running": 3}
    assert page.projects == ("speech", "vision")


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"offset": "-1"}, "offset"),
        ({"limit": "201"}, "limit"),
        ({"limit": "٣"}, "limit"),
        ({"offset": "9" * 400}, "offset"),
        ({"sort": "colour"}, "sort"),
        ({"idle": "yes"}, "idle"),
    ],
)
def test_what_cannot_be_understood_is_said(asked: dict[str, str], named: str) -> None:
    with pytest.raises(BadQuestionError, match=f"^{named}: "):
        jobs.page(WORKS, ALL, asked)


def test_the_queue_counts_reasons_of_all_and_shows_those_asked_for() -> None:
    waiting = (
        rows.queued("a", since=NOW - HOUR),
        rows.queued("b", reason="Fragmented", gpus=1.0),
        rows.queued("c", message="the last"),
    )
    page = queue.page(picture(queue=waiting), ALL, {"reason": "Fragmented"})
    assert [row.ref.name for row in page.rows] == ["b"]
    first, second = page.reasons
    assert (first.reason, first.jobs, first.gpus) == ("WaitingForQuota", 2, 1.0)
    assert (first.since, first.first) == (NOW - HOUR, rows.ref("a"))
    assert (second.reason, second.jobs) == ("Fragmented", 1)
