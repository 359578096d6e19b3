"""The tree-structured Parzen estimator of Optuna, asked trial by trial.

A trial keeps the values that it was first given, so a retry has the same. They are not a function
of the seed alone: they depend on which results were there, so whoever asks must store them, and
after a restart the study is built anew from what was stored. Trials that run count as if they had a
bad result, or all that start at once would look at the same place. Asking costs more with each
trial that is looked at, so only the best and the newest are: a study that has grown is begun anew
from those. Not safe for threads: the runtime keeps all studies in one. Needs the extra ``tpe``.
"""

from collections.abc import Iterable
from dataclasses import replace
from heapq import nlargest, nsmallest
from typing import TYPE_CHECKING, Any

from gpu_scheduler.api import search as space
from gpu_scheduler.api.search import Goal, Objective
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import Trial

RANDOM_FIRST = 10  # trials before the estimator has enough to go by
# What a study begins with, and how large it grows before it is begun anew. Optuna never takes more
# than 25 results for good ones, and gives old ones little weight among the others.
BEST, NEWEST, RUNNING = 25, 75, 25
LARGEST = 250


class TpeMissingError(RuntimeError):
    """Optuna is not installed; the message says how to get it."""


class TpeStudy:
    """One sweep's study: ``ask`` before a trial starts, ``tell`` when it has ended."""

    def __init__(
        self, searched: space.Space, objective: Objective, seed: int, stored: Iterable[Outcome] = ()
    ) -> None:
        """Build a study.

        Args:
            searched: the space.
            objective: what is to be made small or large.
            seed: of the sweep.
            stored: what came of earlier trials, with the parameters; ``STARTED`` = runs now.

        Raises:
            TpeMissingError: Optuna is not installed.
        """
        self._optuna = _optuna()
        self._space = searched
        self._objective = objective
        self._seed = seed
        self._distributions = {n: _distribution(p) for n, p in searched if not _fixed(p)}
        known = [o for o in stored if len(o.parameters or ()) == len(searched.names)]
        self._given = {o.trial: o.parameters or () for o in known}
        # Trials that run, as Optuna knows them; None: the study has begun without them.
        self._running: dict[int, Trial | int | None] = {
            o.trial: None for o in known if o.state is TrialState.STARTED
        }
        self._begin(known)

    def ask(self, trial: int) -> space.Parameters:
        """Values for a trial: those it was given before, else new ones."""
        if trial not in self._given:
            if len(self._seen) >= LARGEST:
                self._begin(self._seen.values())
            asked = self._study.ask(self._distributions)
            found = {n: _value(parameter, asked.params.get(n)) for n, parameter in self._space}
            values = self._given[trial] = space.values_of(found, self._space.names)
            self._seen[trial] = Outcome(trial, TrialState.STARTED, parameters=values)
            self._running[trial] = asked
        return dict(zip(self._space.names, self._given[trial], strict=True))

    def tell(self, outcome: Outcome) -> None:
        """A trial has ended; told twice, or never asked, it changes nothing."""
        if outcome.trial not in self._running:
            return
        ended = replace(outcome, parameters=self._given[outcome.trial])
        asked = self._running.pop(outcome.trial)
        if asked is None:
            self._add(ended)
        else:
            self._seen[ended.trial] = ended
            self._study.tell(asked, _worth(ended), state=self._state(ended))

    def _begin(self, outcomes: Iterable[Outcome]) -> None:
        """A study that knows what counts among these."""
        # A sampler that began with the same seed would say again what it said first.
        sampler = self._optuna.samplers.TPESampler(
            seed=(self._seed + len(self._given)) % 2**32,
            n_startup_trials=RANDOM_FIRST,
            constant_liar=True,
        )
        goal = "minimize" if self._objective.goal is Goal.MINIMIZE else "maximize"
        self._study = self._optuna.create_study(direction=goal, sampler=sampler)
        self._running = dict.fromkeys(self._running)
        self._seen: dict[int, Outcome] = {}  # what the study knows
        for outcome in _what_counts(list(outcomes), self._objective):
            self._add(outcome)

    def _add(self, outcome: Outcome) -> None:
        """Add a trial to the study; one whose values are not of this space is left out."""
        given = dict(zip(self._space.names, outcome.parameters or (), strict=True))
        try:
            frozen = self._optuna.trial.create_trial(
                params={n: _internal(p, given[n]) for n, p in self._space if not _fixed(p)},
                distributions=self._distributions,
                value=_worth(outcome),
                state=self._state(outcome),
            )
        except ValueError:
            del self._given[outcome.trial]
            self._running.pop(outcome.trial, None)
            return
        self._study.add_trial(frozen)
        self._seen[outcome.trial] = outcome
        if outcome.state is TrialState.STARTED:
            self._running[outcome.trial] = len(self._seen) - 1  # its number in this study

    def _state(self, outcome: Outcome) -> Any:
        states = self._optuna.trial.TrialState
        if outcome.state is TrialState.STARTED:
            return states.RUNNING
        if _worth(outcome) is not None:
            return states.COMPLETE
        return states.PRUNED if outcome.state is TrialState.PRUNED else states.FAIL


