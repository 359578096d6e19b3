"""What has ended is counted once and at once, and the first failure is told first."""

from typing import Any

from tests.unit.runtime.status.test_states import THREE, Row, failed, placed, status_of
from tests.unit.state.builders import make_gpujob, make_job, make_pod


def test_counts_never_fall_while_a_pod_is_counted_by_its_job() -> None:
    """The pod ends, then its Job says so, then the next one: at any time it counts once."""
    job = make_gpujob(**THREE)
    steps = [
        ((make_job(completions=3),), (placed(phase="Running"),)),
        ((make_job(completions=3),), (placed(phase="Succeeded"),)),
        (
            (make_job(completions=3, succeeded=1, completed_indexes="0"),),
            (placed(phase="Succeeded"),),
        ),
        (
            (make_job(completions=3, succeeded=1, completed_indexes="0"),),
            (placed(phase="Succeeded"), failed("job-1", index=1)),
        ),
        (
            (make_job(completions=3, succeeded=1, failed=1, completed_indexes="0"),),
            (placed(phase="Succeeded"), failed("job-1", index=1), make_pod("job-1b", index=1)),
        ),
    ]
    seen = []
    before: dict[str, Any] = {}
    for jobs, pods in steps:
        status = status_of(Row(("", "", ""), job, jobs, pods, before=before))
        before = status.to_json()
        seen.append((status.phase, status.pods.succeeded, status.pods.failed))
    assert seen == [
        ("Running", 0, 0),
        ("Running", 1, 0),
        ("Running", 1, 0),
        ("Running", 1, 1),
        ("Running", 1, 1),
    ]


def test_pods_that_were_evicted_rejected_or_deleted_have_not_failed() -> None:
    target = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    pods = (
        failed("evicted", conditions=(target,)),
        failed("deleted", deleting=True),
        placed("rejected", phase="Failed", reason="OutOfcpu"),
    )
    assert status_of(Row(("", "", ""), pods=pods)).pods.failed == 0


def test_the_first_failure_is_told_first_and_stays() -> None:
    pods = (
        failed("job-2", "2026-01-01T00:00:09Z", 2, index=2, said="second"),
        failed("job-7", "2026-01-01T00:00:05Z", 1, index=7, said="first"),
    )
    many = make_gpujob(parallelism=9)
    status = status_of(Row(("", "", ""), many, (make_job(completions=9),), pods))
    told = "2026-01-01T00:00:05Z: index 7 (pod job-7): container main ended with exit code 1: first"
    assert status.first_failure == told
    gone = status_of(Row(("", "", ""), many, (make_job(completions=9),), before=status.to_json()))
    assert gone.first_failure == told


def test_a_failed_job_names_the_first_index_that_was_given_up() -> None:
    jobs = (
        make_job(
            completions=9, failed=4, failed_indexes="3,5", ended="Failed", message="its words"
        ),
    )
    pods = (
        failed("a", "2026-01-01T00:00:01Z", index=1, said="tried again, and well"),
        failed("b", "2026-01-01T00:00:02Z", index=5, said="no data"),
        failed("c", "2026-01-01T00:00:03Z", index=5, said="no data"),
        failed("d", "2026-01-01T00:00:04Z", index=3, said="no data either"),
    )
    status = status_of(Row(("", "", ""), make_gpujob(parallelism=9), jobs, pods))
    assert status.message == (
        "index 5 failed: container main ended with exit code 1: no data; it was tried 2 times; "
        "2 indexes failed in all: 3, 5"
    )
    (told,) = [c for c in status.conditions if c.type == "Failed"]
    assert (told.reason, told.message) == ("ProgramFailed", status.message)
    later = status_of(Row(("", "", ""), make_gpujob(parallelism=9), jobs, before=status.to_json()))
    assert (later.reason, later.message) == (status.reason, status.message)


def test_what_a_program_said_is_bounded_and_on_one_line() -> None:
    pods = (failed(said="x" * 5000 + "\r\n\x1b[31m " + "word " * 900),)
    jobs = (make_job(failed=1, failed_indexes="0", ended="Failed"),)
    message = status_of(Row(("", "", ""), jobs=jobs, pods=pods)).message
    assert len(message) < 400 and message.endswith("word…") and message.isprintable()
