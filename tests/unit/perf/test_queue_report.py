from typing import Any

from tests.perf.queue_figures import summary
from tests.perf.queue_report import (
    bound,
    idle,
    judged,
    named_writes,
    section,
    span,
    writes_until_judged,
)

SETTINGS = {
    "queue_nodes": 20,
    "queue_jobs": 5000,
    "queue_many_jobs": 50000,
    "queue_fitting_jobs": 400,
    "queue_rounds": 2,
}


def run(scene: str, contender: str, number: int = 0, **figures: Any) -> dict[str, Any]:
    return {"scene": scene, "contender": contender, "round": number, "figures": figures}


def part(*runs: dict[str, Any]) -> dict[str, Any]:
    names = dict.fromkeys(each["contender"] for each in runs)
    contenders = {name: {"commit": f"commit-of-{name}"} for name in names}
    return {"contenders": contenders, "runs": list(runs), "summary": summary(runs)}


def test_a_verdict_that_did_not_come_in_every_run_is_told_as_a_share() -> None:
    runs = [
        run("waiting", "old", n, judged_seconds=seconds, judged_percent=share, wait_seconds=400.0)
        for n, (seconds, share) in enumerate(((390.0, 100.0), (None, 64.0)))
    ]
    assert judged(summary(runs)["waiting"]["old"]) == "82 (64–100) % after 400 s"
    assert judged(summary(runs[:1])["waiting"]["old"]) == "390.0 s"


def test_writes_are_a_lower_bound_while_verdicts_are_outstanding() -> None:
    runs = [
        run("waiting", name, judged_percent=share, writes_per_job=3.65)
        for name, share in (("old", 64.0), ("new", 100.0))
    ]
    found = summary(runs)["waiting"]
    assert writes_until_judged(found["old"]) == "≥ 3.65"
    assert writes_until_judged(found["new"]) == "3.65"


def test_an_operator_that_was_not_idle_is_told_by_its_writes() -> None:
    runs = [
        run("waiting", name, idle={"cpu_percent": {"operator": 21.2}, "writes": writes})
        for name, writes in (("old", 1170), ("new", 0))
    ]
    found = summary(runs)["waiting"]
    assert idle(found["old"]) == "21.2 %, 1,170 writes meanwhile"
    assert idle(found["new"]) == "21.2 %"


def test_jobs_that_were_not_all_bound_have_no_time_for_the_last() -> None:
    found = summary([run("fits", "old", bound_percent=75.0, bound_seconds=None)])["fits"]["old"]
    assert bound(found) == "75 % of them"


def test_the_writes_that_a_job_needs_are_without_those_of_others() -> None:
    kinds = {"POST jobs": 1.0, "POST pods": 1.01, "POST pods/binding": 1.0, "POST events": 0.5}
    theirs = kinds | {"PATCH gpujobs/status": 1.3}
    runs = [
        run("fits", "new", writes_per_job_when_bound_by_kind=theirs),
        run("fits", "stock", writes_per_job_when_bound_by_kind={"POST pods": 1.0}),
    ]
    found = summary(runs)["fits"]
    assert named_writes(found["new"]) == "4.31"
    assert named_writes(found["stock"]) == "1.00"
    assert named_writes({}) == "–"


def test_one_run_has_no_range() -> None:
    found = summary([run("fits", "new", a=0.051)])["fits"]["new"]
    assert span(found, "a", " ms", 0, 1000) == "51 ms"
    assert span(found, "b", " ms") == "–"


def test_old_and_new_stand_side_by_side_with_what_was_to_be_reached() -> None:
    text = section(
        part(
            run("waiting", "old", objects_per_job=2.0),
            run("waiting", "new", objects_per_job=0.0),
            run("churn", "old", idle_gpu_percent=60.0),
            run("churn", "new", idle_gpu_percent=40.0),
            run("churn", "stock", idle_gpu_percent=50.0),
        ),
        SETTINGS,
    )
    assert "| objects per waiting GPUJob beside itself | Job, pod | 0 | 2.00 | 0.00 |" in text
    assert "| GPU time that nobody held | 60.0 % | 40.0 % | 50.0 % |" in text
    assert "old: commit-of-old; new: commit-of-new" in text
    assert "50,000 jobs wait" not in text  # was not played


def test_a_scene_that_failed_is_told() -> None:
    failed = {"scene": "many", "contender": "old", "round": 0, "error": "TimeoutError: x\nlog"}
    text = section({**part(run("fits", "old", a=1.0)), "runs": [failed]}, SETTINGS)
    assert "- many, old, run 1: TimeoutError: x\n" in text
