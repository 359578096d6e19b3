"""The API server's Table of GPUJobs, with lines for other workloads in the same columns.

What columns there are is the server's affair: an operator of another version has others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from gpu_scheduler.cli.lists.share_rows import PodOwner

Json = Mapping[str, Any]

_DEFAULT = ("NAME", "PROJECT", "TYPE", "STATUS", "GPU", "PODS", "REASON", "NODE", "AGE")


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns as they are shown.

    Attributes:
        names: upper case; one that ends with "|" is for ``-o wide`` alone.
        all_namespaces: NAMESPACE goes first.
    """

    names: tuple[str, ...]
    all_namespaces: bool = False

    @classmethod
    def of(cls, table: Json, *, all_namespaces: bool) -> "Columns":
        """The columns of a Table; those that we know where it has none."""
        defined = table.get("columnDefinitions") or ()
        names = [
            str(each.get("name"))
            if any(c.isupper() for c in str(each.get("name"))[1:])
            else str(each.get("name")).upper()
            for each in defined
        ]
        wide = [bool(each.get("priority")) for each in defined]
        shown = tuple(f"{name}|" if more else name for name, more in zip(names, wide, strict=True))
        return cls(shown or _DEFAULT, all_namespaces)

    def heading(self) -> list[str]:
        """Names of the columns, for a ``PrintedTable``."""
        return ["NAMESPACE", *self.names] if self.all_namespaces else list(self.names)

    def index(self, name: str) -> int | None:
        """Where a column is, of which the beginning is known."""
        for number, each in enumerate(self.names):
            if each.removesuffix("|").partition("(")[0] == name:
                return number
        return None

    def row(self, row: Json) -> list[str]:
        """A row of the Table."""
        cells = [_text(cell) for cell in row.get("cells") or ()]
        cells = (cells + [""] * len(self.names))[: len(self.names)]
        if not self.all_namespaces:
            return cells
        return [str(meta_of(row).get("namespace") or ""), *cells]

    def share_row(self, workload: PodOwner, project: str, now: datetime) -> list[str]:
        """A line for a workload that is no GPUJob."""
        known = workload.cells(project) | {"AGE": age(workload.created(), now)}
        return self.cells(workload.namespace, known)

    def cells(self, namespace: str, known: Mapping[str, str]) -> list[str]:
        """A line of what is known, by names of columns without what is in brackets there."""
        cells = [known.get(n.removesuffix("|").partition("(")[0], "") for n in self.names]
        return [namespace, *cells] if self.all_namespaces else cells

    def status(self, cells: Sequence[str]) -> str:
        """What a line says of its status."""
        number = self.index("STATUS")
        return "" if number is None else cells[number + self.all_namespaces]

    def ended(self, cells: Sequence[str]) -> list[str]:
        """The line of something that was deleted."""
        number, shown = self.index("STATUS"), [*cells]
        if number is not None:
            shown[number + self.all_namespaces] = "Deleted"
        return shown


def meta_of(row: Json) -> Json:
    """Metadata of the object in a row."""
    found = (row.get("object") or {}).get("metadata") or {}
    assert isinstance(found, Mapping)
    return found


def projects_by_namespace(projects: Iterable[Json]) -> dict[str, str]:
    """Which project a namespace is charged to, of several that claim it the oldest."""
    found = dict[str, str]()
    for each in sorted(projects, key=lambda p: str(p["metadata"].get("creationTimestamp"))):
        for namespace in (each.get("spec") or {}).get("namespaces") or ():
            found.setdefault(str(namespace), str(each["metadata"]["name"]))
    return found


def age(created: str, now: datetime) -> str:
    """As kubectl writes it: ``45s``, ``12m``, ``3h5m``, ``2d4h``, ``30d``."""
    try:
        then = datetime.fromisoformat(created)
    except ValueError:
        return "<unknown>"
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    seconds = max(0, int((now - then).total_seconds()))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    return f"{days}d" if days < 730 else f"{days // 365}y{days % 365}d"


def _text(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    return f"{cell:g}" if isinstance(cell, float) else str(cell).replace("\n", " ")