def _what_counts(outcomes: list[Outcome], objective: Objective) -> list[Outcome]:
    """The best and the newest that have ended, and the newest that run, by trial."""
    if len(outcomes) <= BEST + NEWEST + RUNNING:
        return outcomes
    running: list[Outcome] = []
    ended: list[Outcome] = []  # without those that failed: nothing is learnt from them
    ranked: list[tuple[float, int]] = []
    for outcome in outcomes:
        if outcome.state is TrialState.STARTED:
            running.append(outcome)
        elif (value := _worth(outcome)) is not None:
            ended.append(outcome)
            ranked.append((objective.cost(value), outcome.trial))
        elif outcome.state is TrialState.PRUNED:
            ended.append(outcome)
    best = {trial for _, trial in nsmallest(BEST, ranked)}
    newest = nlargest(NEWEST, (o for o in ended if o.trial not in best), key=_number)
    running = nlargest(RUNNING, running, key=_number)
    return sorted([*(o for o in ended if o.trial in best), *newest, *running], key=_number)


def _number(outcome: Outcome) -> int:
    return outcome.trial


def _worth(outcome: Outcome) -> float | None:
    """The objective of a trial that succeeded."""
    return outcome.value if outcome.state is TrialState.SUCCEEDED else None


def check_optuna() -> None:
    """Import Optuna, which takes a second.

    Raises:
        TpeMissingError: it is not installed.
    """
    _optuna()


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise TpeMissingError(
            "algorithm tpe needs Optuna, which this operator runs without: set the chart's value "
            "sweeps.tpe (without the chart, pip install optuna), or use halton"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _fixed(parameter: space.Parameter) -> bool:
    return isinstance(parameter, space.Constant)


def _distribution(parameter: space.Parameter) -> "BaseDistribution":
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    match parameter:
        case space.Uniform(low, high):
            return FloatDistribution(low, high)
        case space.LogUniform(low, high):
            return FloatDistribution(low, high, log=True)
        case space.IntRange(low, _, step):
            return IntDistribution(low, parameter[len(parameter) - 1], step=step)
        case _:
            return CategoricalDistribution(tuple(range(len(parameter))))


def _value(parameter: space.Parameter, found: Any) -> space.Value:
    """From what Optuna says to the value that a program gets."""
    if isinstance(parameter, space.Constant):
        return parameter.value
    if isinstance(parameter, space.Values):
        return parameter[int(found)]
    return int(found) if isinstance(parameter, space.IntRange) else float(found)


def _internal(parameter: space.Parameter, value: space.Value) -> Any:
    """The way back; a ValueError when the value is not one of the choices."""
    if not isinstance(parameter, space.Values):
        return value
    same = [type(option) is type(value) and option == value for option in parameter.options]
    return same.index(True)
