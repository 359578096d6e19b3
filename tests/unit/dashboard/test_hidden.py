"""A reader of one namespace is shown nothing that names another's work, on any page."""

from typing import Any

import msgspec
import pytest
from tests.unit.dashboard import rows
from tests.unit.dashboard.rows import parts, picture

from gpu_scheduler.dashboard.content import device
from gpu_scheduler.dashboard.content.hidden import nodes_for, parts_for
from gpu_scheduler.dashboard.pages import PAGES
from gpu_scheduler.dashboard.picture import Details, DeviceDetail, JobDetail, Picture, SweepDetail
from gpu_scheduler.dashboard.rows import WorkRef
from gpu_scheduler.dashboard.views import ChartView
from gpu_scheduler.dashboard.visible import ALL, Visible
from gpu_scheduler.usage.figures import GpuState

SECRET = "secret"
INSIDE = Visible(frozenset({"team-a"}))
OUTSIDE = Visible(frozenset({"team-a"}), inventory=False)
NOBODY = Visible(frozenset(), inventory=False)


class Everything(Details):
    """Of whatever is asked for there is a detail with a secret in it."""

    def job(self, ref: WorkRef) -> JobDetail | None:
        told = SECRET if ref.namespace != "team-a" else "own"
        return JobDetail(
            facts=(told,), steps=(), steps_note="", placed=(), slowest=None, curve=None, ranks=None,
            used=None, may_suspend=True, suspended=False,
        )  # fmt: skip

    def sweep(self, ref: WorkRef) -> SweepDetail | None:
        return SweepDetail(top=(), errors=())

    def device(self, node: str, index: int) -> DeviceDetail | None:
        theirs = rows.process(1, "secret-job", "secret-ns")
        return DeviceDetail(
            health=rows.health(),
            processes=(theirs, rows.process(2)),
            earlier=(rows.earlier("secret-job", "secret-ns"), rows.earlier()),
            earlier_from=1.0,
        )

    def chart(self, project: str, span: str) -> ChartView | None:
        return ChartView(
            at=1, start=1, step_seconds=1, gpus=(), held=(), busy=(), idle=(), waiting=(),
            borrowed=(), note=SECRET if project == "secret-project" else "",
        )  # fmt: skip


def cluster() -> Picture:
    theirs: dict[str, Any] = {"namespace": "secret-ns", "project": "secret-project"}
    shared = rows.device(
        rows.share(), rows.share("secret-job", gpus=0.3, busy=0.2, pod="secret-pod", **theirs)
    )
    alone = rows.device(rows.share("secret-job", pod="secret-pod-1", **theirs), index=1)
    return picture(
        parts=parts(busy=0.8, free=1.2),
        nodes=(rows.node("a", shared, alone), rows.node("b", alone)),
        projects=(
            rows.project(),
            rows.project("secret-project", namespaces=("secret-ns",)),
        ),
        works=(rows.job(), rows.job("secret-job", **theirs)),
        queue=(rows.queued(), rows.queued("secret-job", message="secret", **theirs)),
        sweeps=(rows.sweep(), rows.sweep("secret-sweep", **theirs)),
        idle=(rows.idle(), rows.idle("secret-job", **theirs)),
        advice=(rows.advice(), rows.advice("secret-job", **theirs)),
        details=Everything(),
    )


ASKED = [
    {},
    {"namespace": "secret-ns", "kind": "GPUJob", "name": "secret-job"},
    {"namespace": "secret-ns", "kind": "GPUJob", "name": "secret-sweep"},
    {"namespace": "team-a", "kind": "GPUJob", "name": "train"},
    {"name": "secret-project"},
    {"project": "secret-project"},
    {"q": "secret"},
]
BASE = {"namespace": "team-a", "kind": "GPUJob", "name": "train", "node": "a", "index": "0"}


@pytest.mark.parametrize("visible", [OUTSIDE, NOBODY], ids=["own", "none"])
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_nothing_of_others_is_said(page: Any, visible: Visible) -> None:
    for asked in ASKED:
        whole = BASE | asked
        found = page.make(cluster(), visible, whole)
        assert SECRET not in msgspec.json.encode(found).decode(), (page.path, asked)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_who_may_see_nodes_and_projects_sees_sums_of_others_and_no_work(page: Any) -> None:
    for asked in ASKED:
        whole = BASE | asked
        text = msgspec.json.encode(page.make(cluster(), INSIDE, whole)).decode()
        for word in ("secret-job", "secret-pod", "secret-sweep", '"message":"secret"'):
            assert word not in text, (page.path, asked)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_who_may_see_all_is_shown_it(page: Any) -> None:
    asked = BASE | {"namespace": "secret-ns", "name": "secret-job"}
    if page.path.startswith("projects/") or page.path == "chart":
        asked = {"name": "secret-project", "project": "secret-project"}
    if page.path.startswith("sweeps/"):
        asked["name"] = "secret-sweep"
    assert SECRET in msgspec.json.encode(page.make(cluster(), ALL, asked)).decode()


def test_a_device_that_is_shared_says_what_others_hold_and_not_what_they_do() -> None:
    (first, second), *_ = (node.devices for node in nodes_for(cluster(), INSIDE))
    own, rest = first.shares
    assert (own.ref, own.busy) == (rows.ref(), 0.3)
    assert (rest.ref, rest.gpus, rest.busy, rest.memory_mib) == (None, 0.3, None, None)
    assert first.busy is None and first.memory_used_mib is None and first.free == 0.2
    assert [each.ref for each in second.shares] == [None]


def test_of_a_device_with_others_on_it_nothing_is_told_that_tells_of_them() -> None:
    shared = device.page(cluster(), INSIDE, BASE)
    assert shared is not None and shared.health is not None
    hidden = shared.health.watts, shared.health.slowed, shared.health.xids, shared.device.celsius
    assert hidden == (None, None, None, None) and shared.health.remapped_after_corrected == 1
    assert [each.pid for each in shared.processes] == [2]
    assert shared.earlier == (rows.earlier(),)
    whole = device.page(cluster(), ALL, BASE)
    assert whole is not None and whole.health == rows.health() and whole.device.celsius == 61.0
    assert [each.pid for each in whole.processes] == [1, 2]
    assert whole.earlier == (rows.earlier("secret-job", "secret-ns"), rows.earlier())
    assert device.page(cluster(), OUTSIDE, BASE | {"node": "b"}) is None
    for wrong in ({"node": "z"}, {"index": "7"}, {"index": "-1"}, {"index": "x"}):
        assert device.page(cluster(), ALL, BASE | wrong) is None


def test_who_sees_own_work_alone_sees_the_devices_that_it_is_on() -> None:
    (node,) = nodes_for(cluster(), OUTSIDE)
    assert node.name == "a" and [device.index for device in node.devices] == [0]
    found = parts_for(cluster(), OUTSIDE)
    assert found[GpuState.BUSY] == 0.3 and sum(found.values()) == 0.5
    assert nodes_for(cluster(), NOBODY) == ()
