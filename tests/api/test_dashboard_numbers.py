"""Every number of the dashboard is the one that kubectl and the API server tell.

Of a cluster at rest: what they say is read before and after the pages, and is the same.
"""

import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.api.cli.program import gpu_here
from tests.api.dashboard_known import ClusterAtRest
from tests.api.dashboard_numbers import (
    ANSWERS,
    BESIDE,
    RULES,
    Leaf,
    differs,
    leaves,
    numeric,
    structs,
)
from tests.api.dashboard_scene import Scene, scene_on, settings
from tests.api.dashboard_stand import ALL, dashboard_on
from tests.api.dashboard_user import DashboardUser, token
from tests.api.free_port import free_port
from tests.api.replica import LEASE_NAMESPACE
from tests.api.site import Site
from tests.api.tenant import GROUP, until
from tests.api.usage_agent import UsageAgent, usage_agent

from cluster import Running
from gpu_scheduler.dashboard import views
from gpu_scheduler.runtime.usage.charting.chart import CLUSTER, SERIES, Charts

PORT, AGENT_PORT = free_port(), free_port()
LISTS = {
    "overview": views.OverviewView,
    "gpus": views.GpusView,
    "queue": views.QueueView,
    "jobs": views.JobsView,
    "projects": views.ProjectsView,
    "sweeps": views.SweepsView,
    "chart?span=1h": views.ChartView,
}


@pytest.fixture(scope="module")
def site(control_plane: Running) -> Iterator[Site]:
    with dashboard_on(control_plane, PORT, **settings(AGENT_PORT)) as made:
        yield made


@pytest.fixture(scope="module")
def agent(site: Site) -> Iterator[UsageAgent]:
    with usage_agent(site.admin, AGENT_PORT) as made:
        yield made


@pytest.fixture(scope="module")
def scene(site: Site, agent: UsageAgent) -> Iterator[Scene]:
    with scene_on(site.admin, agent) as made:
        yield made


def test_every_field_with_a_number_has_a_rule_and_no_rule_is_without_a_field() -> None:
    fields = {f"{each.__name__}.{name}" for each in structs() for name in numeric(each)}
    assert fields == set(RULES)


def test_a_number_that_is_off_by_a_hundredth_is_found() -> None:
    assert differs(0.51, 0.5) and differs(None, 0.5) and differs(0.0, None)
    assert not differs(0.5, 0.5) and not differs(None, None)


class Reader:
    """Reads all pages of one who sees all."""

    def __init__(self, site: Site) -> None:
        self._user = DashboardUser(token(site.admin, LEASE_NAMESPACE, ALL), PORT)

    def pages(self) -> dict[str, Any]:
        found = {path: self.read(path, kind) for path, kind in LISTS.items()}
        for node in found["gpus"].nodes:
            for device in node.devices:
                path = f"gpus/{node.name}/{device.index}"
                found[path] = self.read(path, views.DeviceView)
        for row in found["jobs"].rows:
            ref = row.ref
            path = f"jobs/{ref.namespace}/{ref.kind}/{ref.name}"
            found[path] = self.read(path, views.JobView)
        for row in found["projects"].rows:
            found[f"projects/{row.name}"] = self.read(f"projects/{row.name}", views.ProjectView)
        for row in found["sweeps"].rows:
            path = f"sweeps/{row.ref.namespace}/{row.ref.name}"
            found[path] = self.read(path, views.SweepView)
        return found

    def read(self, path: str, kind: Any) -> Any:
        shown = self._user.get(path)
        assert shown.status == 200, (path, shown.text)
        return msgspec.json.decode(shown.text, type=kind)

    def what_if(self, **question: Any) -> views.WhatIfAnswer:
        shown = self._user.send("POST", "what-if", question)
        assert shown.status == 200, shown.text
        return msgspec.json.decode(shown.text, type=views.WhatIfAnswer)


def known_of(site: Site, agent: UsageAgent) -> ClusterAtRest:
    def gpu(*words: str) -> Any:
        done = gpu_here(site.running.kubeconfig, *words, "-o", "json")
        assert done.returncode == 0, done
        return json.loads(done.stdout)

    return ClusterAtRest(site.admin, gpu, agent)


def wrong(known: ClusterAtRest, path: str, view: Any) -> list[str]:
    """A line for each number of an answer that is not what its rule says."""
    found = []
    for leaf in leaves(view):
        try:
            expected = RULES[leaf.name](known, leaf.chain)
        except (KeyError, IndexError, StopIteration, ValueError) as error:
            found.append(f"{path}: {leaf.name} of {_named(leaf)}: nothing tells it: {error!r}")
            continue
        if expected is not BESIDE and differs(leaf.value, expected):
            found.append(
                f"{path}: {leaf.name} of {_named(leaf)} is {leaf.value}, expected {expected}"
            )
    return found


def _named(leaf: Leaf) -> str:
    inner = leaf.chain[-1]
    return " ".join(
        str(getattr(inner, each))
        for each in ("ref", "name", "pod", "state", "kind")
        if hasattr(inner, each)
    )


def test_every_number_is_the_one_that_kubectl_tells(
    site: Site, agent: UsageAgent, scene: Scene
) -> None:
    reader = Reader(site)
    until(lambda: reader.read("overview", views.OverviewView).idle, "the agent was heard")
    until(lambda: known_of(site, agent).idle, "GPUUsage tells of it")

    def at_rest() -> tuple[ClusterAtRest, dict[str, Any]] | None:
        before = known_of(site, agent)
        until(lambda: reader.read("overview", views.OverviewView).at > before.at, "a later picture")
        pages, after = reader.pages(), known_of(site, agent)
        return (before, pages) if before.versions == after.versions else None

    known, pages = until(at_rest, "nothing changes any more")
    pages["what-if"] = reader.what_if(likeNode="r7525-1", nodes=1)
    found = [line for path, view in pages.items() for line in wrong(known, path, view)]
    assert not found, "\n".join(found)
    shown = {leaf.name for view in pages.values() for leaf in leaves(view)}
    assert {f"{each.__name__}.at" for each in ANSWERS if "at" in each.__struct_fields__} <= shown
    assert {"EarlierRow.pods", "ProcessRow.pid", "XidRow.times"} <= shown


def test_the_chart_is_the_one_that_the_operators_object_keeps(
    site: Site, agent: UsageAgent, scene: Scene
) -> None:
    reader = Reader(site)

    def kept() -> Any:
        answer = site.admin.get(f"{GROUP}/namespaces/{LEASE_NAMESPACE}/gpuusages/cluster")
        text = answer.body.get("status", {}).get("charts") if answer.ok else None
        if not text:
            return None
        found = Charts.loads(base64.b64decode(text)).by_name[CLUSTER].fine
        start, values = found.window(time.time(), 360)
        known = np.flatnonzero(~np.isnan(values[SERIES.index("held")]))
        return (start, found.seconds, values, known[:-1]) if len(known) > 2 else None

    start, step, values, known = until(kept, "a few steps are kept")
    chart = reader.read("chart?span=1h", views.ChartView)
    assert chart.step_seconds == step
    shift = round((start - chart.start) / step)
    for row, name in enumerate(SERIES):
        shown = getattr(chart, name)
        told = [np.nan if (v := shown[index + shift]) is None else v for index in known]
        assert told == [
            pytest.approx(values[row][index], abs=0.0051, nan_ok=True) for index in known
        ], name
