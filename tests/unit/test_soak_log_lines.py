"""The soak counts the operator's lines, and finds those that repeat without a change."""

from datetime import datetime

import pytest
from tests.soak.log_lines import LogLines

BINDER, RECONCILE = "gpu_scheduler.runtime.binding.binder", "gpu_scheduler.runtime.jobs.reconcile"


def log(*said: tuple[int, str, str]) -> str:
    """Lines of one process: second, logger, message."""
    return "".join(
        f"2026-01-01 12:{s // 60:02}:{s % 60:02},000 INFO {w}: {m}\n" for s, w, m in said
    )


def at(second: int) -> float:
    return datetime(2026, 1, 1, 12, second // 60, second % 60).timestamp()


def test_lines_that_differ_in_names_numbers_and_times_are_one() -> None:
    lines = LogLines()
    lines.read(
        log(
            (0, BINDER, "placing red/share-1-0-abcde on gpu-0001: 409 (Conflict)"),
            (1, BINDER, "placing blue/gang-22-1-fghij on gpu-0002: 409 (Conflict)"),
            (2, RECONCILE, "red/share-1: no answer within 10 s; again in 0.2 s"),
            (3, RECONCILE, "red/share-2: no answer within 10 s; again in 12.8 s"),
            (4, RECONCILE, "red/share-2: Job share-2 has gone"),
        )
        + "Traceback (most recent call last):\n"
    )
    assert lines.most() == [
        (2, "runtime.binding.binder: placing <object> on <name>: <n> (Conflict)"),
        (2, "runtime.jobs.reconcile: <object>: no answer within <n> s; again in <n> s"),
        (1, "runtime.jobs.reconcile: <object>: Job <name> has gone"),
    ]
    assert lines.most(1) == lines.most()[:1]
    assert lines.repeated() == []


def test_what_is_said_again_of_an_object_is_a_repeat_whatever_the_delay() -> None:
    lines = LogLines()
    said = "red/share-1: no answer; again in {} s"
    lines.read(log(*((s, RECONCILE, said.format(s + 0.5)) for s in range(4))))
    assert lines.repeated() == ["4 times of red/share-1: red/share-1: no answer; again in <n> s"]


def test_something_else_said_of_the_object_or_a_change_of_it_makes_it_news() -> None:
    for between in ((30, RECONCILE, "red/a: Job a has gone"), None):
        lines = LogLines({"red/a": [at(30)], "red/b": [at(30)]} if between is None else {})
        said = [(0, RECONCILE, "red/a: no"), between, (60, RECONCILE, "red/a: no")]
        lines.read(log(*(each for each in said if each is not None)))
        assert lines.repeated() == []


def test_a_change_of_another_object_or_long_ago_makes_nothing_news() -> None:
    lines = LogLines({"red/a": [at(0)], "red/b": [at(100)]})
    lines.read(log((60, RECONCILE, "red/a: no"), (120, RECONCILE, "red/a: no")))
    assert len(lines.repeated()) == 1


def test_a_pod_changes_with_its_job() -> None:
    lines = LogLines({"red/share-1": [at(30)]})
    said = "placing red/share-1-0-abcde on gpu-0001: refused"
    lines.read(log((0, BINDER, said), (60, BINDER, said)))
    assert lines.repeated() == []
    lines.read(log((600, BINDER, said), (660, BINDER, said)))
    assert len(lines.repeated()) == 1


def test_two_processes_may_say_the_same() -> None:
    lines = LogLines()
    for _ in range(2):
        lines.read(log((0, RECONCILE, "red/a: no")))
    assert lines.repeated() == [] and lines.most() == [(2, "runtime.jobs.reconcile: <object>: no")]


def test_an_object_in_a_path_is_found_and_a_line_without_any_is_its_own() -> None:
    lines = LogLines()
    path = "/apis/gpu-scheduler.io/v1alpha1/namespaces/red/gpujobs/share-1/status"
    lines.read(
        log(
            (0, BINDER, f"status at {path} not written: no (403 Forbidden)"),
            (1, BINDER, f"status at {path.replace('-1', '-2')} not written: no (403 Forbidden)"),
            (2, BINDER, "watch of pods: cut"),
            (3, BINDER, "watch of nodes: cut"),
        )
    )
    assert lines.repeated() == []
    lines.read(log((0, BINDER, "watch of pods: cut"), (9, BINDER, "watch of pods: cut")))
    assert lines.repeated() == [
        "2 times of runtime.binding.binder: watch of pods: cut: watch of pods: cut"
    ]


@pytest.mark.parametrize(
    ("logger", "said"),
    [
        ("reflector", "watch of /api/v1/pods: Server disconnected; again in 1.0 s"),
        ("lease", "lease: PUT /apis/x/v1/namespaces/a/leases/b: no answer within 2 s"),
    ],
)
def test_what_is_cut_again_by_a_fault_is_news_and_what_ends_by_itself_is_not(
    logger: str, said: str
) -> None:
    text = log(*((s, f"gpu_scheduler.kube.{logger}", said) for s in (0, 60)))
    for cuts, repeated in (((at(55), at(58)),), 0), ((), 1), (((at(0), at(5)),), 1):
        lines = LogLines(cuts=cuts)
        lines.read(text)
        assert len(lines.repeated()) == repeated
