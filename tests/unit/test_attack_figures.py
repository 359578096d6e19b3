"""What the operator asks for is counted by whose sake it is; every promise has a verdict."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.attack.requests_made import RequestsMade
from tests.attack.verdict import Minute, Verdict

START = datetime(2026, 1, 1, 12, tzinfo=UTC)


def line(
    verb: str, resource: str, name: str, seconds: float, user: str = "us", id: str = ""
) -> str:
    at = START + timedelta(seconds=seconds)
    ref = {"resource": resource, "namespace": "team", "name": name}
    body = {"verb": verb, "user": {"username": user}, "objectRef": ref, "auditID": id}
    return json.dumps({**body, "requestReceivedTimestamp": at.isoformat()}) + "\n"


def test_a_job_its_gpujob_and_what_is_told_of_it_are_one(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    made = RequestsMade(log, "us")
    made.read()  # nothing was logged yet
    first = [line("patch", kind, "j", n) for n, kind in enumerate(("jobs", "gpujobs"))]
    first += [line("watch", "pods", "", 1, id="w"), line("patch", "jobs", "j", 1, user="them")]
    log.write_text("".join(first) + line("create", "events", "j.18f", 2)[:20])
    made.read()
    log.write_text(
        "".join(first)
        + line("create", "events", "j.18f", 2)
        + line("watch", "pods", "", 60, id="w")
        + "".join(line("patch", "gpujobs", "j", 30 + n / 10) for n in range(70))
    )
    made.read()
    assert len(made.times) == 74
    assert made.most_for_one() == (7.0, "team/j")
    since = START.timestamp()
    assert made.a_second(since, since + 2) == 1.5
    assert made.kinds["patch gpujobs"] == 71


def minute(**more: object) -> Minute:
    figures = dict.fromkeys(Minute.__dataclass_fields__, 0) | {"number": 1, **more}
    return Minute(**figures)  # type: ignore[arg-type]


def kept(**more: object) -> Verdict:
    answers = {"picks": {"403": 3}}
    return Verdict(**{"minutes": [minute()], "answers": answers, **more})  # type: ignore[arg-type]


def test_a_run_in_which_nothing_happened_to_anybody_is_well() -> None:
    assert kept().broken() == []
    assert "every promise was kept" in kept().page()
    slow = minute(pod_wait_seconds=12.9, plain_pod_seconds=10.0)  # so is kube-scheduler
    assert kept(minutes=[slow]).broken() == []


def test_every_promise_can_be_broken() -> None:
    for verdict, told in (
        (kept(minutes=[]), "no minute was measured"),
        (kept(minutes=[minute(operator_mb=401)]), "the operator held 401 MB, not 400"),
        (kept(minutes=[minute(pod_wait_seconds=3.1)]), "a pod of another tenant waited 3.10 s"),
        (kept(minutes=[minute(job_wait_seconds=3.1)]), "a job of another tenant waited 3.10 s"),
        (kept(minutes=[minute(pod_wait_seconds=None)]), "no pod of another tenant could be"),
        (kept(minutes=[minute(lease_transitions=1)]), "1 Leases were lost, 0 replicas ended"),
        (kept(minutes=[minute(replicas_ended=1)]), "0 Leases were lost, 1 replicas ended"),
        (kept(killed_for_memory=1), "killed at the chart's limit"),
        (kept(api_server_ended=1), "the API server ended"),
        (kept(requests_a_second=20.1), "20.1 requests a second"),
        (kept(most_for_one=(5.1, "team/j")), "5.1 a second for the sake of team/j"),
        (kept(not_given={"a/b": "sees all"}), "1 pods got past us, such as a/b: sees all"),
        (kept(cards_above_capacity=["x: 1200"]), "devices above their capacity: x: 1200"),
        (kept(unexpected=["x"]), "exceptions that nobody foresaw"),
        (kept(answers={"picks": {"599": 3}}), "show nothing: picks"),
        (kept(answers={"picks": {"201": 3, "broken: x": 1}}), "show nothing: picks"),
        (kept(failures=["x"]), "the harness itself broke: x"),
    ):
        (found,) = verdict.broken()
        assert told in found
