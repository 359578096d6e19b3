"""The boards for Grafana: as their source says, and every panel of them shows something.

What a panel shows is asked of a real Prometheus, which scrapes made-up figures under the labels of
Prometheus Operator's targets.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.chart import made_up, prometheus
from tests.chart.conftest import Object, Render
from tests.chart.prometheus import Prometheus, until

from boards import grafana
from boards.__main__ import FOLDER
from boards.boards import BOARDS
from reference import metrics

ROOT = Path(__file__).parents[2]
ON = "metrics.boards.enabled=true"
_CHOSEN = {"$__rate_interval": "5s", "$__range": "20s"}
_NAME = re.compile(r"\b(?:[a-z_]+:)?gpusched_[a-z_]+(?::[a-z0-9]+)?")


def queries() -> list[tuple[str, str]]:
    """Of every board: where it stands, and the query."""
    found = []
    for board in BOARDS:
        made = grafana.as_json(board)
        found += [(f"{board.name}: {e['name']}", e["expr"]) for e in made["annotations"]["list"]]
        found += [
            (f"{board.name}: {panel['title']}", target["expr"])
            for panel in made["panels"]
            for target in panel["targets"]
        ]
    return found


def of_variables() -> list[tuple[str, str]]:
    return [(each.label, each.series) for board in BOARDS for each in board.variables]


def asked(expr: str) -> str:
    """A query as Grafana sends it where all is chosen."""
    for name, value in _CHOSEN.items():
        expr = expr.replace(name, value)
    return re.sub(r"\$[a-z]+", ".*", expr)


def recorded(rules: Object) -> set[str]:
    return {
        rule["record"] for group in rules["groups"] for rule in group["rules"] if "record" in rule
    }


@pytest.fixture(scope="module")
def server(
    render: Render, rules: Object, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    honoring = {
        {"ServiceMonitor": "operator", "PodMonitor": "agent"}[each["kind"]]
        for each in render("metrics.serviceMonitor.enabled=true")
        if each["kind"] in ("ServiceMonitor", "PodMonitor")
        for end in each["spec"].get("endpoints") or each["spec"]["podMetricsEndpoints"]
        if end.get("honorLabels")
    }
    folder = tmp_path_factory.mktemp("prometheus")
    with (
        made_up.served() as port,
        prometheus.running(folder, rules, honoring, port) as running,
    ):
        yield running


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_a_board_is_the_one_that_would_be_written(board: grafana.Board) -> None:
    path = FOLDER / f"{board.name}.json"
    assert path.read_text(encoding="utf-8") == grafana.text(board), "make boards writes it anew"


def test_no_other_board_is_there() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == {board.name for board in BOARDS}


def test_boards_are_in_a_config_map_that_grafanas_sidecar_finds(render: Render) -> None:
    labels = "metrics.boards.labels.folder=gpus", "metrics.boards.annotations.grafana_folder=GPUs"
    (found,) = (
        each for each in render(ON, *labels) if each["metadata"]["name"].endswith("-boards")
    )
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert found["metadata"]["labels"]["folder"] == "gpus"
    assert found["metadata"]["annotations"] == {"grafana_folder": "GPUs"}
    assert {json.loads(text)["uid"] for text in found["data"].values()} == {
        f"gpu-scheduler-{board.name}" for board in BOARDS
    }


def test_there_are_none_by_default(objects: list[Object]) -> None:
    assert not [each for each in objects if each["kind"] == "ConfigMap"]


def test_queries_name_only_metrics_that_there_are(rules: Object) -> None:
    there = {n for f in (*metrics.of_operator(), *metrics.of_agent()) for n in metrics.names(f)}
    known = there | recorded(rules)
    exprs = [expr for _, expr in (*queries(), *of_variables())]
    exprs += [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    named = {name for expr in exprs for name in _NAME.findall(expr)}
    assert len(named) > 60
    assert named - known == set()


def test_a_variable_that_a_query_has_is_one_of_its_board() -> None:
    for board in BOARDS:
        known = {each.name for each in board.variables} | {"__rate_interval", "__range"}
        exprs = [query.expr for panel in board.panels for query in panel.queries]
        exprs += [each.series for each in board.variables]
        assert {name for expr in exprs for name in re.findall(r"\$(\w+)", expr)} <= known


def test_panels_lie_beside_each_other() -> None:
    for board in BOARDS:
        taken: set[tuple[int, int]] = set()
        for panel in grafana.as_json(board)["panels"]:
            at = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(at["x"], at["x"] + at["w"])
                for y in range(at["y"], at["y"] + at["h"])
            }
            assert not cells & taken and max(x for x, _ in cells) < grafana.WIDTH
            taken |= cells


def test_every_query_finds_something(server: Prometheus) -> None:
    empty = [(where, asked(expr)) for where, expr in queries()]
    assert len(empty) > 70

    def all_found() -> bool:
        empty[:] = [each for each in empty if not server.series(each[1])]
        return not empty

    until(all_found, lambda: f"these find nothing: {empty}")


def test_every_variable_has_values(server: Prometheus) -> None:
    empty = of_variables()

    def all_found() -> bool:
        empty[:] = [
            (label, series)
            for label, series in empty
            if not any(label in found for found in server.series(asked(series)))
        ]
        return not empty

    until(all_found, lambda: f"these have no values: {empty}")


def test_the_namespace_of_work_is_the_tenants(server: Prometheus) -> None:
    until(
        lambda: bool(server.series("gpusched_gpujob_info")), lambda: "the operator is not scraped"
    )
    (work,) = server.series("gpusched_gpujob_info")
    assert (work["namespace"], work["gpujob"], work["job"]) == ("team-a", "train", "gpu-scheduler")
    operators = '{__name__=~"gpusched_.*", container="operator"}'
    renamed = [name for each in server.series(operators) for name in each if "exported" in name]
    assert renamed == []
    (own,) = server.series('gpusched_leader{namespace="gpu-system"}')
    assert own["pod"] == "gpu-scheduler-7c9d-abcde"


def test_alerts_say_whom_they_concern(server: Prometheus) -> None:
    """In words without a hole: templates are filled in once an alert is pending."""
    expected = {"GPUJobIdle", "GPUJobsPendingInsideQuota", "GPUXid"}

    def alerts() -> dict[str, Object]:
        return {each["labels"]["alertname"]: each for each in server.get("alerts")["alerts"]}

    until(lambda: expected <= alerts().keys(), lambda: f"of {expected} there are {alerts()}")
    found = alerts()
    idle, waits, xid = (found[name] for name in sorted(expected))
    assert idle["annotations"]["summary"] == (
        "team-a/train holds GPUs and has not used them for an hour."
    )
    assert "1h 6m 40s" in idle["annotations"]["description"]
    assert {idle["labels"]["namespace"], waits["labels"]["namespace"]} == {"team-a"}
    assert (xid["labels"]["code"], xid["labels"]["node"]) == ("79", "a")
    for each in found.values():
        said = " ".join(each["annotations"].values())
        assert "<no value>" not in said and "error" not in said.lower()[:5], said


def test_the_queries_of_the_page_find_something_and_the_exporter_is_joined(
    server: Prometheus,
) -> None:
    page = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
    queries = re.findall(r"```promql\n(.+?)```", page, re.DOTALL)
    for query in queries:
        until(lambda each=query: bool(server.series(each)), lambda each=query: f"nothing: {each}")
    (join,) = (query for query in queries if "DCGM" in query)
    (found,) = server.series(join)
    assert (found["uuid"], found["node"]) == (made_up.gpu(0), "a")
