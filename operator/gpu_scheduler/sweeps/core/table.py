"""All trials that have ended, and the constant-size summary of them that a status shows.

Ties go to the lowest trial, so a summary depends on the outcomes alone, not on the order in which
they came: a restarted operator that reads them from ``rows`` says the same. Putting an outcome
costs a binary search.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpu_scheduler.api.search import ERRORS, TOP, Objective
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState


@dataclass(frozen=True, slots=True)
class Summary:
    """What a status shows of a sweep, however many trials it has."""

    counts: dict[TrialState, int]  # of ended trials; absent = 0
    top: tuple[Outcome, ...]  # the best first, at most TOP
    errors: tuple[Outcome, ...]  # failed trials with the highest numbers, highest first
    target_reached: bool

    @property
    def best(self) -> Outcome | None:
        """The best trial; None while none has succeeded with a value."""
        return self.top[0] if self.top else None

    @property
    def failed(self) -> int:
        """Failed trials, with those that gave no usable result."""
        states = (TrialState.FAILED, TrialState.RESULT_MISSING, TrialState.NOT_FINITE)
        return sum(self.counts.get(state, 0) for state in states)

    @property
    def ended(self) -> int:
        """Trials that are over, whatever came of them."""
        return sum(n for state, n in self.counts.items() if state is not TrialState.STARTED)


class Table:
    """Outcomes by trial."""

    def __init__(self, objective: Objective | None, outcomes: Iterable[Outcome] = ()) -> None:
        self._objective = objective
        self._outcomes: dict[int, Outcome] = {}
        self._counts: Counter[TrialState] = Counter()
        self._ranked: list[tuple[float, int]] = []  # cost and trial, sorted
        self._errors: list[int] = []  # trials, sorted
        for outcome in outcomes:
            self.put(outcome)

    def __len__(self) -> int:
        return len(self._outcomes)

    def __iter__(self) -> Iterator[Outcome]:
        """Outcomes by trial."""
        return (self._outcomes[trial] for trial in sorted(self._outcomes))

    def get(self, trial: int) -> Outcome | None:
        """What came of a trial; None while it has not ended."""
        return self._outcomes.get(trial)

    def put(self, outcome: Outcome) -> bool:
        """Add an outcome or replace that of the same trial; whether anything changed."""
        old = self._outcomes.get(outcome.trial)
        if old == outcome:
            return False
        if old is not None:
            self._remove(old)
        self._outcomes[outcome.trial] = outcome
        self._counts[outcome.state] += 1
        if (rank := self._rank(outcome)) is not None:
            insort(self._ranked, rank)
        if outcome.failed:
            insort(self._errors, outcome.trial)
        return True

    def summary(self) -> Summary:
        """The summary of all outcomes so far."""
        top = tuple(self._outcomes[trial] for _, trial in self._ranked[:TOP])
        errors = tuple(self._outcomes[trial] for trial in reversed(self._errors[-ERRORS:]))
        best = top[0].value if top else None
        reached = best is not None and self._objective is not None and self._objective.reached(best)
        return Summary({s: n for s, n in self._counts.items() if n}, top, errors, reached)

    def _remove(self, old: Outcome) -> None:
        self._counts[old.state] -= 1
        if (rank := self._rank(old)) is not None:
            del self._ranked[bisect_left(self._ranked, rank)]
        if old.failed:
            del self._errors[bisect_left(self._errors, old.trial)]

    def _rank(self, outcome: Outcome) -> tuple[float, int] | None:
        if outcome.state is not TrialState.SUCCEEDED or outcome.value is None:
            return None
        return (self._objective.cost(outcome.value), outcome.trial) if self._objective else None
