"""A table of results as text, and made narrower for a terminal that it is too wide for. Pure.

No cell is cut off. Columns without a single cell go first, then what headings have in brackets; a
long reason is broken where its words meet (WaitingFor/Quota); then go columns that ``-o wide``
shows; what is widest then is broken last.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat

_GAP = 2  # between columns
_PART = re.compile(r"[^-/. ]*[-/. ]|[A-Z][a-z]+(?=[A-Z])|.+?(?=[-/. ]|(?<=[a-z])[A-Z]|$)")
_SPARED = ("TYPE", "PROJECT")  # in this order
_BROKEN = ("NODE", "PROJECT", "NAMESPACE", "NAME", "NAMESPACE/NAME")


@dataclass(slots=True)
class PrintedTable:
    """A table.

    Attributes:
        columns: headings; one that ends with "|" is a column of ``-o wide`` alone.
        rows: as many cells each.
    """

    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)

    def cut(self, *, wide: bool) -> "PrintedTable":
        """The table as it is shown: without the columns that are for ``-o wide``."""
        kept = [i for i, name in enumerate(self.columns) if wide or not name.endswith("|")]
        return PrintedTable(
            [self.columns[i].removesuffix("|") for i in kept],
            [[row[i] for i in kept if i < len(row)] for row in self.rows],
        )

    def widths(self, *, headers: bool) -> list[int]:
        """How many characters each column takes."""
        rows = [self.columns, *self.rows] if headers else self.rows
        return [max((len(row[i]) for row in rows), default=0) for i in range(len(self.columns))]

    def lines(self, *, headers: bool) -> Iterator[str]:
        """As text, of whatever width."""
        widths = self.widths(headers=headers)
        for row in [self.columns, *self.rows] if headers else self.rows:
            yield aligned(row, widths)


def aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """A line of a table whose columns have these widths; further cells are as wide as they are."""
    wide = chain(widths, repeat(0))
    return "   ".join(c.ljust(w) for c, w in zip(cells, wide, strict=False)).rstrip()


def fitted(table: PrintedTable, columns: int, *, all_columns: bool = False) -> PrintedTable:
    """The table for a terminal of so many columns; cells may have several lines.

    Where that is not enough the printer folds on.

    Args:
        table: the table.
        columns: of the terminal.
        all_columns: whether none may be left out.
    """
    if _width(table) <= columns:
        return table
    if not all_columns:
        table = _without(table, {i for i, _ in enumerate(table.columns) if not _filled(table, i)})
    table = PrintedTable([name.replace("(", "\n(") for name in table.columns], table.rows)
    if _width(table) > columns:
        table = PrintedTable([name.partition("\n")[0] for name in table.columns], table.rows)
    table = _break(table, "REASON", columns)
    for name in () if all_columns else _SPARED:
        if _width(table) > columns and name in table.columns:
            table = _without(table, {table.columns.index(name)})
    wide = dict(zip(table.columns, _columns(table), strict=True))
    for name in sorted(_BROKEN, key=lambda each: -wide.get(each, 0)):
        table = _break(table, name, columns)
    return table


def broken(text: str, most: int) -> str:
    """A text in lines of at most so many characters, as far as its parts allow."""
    lines = [""]
    for part in _PART.findall(text):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > most:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def _break(table: PrintedTable, name: str, columns: int) -> PrintedTable:
    """With the cells of a column in several lines, if it is there and the table is too wide."""
    over = _width(table) - columns
    if over <= 0 or name not in table.columns:
        return table
    number = table.columns.index(name)
    most = max(len(name), _columns(table)[number] - over)
    cut = [[broken(c, most) if i == number else c for i, c in enumerate(r)] for r in table.rows]
    return PrintedTable(table.columns, [*cut])


def _without(table: PrintedTable, gone: Collection[int]) -> PrintedTable:
    kept = [i for i in range(len(table.columns)) if i not in gone]
    return PrintedTable(
        [table.columns[i] for i in kept], [[row[i] for i in kept] for row in table.rows]
    )


def _filled(table: PrintedTable, number: int) -> bool:
    return any(row[number] for row in table.rows)


def _width(table: PrintedTable) -> int:
    each = _columns(table)
    return sum(each) + _GAP * max(0, len(each) - 1)


def _columns(table: PrintedTable) -> list[int]:
    rows: list[Sequence[str]] = [table.columns, *table.rows]
    return [
        max(len(line) for row in rows for line in row[i].split("\n"))
        for i in range(len(table.columns))
    ]
