"""What an attack may not bring about, with the figures: as JSON, and as a page for people."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

MOST_OPERATOR_MB = 400
MOST_WAIT_SECONDS = 3.0  # beyond what a pod without a GPU waits for kube-scheduler
MOST_REQUESTS_A_SECOND = 20.0
MOST_FOR_ONE_A_SECOND = 5.0


@dataclass(slots=True)
class Minute:
    """Figures of one minute of attack."""

    number: int
    operator_mb: int  # the most that a replica held
    api_server_mb: int
    operator_requests_a_second: float
    pod_wait_seconds: float | None
    """The slowest pod's of the other tenant, that asks by itself; None: none could be submitted."""
    job_wait_seconds: float | None
    """The slowest GPUJob's, without what the Job controller took to make its pod."""
    whole_job_seconds: float | None  # with it
    plain_pod_seconds: float | None  # of the slowest without a GPU, until it had a node
    write_seconds: float  # of the slowest ConfigMap: what the API server takes for anybody's
    replicas_ended: int  # so far
    lease_transitions: int  # so far
    attacks_let_in: int  # requests so far
    attacks_refused: int
    log_lines: int  # of the operator, so far

    def line(self) -> str:
        """For people."""
        return (
            f"minute {self.number}: operator {self.operator_mb} MB, "
            f"API server {self.api_server_mb} MB, "
            f"{self.operator_requests_a_second:.1f} requests a second by the operator, "
            f"honest pod {_told(self.pod_wait_seconds)}, job {_told(self.job_wait_seconds)} "
            f"(with the Job controller {_told(self.whole_job_seconds)}; "
            f"a pod without a GPU {_told(self.plain_pod_seconds)}; "
            f"a write {self.write_seconds:.2f} s), "
            f"{self.replicas_ended} replicas ended, {self.lease_transitions} Leases lost, "
            f"{self.attacks_let_in} of {self.attacks_let_in + self.attacks_refused} let in, "
            f"{self.log_lines} log lines"
        )


@dataclass(slots=True)
class Verdict:
    """Of a run."""

    minutes: list[Minute] = field(default_factory=list)
    requests_a_second: float = 0.0  # of the operator, in the mean
    most_for_one: tuple[float, str] = (0.0, "")  # a second, and for which object's sake
    request_kinds: Mapping[str, int] = field(default_factory=dict)
    not_given: Mapping[str, str] = field(default_factory=dict)  # by pod
    pods_seen: int = 0  # of the tenant that attacks, each time one changed
    most_milli: int = 0  # that they held
    cards_above_capacity: Sequence[str] = ()
    killed_for_memory: int = 0  # replicas
    api_server_ended: int = 0
    unexpected: Sequence[str] = ()  # lines of the operator's log
    answers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by attack and status
    messages: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict)
    failures: Sequence[str] = ()  # of the harness
    log_lines: Sequence[tuple[int, str]] = ()  # the most frequent
    machine: Mapping[str, Any] = field(default_factory=dict)

    def broken(self) -> list[str]:
        """The promises that were not kept."""
        found = []
        for minute in self.minutes:
            at = f"minute {minute.number}: "
            if minute.operator_mb > MOST_OPERATOR_MB:
                found.append(
                    f"{at}the operator held {minute.operator_mb} MB, not {MOST_OPERATOR_MB}"
                )
            plain = minute.plain_pod_seconds or 0.0
            for what, wait in (("pod", minute.pod_wait_seconds), ("job", minute.job_wait_seconds)):
                if wait is None:
                    found.append(f"{at}no {what} of another tenant could be submitted")
                elif wait > MOST_WAIT_SECONDS + plain:
                    others = f"one without a GPU {plain:.2f} s"
                    found.append(f"{at}a {what} of another tenant waited {wait:.2f} s, {others}")
        last = self.minutes[-1] if self.minutes else None
        if last is None:
            found.append("no minute was measured")
        elif last.lease_transitions or last.replicas_ended:
            found.append(
                f"{last.lease_transitions} Leases were lost, {last.replicas_ended} replicas ended"
            )
        if self.killed_for_memory:
            found.append(f"{self.killed_for_memory} replicas were killed at the chart's limit")
        if self.api_server_ended:
            found.append(f"the API server ended {self.api_server_ended} times")
        if self.requests_a_second > MOST_REQUESTS_A_SECOND:
            found.append(f"the operator made {self.requests_a_second:.1f} requests a second")
        rate, name = self.most_for_one
        if rate > MOST_FOR_ONE_A_SECOND:
            found.append(f"of these {rate:.1f} a second for the sake of {name}")
        if self.not_given:
            pod, what = next(iter(self.not_given.items()))
            found.append(f"{len(self.not_given)} pods got past us, such as {pod}: {what}")
        if self.cards_above_capacity:
            found.append(f"devices above their capacity: {self.cards_above_capacity[0]}")
        if self.unexpected:
            found.append(f"{len(self.unexpected)} exceptions that nobody foresaw")
        if idle := [name for name, found in self.answers.items() if not _answered(found)]:
            found.append(f"attacks without an answer, which show nothing: {', '.join(idle)}")
        if self.failures:
            found.append(f"the harness itself broke: {self.failures[0]}")
        return found

    def to_json(self) -> dict[str, Any]:
        """Everything, and what of it is broken."""
        return {**asdict(self), "broken": self.broken()}

    def page(self) -> str:
        """For people."""
        lines = [minute.line() for minute in self.minutes]
        lines += ["", f"{'attack':<24}{'let in':>9}{'refused':>9}  most frequent refusal"]
        for name, found in self.answers.items():
            let_in = sum(count for status, count in found.items() if is_let_in(status))
            told = self.messages.get(name) or [("", 0)]
            refused = sum(found.values()) - let_in
            lines.append(f"{name:<24}{let_in:>9}{refused:>9}  {told[0][0][:90]}")
        rate, sake = self.most_for_one
        lines += [
            "",
            f"operator: {self.requests_a_second:.1f} requests a second, at most {rate:.1f} for one "
            f"object ({sake})",
            f"{self.pods_seen} looks at its pods, which held at most {self.most_milli} milli",
            *(f"  {pod}: {what}" for pod, what in list(self.not_given.items())[:20]),
            "",
            "what the operator asks most often",
            *(f"{count:>7}  {kind}" for kind, count in list(self.request_kinds.items())[:10]),
            "what its log says most often",
            *(f"{count:>7}  {line[:150]}" for count, line in self.log_lines),
            *(f"  unexpected: {line[:200]}" for line in self.unexpected[:10]),
            "",
            "verdict: " + ("; ".join(self.broken()) or "every promise was kept"),
        ]
        return "\n".join(lines)


def _told(seconds: float | None) -> str:
    return "none" if seconds is None else f"{seconds:.2f} s"


def is_let_in(status: str) -> bool:
    """Whether a request was taken, by what it was answered."""
    return status.removeprefix("report ").startswith("2")


def _answered(answers: Mapping[str, int]) -> bool:
    """Whether an attack was played, and not broken itself."""
    statuses = [status.removeprefix("report ") for status in answers]
    return any(status[0].isdecimal() and status != "599" for status in statuses) and not any(
        status.startswith("broken") for status in statuses
    )
