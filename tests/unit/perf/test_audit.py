import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.perf.audit import by_client

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
END = START + timedelta(seconds=10)


def line(
    user: str, verb: str, what: str, *, agent: str = "x/1", at: datetime = START
) -> dict[str, object]:
    resource, _, subresource = what.partition("/")
    return {
        "verb": verb,
        "user": {"username": user},
        "userAgent": agent,
        "objectRef": {"resource": resource, "subresource": subresource},
        "requestReceivedTimestamp": at.isoformat(),
    }


def count(folder: Path, *lines: dict[str, object], tail: str = "") -> dict[str, int]:
    log = folder / "audit.log"
    log.write_text("".join(json.dumps(each) + "\n" for each in lines) + tail)
    return dict(by_client(log, START, END))


def test_clients_are_named_by_account_and_administrators_by_program(tmp_path: Path) -> None:
    assert count(
        tmp_path,
        line("system:serviceaccount:kube-system:job-controller", "create", "pods"),
        line("system:kube-scheduler", "create", "pods/binding"),
        line("admin", "create", "pods/binding", agent="null-binder"),
        line("admin", "create", "jobs", agent="bench-harness"),
    ) == {
        "job-controller: POST pods": 1,
        "kube-scheduler: POST pods/binding": 1,
        "null-binder: POST pods/binding": 1,
    }


def test_reads_heartbeats_and_other_times_do_not_count(tmp_path: Path) -> None:
    assert (
        count(
            tmp_path,
            line("kwok", "list", "pods"),
            line("kwok", "patch", "nodes/status"),
            line("kwok", "update", "leases"),
            line("kwok", "patch", "pods/status", at=END + timedelta(seconds=1)),
        )
        == {}
    )


def test_a_last_line_that_is_not_complete_yet_is_left_for_later(tmp_path: Path) -> None:
    status = line("kwok", "patch", "pods/status")
    assert count(tmp_path, status, tail='{"verb": "cre') == {"kwok: PATCH pods/status": 1}
