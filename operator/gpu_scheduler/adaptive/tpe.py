"""The tree-structured Parzen estimator of Optuna, asked trial by trial.

A trial keeps the values that it was first given, so a retry has the same. They are not a function
of the seed alone: they depend on which results were there, so whoever asks must store them, and
after a restart the study is built anew from what was stored. Trials that run count as if they had a
bad result, or all that start at once would look at the same place. Asking takes some 40 ms at 1,000
trials and 170 ms at 5,000 (6 parameters): not on the event loop. Called by the runtime, which keeps
one study per sweep; needs the extra ``tpe``.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from gpu_scheduler.core.sweeps.objective import Goal, Objective
from gpu_scheduler.core.sweeps.outcome import Outcome, TrialState
from gpu_scheduler.core.sweeps.space import (
    Constant,
    IntRange,
    LogUniform,
    Parameter,
    Parameters,
    Space,
    Uniform,
    Value,
    Values,
)

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial, Trial

RANDOM_FIRST = 10  # trials before the estimator has enough to go by


class TpeMissingError(RuntimeError):
    """Optuna is not installed; the message says how to get it."""


class TpeStudy:
    """One sweep's study: ``ask`` before a trial starts, ``tell`` when it has ended."""

    def __init__(
        self, space: Space, objective: Objective, seed: int, stored: Iterable[Outcome] = ()
    ) -> None:
        """Build a study.

        Args:
            space: what is searched.
            objective: what is to be made small or large.
            seed: of the sweep.
            stored: what came of earlier trials, with the parameters; ``STARTED`` = runs now.

        Raises:
            TpeMissingError: Optuna is not installed.
        """
        optuna = _optuna()
        known = [outcome for outcome in stored if outcome.parameters is not None]
        # A sampler that began with the same seed would say again what it said first.
        sampler = optuna.samplers.TPESampler(
            seed=(seed + len(known)) % 2**32, n_startup_trials=RANDOM_FIRST, constant_liar=True
        )
        goal = "minimize" if objective.goal is Goal.MINIMIZE else "maximize"
        self._study = optuna.create_study(direction=goal, sampler=sampler)
        self._states = optuna.trial.TrialState
        self._space = space
        self._distributions = {n: _distribution(p) for n, p in space if not _fixed(p)}
        self._asked: dict[int, Trial | int] = {}  # running trials: how Optuna knows them
        self._given: dict[int, Parameters] = {}
        for outcome in known:
            self._restore(outcome, optuna.trial.create_trial)

    def ask(self, trial: int) -> Parameters:
        """Values for a trial: those it was given before, else new ones."""
        if trial not in self._given:
            asked = self._study.ask(self._distributions)
            self._asked[trial] = asked
            self._given[trial] = {
                name: _value(parameter, asked.params.get(name)) for name, parameter in self._space
            }
        return dict(self._given[trial])

    def tell(self, outcome: Outcome) -> None:
        """A trial has ended; told twice, or never asked, it changes nothing."""
        asked = self._asked.pop(outcome.trial, None)
        if asked is None:
            return
        if outcome.state is TrialState.SUCCEEDED and outcome.value is not None:
            self._study.tell(asked, outcome.value)
        else:
            state = self._states.PRUNED if _pruned(outcome) else self._states.FAIL
            self._study.tell(asked, state=state)

    def withdraw(self, trial: int) -> None:
        """The trial was not placed after all: its values are forgotten."""
        asked = self._asked.pop(trial, None)
        if asked is not None:
            self._study.tell(asked, state=self._states.FAIL)
            self._given.pop(trial, None)

    def _restore(self, outcome: Outcome, create: "Callable[..., FrozenTrial]") -> None:
        """Add a trial of an earlier life; one whose values are not of this space is left out."""
        values = outcome.parameters or ()
        if len(values) != len(self._space.names):
            return
        given = dict(zip(self._space.names, values, strict=True))
        try:
            internal = {n: _internal(p, given[n]) for n, p in self._space if not _fixed(p)}
            good = outcome.state is TrialState.SUCCEEDED and outcome.value is not None
            frozen = create(
                params=internal,
                distributions=self._distributions,
                value=outcome.value if good else None,
                state=self._restored_state(outcome, good=good),
            )
        except ValueError:
            return
        self._study.add_trial(frozen)
        self._given[outcome.trial] = given
        if outcome.state is TrialState.STARTED:
            self._asked[outcome.trial] = self._study.trials[-1].number

    def _restored_state(self, outcome: Outcome, *, good: bool) -> Any:
        if outcome.state is TrialState.STARTED:
            return self._states.RUNNING
        if good:
            return self._states.COMPLETE
        return self._states.PRUNED if _pruned(outcome) else self._states.FAIL


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


def _pruned(outcome: Outcome) -> bool:
    return outcome.state is TrialState.PRUNED


def _fixed(parameter: Parameter) -> bool:
    return isinstance(parameter, Constant)


def _distribution(parameter: Parameter) -> "BaseDistribution":
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    match parameter:
        case Uniform(low, high):
            return FloatDistribution(low, high)
        case LogUniform(low, high):
            return FloatDistribution(low, high, log=True)
        case IntRange(low, _, step):
            return IntDistribution(low, parameter[len(parameter) - 1], step=step)
        case _:
            return CategoricalDistribution(tuple(range(len(parameter))))


def _value(parameter: Parameter, found: Any) -> Value:
    """From what Optuna says to the value that a program gets."""
    if isinstance(parameter, Constant):
        return parameter.value
    if isinstance(parameter, Values):
        return parameter[int(found)]
    return int(found) if isinstance(parameter, IntRange) else float(found)


def _internal(parameter: Parameter, value: Value) -> Any:
    """The way back; a ValueError when the value is not one of the choices."""
    if not isinstance(parameter, Values):
        return value
    same = [type(option) is type(value) and option == value for option in parameter.options]
    return same.index(True)
