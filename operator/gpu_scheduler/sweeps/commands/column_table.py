"""Rows with named columns, printed as a table for people, as CSV or as JSON.

In CSV and JSON numbers have all their digits; a table for people rounds to six. In JSON, columns of
a group are an object of their own, so that a parameter may be called ``trial``.
"""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpu_scheduler.api.search import Value, text_of

Cell = Value | None
FORMATS = ("table", "csv", "json")
PARAMETERS = "parameters"
METRICS = "metrics"


def columns(
    first: Sequence[str],
    metrics: Sequence[str],
    parameters: Sequence[str],
    last: Sequence[str] = (),
) -> tuple[tuple[str, str], ...]:
    """Columns of trials: what all have, metrics, parameters, and the rest."""
    return (
        *(("", name) for name in first),
        *((METRICS, name) for name in metrics),
        *((PARAMETERS, name) for name in parameters),
        *(("", name) for name in last),
    )


@dataclass(frozen=True, slots=True)
class ColumnTable:
    """Columns, each with its group ("" = none), and rows; None is an empty cell."""

    columns: tuple[tuple[str, str], ...]  # group and name
    rows: Sequence[Sequence[Cell]]

    def render(self, output: str) -> str:
        """The text, without a newline at the end.

        Raises:
            ValueError: another format than those of ``FORMATS``.
        """
        if output == "csv":
            return self._csv()
        if output == "json":
            return json.dumps(self.objects(), indent=2)
        if output == "table":
            return self._table()
        raise ValueError(f"--output {output}: {', '.join(FORMATS)}")

    def sorted_by(self, name: str) -> "ColumnTable":
        """The rows by one column: numbers by their size, then texts, then what is empty.

        Args:
            name: of the column, as in the heading; of several that are called so the first, or
                with its group before, as ``parameters.trial``.

        Raises:
            ValueError: there is no such column.
        """
        names = [column for _, column in self.columns]
        full = [f"{group}.{column}" for group, column in self.columns]
        lower = [column.lower() for column in names]
        for known, wanted in ((names, name), (full, name), (lower, name.lower())):
            if wanted in known:
                at = known.index(wanted)
                return ColumnTable(self.columns, sorted(self.rows, key=lambda row: _order(row[at])))
        raise ValueError(f"--sort-by {name}: one of {', '.join(names)}")

    def objects(self) -> list[dict[str, Any]]:
        """The rows as JSON has them."""
        found = []
        for row in self.rows:
            body: dict[str, Any] = {group: {} for group, _ in self.columns if group}
            for (group, name), cell in zip(self.columns, row, strict=True):
                (body[group] if group else body)[name] = cell
            found.append(body)
        return found

    def _csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([name for _, name in self.columns])
        writer.writerows(["" if c is None else text_of(c) for c in row] for row in self.rows)
        return text.getvalue().removesuffix("\n")

    def texts(self) -> list[list[str]]:
        """Heading and rows as people read them."""
        shown = [[name.upper() for _, name in self.columns]]
        return shown + [[_short(cell) for cell in row] for row in self.rows]

    def _table(self) -> str:
        shown = self.texts()
        widths = [max(len(row[i]) for row in shown) for i in range(len(self.columns))]
        lines = ("   ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in shown)
        return "\n".join(line.rstrip() for line in lines)


def _short(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:.6g}" if isinstance(cell, float) else text_of(cell)


def _order(cell: Cell) -> tuple[int, float, str]:
    if cell is None:
        return (2, 0.0, "")
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return (0, float(cell), "")
    return (1, 0.0, text_of(cell))
