"""The verdict of a soak, as JSON for machines and as a page for people."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(slots=True)
class Report:
    """Figures of one run."""

    minutes: float
    seed: int
    machine: Mapping[str, Any]
    faults: Mapping[str, int]
    requests_hit: Mapping[str, int]
    hostile_objects: int
    jobs: int
    pods_placed: int
    leaders: Sequence[tuple[str, int]]
    cards_above_capacity: int
    peak_milli: int
    peak_mib: int
    jobs_lost: Sequence[str]
    retries_charged: Sequence[str]
    retries_charged_by_race: Sequence[str]
    late_words: Mapping[str, int]
    late_examples: Sequence[str]
    worst_word_seconds: Mapping[str, float]
    checked_seconds: float
    disturbed_seconds: float
    leaderless_seconds: float
    longest_leaderless_seconds: float
    first_word_median_seconds: float
    first_word_p99_seconds: float
    memory_mib_by_minute: Sequence[float]
    unexpected: Sequence[str]
    tracebacks: int
    above: Sequence[Any]
    harness_failures: Sequence[str]
    unannounced: Sequence[str] = ()
    not_given: Sequence[str] = ()  # pods that got a GPU past us
    log_lines: Sequence[tuple[int, str]] = ()
    log_repeats: Sequence[str] = ()

    @property
    def broken(self) -> list[str]:
        """The promises that were not kept."""
        found = []
        if self.cards_above_capacity:
            found.append(f"{self.cards_above_capacity} times a device was above its capacity")
        if self.jobs_lost:
            found.append(f"{len(self.jobs_lost)} jobs were lost")
        if self.retries_charged:
            found.append(f"{len(self.retries_charged)} jobs were charged for what was not theirs")
        if self.unannounced:
            found.append(f"{len(self.unannounced)} pods with a place were deleted without a word")
        if self.not_given:
            found.append(f"{len(self.not_given)} pods got past us, such as {self.not_given[0]}")
        if self.log_repeats:
            found.append(f"{len(self.log_repeats)} lines of the log repeat without a change")
        if self.late_words:
            found.append(f"{sum(self.late_words.values())} words were older than 2 s")
        if self.unexpected:
            found.append(f"{len(self.unexpected)} exceptions that nobody foresaw")
        if self.harness_failures:
            found.append(f"the soak itself broke: {self.harness_failures[0]}")
        return found

    def to_json(self) -> dict[str, Any]:
        """Everything, and what of it is broken."""
        return {**asdict(self), "broken": self.broken}

    def table(self) -> str:
        """What people want to know first."""
        memory = self.memory_mib_by_minute[10:] or self.memory_mib_by_minute or [0.0]
        middle = statistics.median(memory)
        lines = [
            ("time", f"{self.minutes:.0f} min, seed {self.seed}"),
            ("jobs", f"{self.jobs}, {self.pods_placed} pods placed"),
            (
                "faults",
                f"{sum(self.faults.values())}, and {sum(self.requests_hit.values())} requests",
            ),
            ("hostile objects", str(self.hostile_objects)),
            ("replicas that ended", str(len(self.leaders))),
            (
                "devices above capacity",
                f"{self.cards_above_capacity} (peak {self.peak_milli} milli)",
            ),
            ("jobs lost", str(len(self.jobs_lost))),
            (
                "retries charged",
                f"{len(self.retries_charged)}; by the documented race "
                f"{len(self.retries_charged_by_race)}",
            ),
            ("deleted without a word", str(len(self.unannounced))),
            ("pods with a GPU past us", str(len(self.not_given))),
            ("lines repeated in the log", str(len(self.log_repeats))),
            (
                "words older than 2 s",
                f"{sum(self.late_words.values())} in {self.checked_seconds:.0f} s of calm",
            ),
            (
                "first word",
                f"median {self.first_word_median_seconds:.2f} s, "
                f"p99 {self.first_word_p99_seconds:.2f} s",
            ),
            (
                "without a leader",
                f"{self.leaderless_seconds:.0f} s, longest {self.longest_leaderless_seconds:.1f} s",
            ),
            (
                "memory after 10 min",
                f"median {middle:.0f} MiB, from {min(memory):.0f} to {max(memory):.0f}",
            ),
            ("exceptions nobody foresaw", str(len(self.unexpected))),
            ("verdict", "; ".join(self.broken) or "every promise was kept"),
        ]
        width = max(len(name) for name, _ in lines)
        table = [f"{name:<{width}}  {value}" for name, value in lines]
        table += ["", "what the log says most often"]
        table += [f"{count:>7}  {line[:150]}" for count, line in self.log_lines]
        if self.log_repeats:
            table += ["", "what it repeats without a change"]
            table += [f"  {each[:200]}" for each in self.log_repeats[:20]]
        return "\n".join(table)
