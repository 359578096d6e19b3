"""What is believed of an agent's answer, and what stays of it."""

from msgspec.structs import replace
from tests.unit.state.builders import half, make_node, make_pod

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.runtime.usage.seen import STALE_SECONDS, SeenUse
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.usage.answer import AgentUsage, EndedUse, ShareUse, Totals
from gpu_scheduler.usage.window import Window

SUMS = Totals(containers=1, seconds=100, busy_seconds=70, peak_mib=5)


class Stage:
    def __init__(self) -> None:
        self.state = ClusterState("gpu-system")
        self.seen = SeenUse(self.state.pods.known)
        for node in ("a", "b"):
            self.state.nodes.changed(make_node(node))

    def pod(self, name: str = "job-0", node: str = "a") -> PodUID:
        record = self.state.pod_changed(make_pod(name, node=node, devices=half()))
        assert record is not None
        return record.uid

    def shares(self, uid: PodUID, now: float = 0.0) -> list[ShareUse]:
        said = self.seen.said(self.state.pods.known[uid].node, now)
        return list(said.pods.get(uid, {}).values()) if said is not None else []


def share(uid: PodUID, **more: object) -> ShareUse:
    known = ShareUse(device="GPU-1", pod_uid=uid, container="main", work="w", totals=SUMS)
    return replace(known, **more)


def test_a_node_speaks_for_its_own_pods_alone() -> None:
    stage = Stage()
    mine, other = stage.pod(), stage.pod("job-1", "b")
    stage.seen.take("a", AgentUsage(look=1, shares=(share(mine), share(other))), 0.0)
    assert len(stage.shares(mine)) == 1
    assert stage.shares(other) == []


def test_what_was_said_long_ago_is_no_figure_of_now() -> None:
    stage = Stage()
    mine = stage.pod()
    stage.seen.take("a", AgentUsage(look=1, shares=(share(mine),)), 0.0)
    assert stage.shares(mine, STALE_SECONDS)
    assert not stage.shares(mine, STALE_SECONDS + 1)


def test_windows_are_told_once_and_kept() -> None:
    stage = Stage()
    mine, cut = stage.pod(), (Window(looks=90),)
    stage.seen.take("a", AgentUsage(look=1, shares=(share(mine, windows=cut),)), 0.0)
    stage.seen.take("a", AgentUsage(look=2, shares=(share(mine, windows=None),)), 10.0)
    assert [each.windows for each in stage.shares(mine)] == [cut]


def test_sums_of_what_ended_are_those_of_all_nodes() -> None:
    stage = Stage()
    for node in ("a", "b"):
        answer = AgentUsage(look=1, ended=(EndedUse(work="w", totals=SUMS),))
        stage.seen.take(node, answer, 0.0)
        stage.seen.take(node, answer, 10.0)  # told again, counted once
    assert stage.seen.sums("w") == SUMS + SUMS
    stage.seen.keep_ended({"other"})
    assert stage.seen.sums("w") == Totals()


def test_a_node_that_goes_takes_nothing_along_and_counts_once_when_it_is_back() -> None:
    stage = Stage()
    mine = stage.pod()
    stage.seen.take("a", AgentUsage(look=5, shares=(share(mine),)), 0.0)
    stage.seen.forget("a")
    assert stage.seen.sums("w") == SUMS
    assert stage.seen.look("a") == 0  # so that all is told again
    stage.seen.take("a", AgentUsage(look=9, shares=(share(mine),)), 10.0)
    assert stage.seen.sums("w") == SUMS


def test_a_history_that_began_anew_replaces_what_was_said() -> None:
    stage = Stage()
    stage.seen.take("a", AgentUsage(look=9, ended=(EndedUse(work="w", totals=SUMS),)), 0.0)
    stage.seen.take("a", AgentUsage(look=2), 10.0)
    assert stage.seen.sums("w") == Totals()


def test_roles_are_told_apart_and_are_forgotten_with_their_work() -> None:
    stage = Stage()
    mine = stage.pod()
    answer = AgentUsage(
        look=1,
        shares=(share(mine, work="w#learner", cap_mib=7),),
        ended=(EndedUse(work="w#actor", totals=SUMS), EndedUse(work="w", totals=SUMS)),
    )
    stage.seen.take("a", answer, 0.0)
    assert stage.seen.by_role("w") == {"actor": SUMS, "learner": SUMS}
    assert stage.seen.totals("w") == (SUMS + SUMS + SUMS, 7)
    stage.seen.keep_ended({"w"})
    assert stage.seen.sums("w") == SUMS + SUMS + SUMS
    stage.seen.take("a", AgentUsage(look=2), 10.0)
    stage.seen.keep_ended({"other"})
    assert stage.seen.by_role("w") == {} and stage.seen.sums("w") == Totals()
