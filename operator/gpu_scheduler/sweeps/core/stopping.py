"""Which running trials are hopeless, from what they report as they go.

``Median`` stops a trial whose best value so far is worse than the median of what others had on
average up to the same step (Golovin et al., "Google Vizier", KDD 2017). ``Asha`` compares at steps
r, r·η, r·η² … and lets the best 1/η go on (Li et al., "A System for Massively Parallel
Hyperparameter Tuning", MLSys 2020), without waiting for a rung to fill. A step below one already
seen is a trial that was started again; the same step once more is a report sent twice.
"""

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass, field
from math import isnan
from statistics import median

from gpu_scheduler.api.search import Objective

# Memory stays bounded, however many trials there are and however often they report.
CURVES = 500  # of ended trials, the newest, that Median compares with
POINTS = 256  # of a curve


class Stopping(ABC):
    """Takes reports, says whether to stop; once told to stop, a trial is told so ever after."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self._stopped: set[int] = set()
        self._last_step: dict[int, int] = {}

    def report(self, trial: int, step: int, value: float) -> bool:
        """Whether a trial that has ``value`` at ``step`` should stop; NaN is the worst value."""
        last = self._last_step.get(trial)
        if trial not in self._stopped and step != last:
            if last is not None and step < last:
                self._forget(trial)
            self._last_step[trial] = step
            cost = float("inf") if isnan(value) else self._objective.cost(value)
            if self._hopeless(trial, step, cost):
                self._stopped.add(trial)
        return trial in self._stopped

    def stopped(self, trial: int) -> bool:
        """Whether the trial was told to stop: when it ends, it was pruned."""
        return trial in self._stopped

    def ended(self, trial: int, *, succeeded: bool) -> None:
        """The trial is over; those that succeeded are what others are compared with."""
        self._last_step.pop(trial, None)
        self._stopped.discard(trial)
        self._end(trial, succeeded=succeeded)

    @abstractmethod
    def _hopeless(self, trial: int, step: int, cost: float) -> bool: ...

    @abstractmethod
    def _forget(self, trial: int) -> None:
        """The trial begins anew."""

    @abstractmethod
    def _end(self, trial: int, *, succeeded: bool) -> None: ...


@dataclass(slots=True)
class _Curve:
    """Costs of one trial by step, as running means; of a long one every second, fourth … step."""

    steps: "array[int]" = field(default_factory=lambda: array("q"))
    means: "array[float]" = field(default_factory=lambda: array("d"))
    count: int = 0
    best: float = float("inf")

    def add(self, step: int, cost: float) -> None:
        mean = self.means[-1] if self.count else 0.0
        self.count += 1
        self.steps.append(step)
        self.means.append((mean * (self.count - 1) + cost) / self.count if self.count > 1 else cost)
        self.best = min(self.best, cost)
        if len(self.steps) > POINTS:  # what is left is exact, and the last step is among it
            first = (len(self.steps) - 1) % 2
            self.steps = self.steps[first::2]
            self.means = self.means[first::2]

    def mean_until(self, step: int) -> float | None:
        """Mean of the reports up to a step; None when there is none."""
        count = bisect_left(self.steps, step + 1)
        return self.means[count - 1] if count else None


class Median(Stopping):
    """Worse than the median of the others' means: stop."""

    def __init__(self, objective: Objective, *, min_trials: int = 5, warmup_steps: int = 0) -> None:
        super().__init__(objective)
        self._min_trials = min_trials
        self._warmup_steps = warmup_steps
        self._running: dict[int, _Curve] = {}
        self._ended: deque[_Curve] = deque(maxlen=CURVES)

    def _hopeless(self, trial: int, step: int, cost: float) -> bool:
        curve = self._running.setdefault(trial, _Curve())
        curve.add(step, cost)
        if step < self._warmup_steps or len(self._ended) < self._min_trials:
            return False
        means = [mean for each in self._ended if (mean := each.mean_until(step)) is not None]
        return len(means) >= self._min_trials and curve.best > median(means)

    def _forget(self, trial: int) -> None:
        self._running.pop(trial, None)

    def _end(self, trial: int, *, succeeded: bool) -> None:
        curve = self._running.pop(trial, None)
        if succeeded and curve is not None:
            self._ended.append(curve)


class Asha(Stopping):
    """Not among the best 1/η that came to this rung: stop. A rung decides once η have come."""

    def __init__(
        self, objective: Objective, *, min_resource: int = 1, reduction_factor: int = 3
    ) -> None:
        super().__init__(objective)
        self._min_resource = min_resource
        self._factor = reduction_factor
        self._rungs: list[list[float]] = []  # costs, sorted
        self._costs: dict[int, list[float]] = {}  # of trials that run, by rung

    def _hopeless(self, trial: int, step: int, cost: float) -> bool:
        mine = self._costs.setdefault(trial, [])
        stop = False
        while self._min_resource * self._factor ** len(mine) <= step:
            if len(self._rungs) == len(mine):
                self._rungs.append([])
            rung = self._rungs[len(mine)]
            insort(rung, cost)
            mine.append(cost)
            if len(rung) >= self._factor:
                stop |= bisect_left(rung, cost) >= len(rung) // self._factor
        return stop

    def _forget(self, trial: int) -> None:
        for rung, cost in zip(self._rungs, self._costs.pop(trial, ()), strict=False):
            del rung[bisect_left(rung, cost)]

    def _end(self, trial: int, *, succeeded: bool) -> None:
        self._costs.pop(trial, None)  # what it had stays on the rungs: others are compared with it
