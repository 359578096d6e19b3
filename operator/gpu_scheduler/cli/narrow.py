"""A table that is too wide for a terminal, made narrower where people can still read it.

No cell is cut off. Columns without a single cell go first, then what headings have in brackets; a
long reason is broken where its words meet (WaitingFor/Quota); then go columns that ``-o wide``
shows; what is widest then is broken last. Pure; called by ``shown``.
"""

import re
from collections.abc import Collection, Sequence

from gpu_scheduler.cli.shown import PrintedTable

_GAP = 2  # between columns
_PART = re.compile(r"[^-/. ]*[-/. ]|[A-Z][a-z]+(?=[A-Z])|.+?(?=[-/. ]|(?<=[a-z])[A-Z]|$)")
_SPARED = ("TYPE", "PROJECT")  # in this order
_BROKEN = ("NODE", "PROJECT", "NAMESPACE", "NAME")


def fitted(sheet: PrintedTable, columns: int, *, all_columns: bool = False) -> PrintedTable:
    """The table for a terminal of so many columns; cells may have several lines.

    Where that is not enough the printer folds on.

    Args:
        sheet: the table.
        columns: of the terminal.
        all_columns: whether none may be left out.
    """
    if _width(sheet) <= columns:
        return sheet
    if not all_columns:
        sheet = _without(sheet, {i for i, _ in enumerate(sheet.columns) if not _filled(sheet, i)})
    sheet = PrintedTable([name.replace("(", "\n(") for name in sheet.columns], sheet.rows)
    if _width(sheet) > columns:
        sheet = PrintedTable([name.partition("\n")[0] for name in sheet.columns], sheet.rows)
    sheet = _break(sheet, "REASON", columns)
    for name in () if all_columns else _SPARED:
        if _width(sheet) > columns and name in sheet.columns:
            sheet = _without(sheet, {sheet.columns.index(name)})
    wide = dict(zip(sheet.columns, _columns(sheet), strict=True))
    for name in sorted(_BROKEN, key=lambda each: -wide.get(each, 0)):
        sheet = _break(sheet, name, columns)
    return sheet


def broken(text: str, most: int) -> str:
    """A text in lines of at most so many characters, as far as its parts allow."""
    lines = [""]
    for part in _PART.findall(text):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > most:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def _break(sheet: PrintedTable, name: str, columns: int) -> PrintedTable:
    """With the cells of a column in several lines, if it is there and the table is too wide."""
    over = _width(sheet) - columns
    if over <= 0 or name not in sheet.columns:
        return sheet
    number = sheet.columns.index(name)
    most = max(len(name), _columns(sheet)[number] - over)
    cut = [[broken(c, most) if i == number else c for i, c in enumerate(r)] for r in sheet.rows]
    return PrintedTable(sheet.columns, [*cut])


def _without(sheet: PrintedTable, gone: Collection[int]) -> PrintedTable:
    kept = [i for i in range(len(sheet.columns)) if i not in gone]
    return PrintedTable(
        [sheet.columns[i] for i in kept], [[row[i] for i in kept] for row in sheet.rows]
    )


def _filled(sheet: PrintedTable, number: int) -> bool:
    return any(row[number] for row in sheet.rows)


def _width(sheet: PrintedTable) -> int:
    each = _columns(sheet)
    return sum(each) + _GAP * max(0, len(each) - 1)


def _columns(sheet: PrintedTable) -> list[int]:
    rows: list[Sequence[str]] = [sheet.columns, *sheet.rows]
    return [
        max(len(line) for row in rows for line in row[i].split("\n"))
        for i in range(len(sheet.columns))
    ]
