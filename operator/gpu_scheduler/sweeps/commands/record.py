"""A sweep together with what came of its trials, as its results ConfigMaps tell.

Parameters are in the results of adaptive searches alone; those of others are computed, so the
numbers here are the ones that the trials had.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from gpu_scheduler.api.search import Parameters
from gpu_scheduler.sweeps.commands.column_table import Cell, ColumnTable, columns
from gpu_scheduler.sweeps.commands.manifest import SweepManifest
from gpu_scheduler.sweeps.core.outcome import Outcome
from gpu_scheduler.sweeps.core.rows import decode
from gpu_scheduler.sweeps.core.table import Table
from gpu_scheduler.sweeps.core.trials import parameters_of


class NoResultsError(ValueError):
    """There is nothing to show yet; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class SweepOutcomes:
    """A sweep and its outcomes."""

    sweep: SweepManifest
    table: Table

    @property
    def metric(self) -> str:
        """Name of the objective.

        Raises:
            NoResultsError: the sweep has none.
        """
        objective = self.sweep.sweep.core_objective()
        if objective is None:
            raise NoResultsError(f"{self.sweep.name} has no spec.sweep.objective to compare by")
        return objective.metric

    def parameters(self, outcome: Outcome) -> Parameters:
        """The parameters that a trial had."""
        search = self.sweep.sweep.search()
        if search.adaptive:
            return dict(zip(search.names, outcome.parameters or (), strict=False))
        return parameters_of(search, outcome.trial)

    def trials(self) -> ColumnTable:
        """All trials that have started or ended, by their numbers."""
        objective = self.sweep.sweep.core_objective()
        metrics = (objective.metric, *objective.also) if objective else ()
        names = self.sweep.sweep.search().names
        rows: list[list[Cell]] = []
        for outcome in self.table:
            values: list[Cell] = [outcome.value, *outcome.also]
            values += [None] * (len(metrics) - len(values))
            parameters = self.parameters(outcome)
            mine: list[Cell] = [parameters.get(name) for name in names]
            shown = values[: len(metrics)]
            rows.append([outcome.trial, outcome.state.value, *shown, *mine, outcome.message])
        return ColumnTable(columns(["trial", "state"], metrics, names, ["message"]), rows)

    def best(self) -> ColumnTable:
        """The best trial, as a sheet of one row.

        Raises:
            NoResultsError: no trial has succeeded with a value.
        """
        metric, best = self.metric, self.table.summary().best
        if best is None:
            raise NoResultsError(f"no trial of {self.sweep.name} has succeeded with a result yet")
        names = self.sweep.sweep.search().names
        parameters = self.parameters(best)
        row: list[Cell] = [best.trial, best.value, *(parameters.get(name) for name in names)]
        return ColumnTable(columns(["trial"], [metric], names), [row])


def record(sweep: SweepManifest, texts: Iterable[str]) -> SweepOutcomes:
    """A sweep with the texts of its results.

    Raises:
        BadRowsError: a text is not one that the operator wrote.
    """
    outcomes = [outcome for text in texts for outcome in decode(text)[1]]
    return SweepOutcomes(sweep, Table(sweep.sweep.core_objective(), outcomes))
