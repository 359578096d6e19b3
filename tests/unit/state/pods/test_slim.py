"""Of a pod that waits, what a plan and a placement read is kept, and no more of it than fits."""

from typing import Any

import msgspec
import pytest
from tests.unit.state.builders import make_pod

from gpu_scheduler.api.names import ASKED
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.affinity.pod_affinity import pod_affinity_of
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.pods.pod import Stage, record
from gpu_scheduler.state.pods.pod_shape import pod_shape_of
from gpu_scheduler.state.pods.slim import MOST_BYTES, slim, too_heavy

ASKS = {ASKED: "0:gpu-scheduler.io/gpu=0.5"}


def pod(notes: dict[str, str] | None = None, **spec: Any) -> Pod:
    made = make_pod(annotations_=notes, containers=[{"name": "main", **spec.pop("main", {})}])
    said = msgspec.to_builtins(made.spec) | spec
    return msgspec.structs.replace(made, spec=msgspec.convert(said, type(made.spec)))


def tolerating(size: int) -> list[dict[str, str]]:
    return [{"key": "x" * size}]


def test_what_a_plan_reads_comes_out_as_it_was() -> None:
    said = {"requests": {"cpu": "2"}, "limits": {"memory": "1Gi"}}
    whole = pod(
        ASKS | {"a": "b"},
        main={"resources": said, "args": ["x" * 1000], "env": [{"name": "A", "value": "b"}]},
        nodeSelector={"zone": "a"},
        tolerations=tolerating(10),
    )
    kept = slim(whole)
    assert pod_affinity_of(kept) is pod_affinity_of(whole)
    assert pod_shape_of(kept, (), (), (0, 0)) == pod_shape_of(whole, (), (), (0, 0))
    assert record(kept).share == record(whole).share
    assert record(kept).index == record(whole).index
    assert kept.metadata.uid == whole.metadata.uid
    assert slim(kept) == kept
    assert "x" * 20 not in str(kept)


@pytest.mark.parametrize(
    "heavy",
    [
        pod(tolerations=tolerating(MOST_BYTES)),
        pod(nodeSelector={"a": "x" * MOST_BYTES}),
        pod({"a": "x" * 200_000}),
        pod(main={"resources": {"requests": {f"a/{i}": "1" for i in range(2000)}}}),
    ],
    ids=["tolerations", "node selector", "annotations", "resources"],
)
def test_a_pod_that_says_too_much_is_not_planned_and_says_why(heavy: Pod) -> None:
    assert too_heavy(heavy)
    found = record(heavy)
    assert found.stage is Stage.BLOCKED and "at most" in found.blocked
    assert len(str(slim(heavy))) < 2000


def test_one_that_asks_by_itself_is_told_like_what_else_is_wrong_with_it() -> None:
    heavy = pod(ASKS, tolerations=tolerating(MOST_BYTES))
    found = record(heavy)
    assert found.stage is Stage.WAITING
    assert found.share is not None and found.share.problem == too_heavy(heavy)
    state = ClusterState()
    state.pod_changed(heavy)
    (group,) = state.groups.records.values()
    assert group.problem == too_heavy(heavy)


def test_a_pod_that_runs_with_too_many_rules_keeps_its_own_namespace_away() -> None:
    wanted = [{"key": "a", "operator": "In", "values": [f"{i}" for i in range(9999)]}]
    term = {
        "topologyKey": "zone",
        "namespaces": ["others"],
        "labelSelector": {"matchExpressions": wanted},
    }
    anti = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    rules = pod_affinity_of(pod(affinity={"podAntiAffinity": anti})).rules
    assert rules is not None
    (borne,) = rules.anti_affinity_terms
    assert borne.key == "zone"
    assert borne.pods.matches("team-a", {"a": "b"})
    assert not borne.pods.matches("others", {"a": "1"})
