"""Boards and panels as values, and as the JSON of Grafana 10 and later.

https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

SOURCE: Json = {"type": "prometheus", "uid": "${source}"}
WIDTH = 24  # of a board, in Grafana's units
_ALL: Json = {"includeAll": True, "allValue": ".*"}
_ALL["current"] = {"text": ["All"], "value": ["$__all"]}
_LINK_TAG = "gpu-scheduler"

# Queries of annotations are asked once a minute.
EVICTIONS = "sum by (reason) (increase(gpusched_preemptions_total[2m])) > 0" + "".join(
    f" or label_replace(sum(increase(gpusched_{cause}_pods_total[2m])) > 0,"
    f' "reason", "{words}", "", "")'
    for cause, words in (("over_cap", "over its cap"), ("stuck", "could not start"))
)
LEADERS = "max by (pod) (gpusched_leader) == 1 unless max by (pod) (gpusched_leader offset 2m) == 1"


@dataclass(frozen=True, slots=True)
class Query:
    """One query of Prometheus; ``legend`` names its series."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """What one box shows.

    ``kind``: stat, timeseries, bargauge or table. ``unit``: Grafana's name of it. ``hides``:
    columns of a table.
    """

    title: str
    kind: str
    queries: tuple[Query, ...]
    unit: str = "short"
    width: int = 8
    height: int = 8
    text: str = ""
    stacked: bool = False
    most: float | None = None
    hides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Variable:
    """What is chosen above a board: values of a label of a series; ``all``: at first all."""

    name: str
    label: str
    series: str
    all: bool = True


@dataclass(frozen=True, slots=True)
class Board:
    """A page."""

    name: str
    title: str
    text: str
    variables: tuple[Variable, ...]
    panels: tuple[Panel, ...]


def stat(title: str, expr: str, unit: str = "short", **more: Any) -> Panel:
    """A number."""
    return Panel(title, "stat", (Query(expr),), unit, **{"width": 4, "height": 4, **more})


def lines(title: str, *queries: tuple[str, str], **more: Any) -> Panel:
    """Curves; each query with what its series are called."""
    return Panel(title, "timeseries", tuple(Query(*each) for each in queries), **more)


def stacks(title: str, *queries: tuple[str, str], **more: Any) -> Panel:
    """Curves one on the other, which add up to something."""
    return lines(title, *queries, stacked=True, **more)


def bars(title: str, unit: str, expr: str, legend: str, **more: Any) -> Panel:
    """A bar for each series, as it is now."""
    return Panel(title, "bargauge", (Query(expr, legend),), unit, **more)


def table(title: str, expr: str, unit: str = "short", **more: Any) -> Panel:
    """A row for each series, as it is now."""
    return Panel(title, "table", (Query(expr),), unit, **{"width": 12, **more})


def text(board: Board) -> str:
    """The file of a board."""
    return json.dumps(as_json(board), indent=1, ensure_ascii=False) + "\n"


def as_json(board: Board) -> Json:
    """A board as Grafana reads it."""
    return {
        "uid": f"gpu-scheduler-{board.name}",
        "title": board.title,
        "description": board.text,
        "tags": [_LINK_TAG],
        "schemaVersion": 38,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "graphTooltip": 1,
        "links": [
            {
                "type": "dashboards",
                "title": "GPU scheduler",
                "tags": [_LINK_TAG],
                "asDropdown": True,
                "includeVars": True,
                "keepTime": True,
            }
        ],
        "annotations": {
            "list": [
                _annotation("Evictions", EVICTIONS, "orange", "evicted: {{reason}}"),
                _annotation("Change of leader", LEADERS, "blue", "{{pod}} leads"),
            ]
        },
        "templating": {
            "list": [
                {"name": "source", "label": "Source", "type": "datasource", "query": "prometheus"},
                *map(_variable, board.variables),
            ]
        },
        "panels": list(_placed(board.panels)),
    }


def _annotation(name: str, expr: str, colour: str, title: str) -> Json:
    return {
        "name": name,
        "datasource": SOURCE,
        "enable": True,
        "expr": expr,
        "step": "60s",
        "iconColor": colour,
        "titleFormat": title,
    }


def _variable(each: Variable) -> Json:
    query = f"label_values({each.series}, {each.label})"
    return {
        "name": each.name,
        "label": each.name.capitalize(),
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": "values"},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        **(_ALL if each.all else {}),
    }


def _placed(panels: Sequence[Panel]) -> Iterator[Json]:
    """From left to right, and a new row where the next one does not fit."""
    x = y = height = 0
    for number, panel in enumerate(panels, 1):
        if x + panel.width > WIDTH:
            x, y, height = 0, y + height, 0
        place = {"x": x, "y": y, "w": panel.width, "h": panel.height}
        yield {"id": number, **_panel(panel), "gridPos": place}
        x, height = x + panel.width, max(height, panel.height)


def _panel(panel: Panel) -> Json:
    now = panel.kind != "timeseries"
    targets = [
        {
            "refId": chr(ord("A") + number),
            "datasource": SOURCE,
            "expr": query.expr,
            "legendFormat": query.legend or "__auto",
            **({"instant": True, "range": False} if now else {}),
            **({"format": "table"} if panel.kind == "table" else {}),
        }
        for number, query in enumerate(panel.queries)
    ]
    defaults: Json = {"unit": panel.unit}
    if panel.most is not None:
        defaults |= {"min": 0, "max": panel.most}
    if panel.kind == "timeseries":
        stacking = {"stacking": {"mode": "normal"}} if panel.stacked else {}
        defaults["custom"] = {"fillOpacity": 30 if panel.stacked else 0, **stacking}
    found: Json = {
        "title": panel.title,
        "description": panel.text,
        "type": panel.kind,
        "datasource": SOURCE,
        "targets": targets,
        "fieldConfig": {"defaults": defaults, "overrides": []},
    }
    if panel.kind == "table":
        hidden = dict.fromkeys(("Time", *panel.hides), True)
        found["transformations"] = [{"id": "organize", "options": {"excludeByName": hidden}}]
    return found
