"""``sweep preview``: the trials that a file would run, by the function that the operator calls."""

from gpu_scheduler.sweeps.commands.column_table import ColumnTable, columns
from gpu_scheduler.sweeps.commands.manifest import SweepManifest
from gpu_scheduler.sweeps.core.trials import parameters_of

ADAPTIVE = (
    "algorithm tpe chooses the parameters of a trial when it starts, from the results until then: "
    "there is nothing to show beforehand"
)


def preview(sweep: SweepManifest, first: int) -> ColumnTable:
    """The first trials of a sweep, at most ``first``.

    Raises:
        ValueError: the trials are not known beforehand.
    """
    search = sweep.sweep.search()
    if search.adaptive:
        raise ValueError(ADAPTIVE)
    count = min(first, sweep.spec.total_pods)
    trials = (parameters_of(search, trial) for trial in range(count))
    rows = [[trial, *each.values()] for trial, each in enumerate(trials)]
    return ColumnTable(columns(["trial"], [], search.names), rows)


def footer(sweep: SweepManifest, shown: int) -> str:
    """What a table for people says below its rows."""
    total, spec = sweep.spec.total_pods, sweep.spec
    more = f"{min(shown, total):,} of {total:,} trials" if shown < total else f"{total:,} trials"
    return f"{more}, {min(spec.parallelism, total):,} at once"
