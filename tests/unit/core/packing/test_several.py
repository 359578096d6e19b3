"""Best fit by free milli alone against what ``Chooser`` picks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.builders import ClusterBuilder, pod_shape
from tests.unit.core.packing.workloads import free_milli

from gpu_scheduler.core.model.pod_request import PodRequest
from gpu_scheduler.core.model.request import DeviceRequest, PodShape
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.core.packing.scoring import Scoring
from gpu_scheduler.core.packing.several import UNSURE, best_fit
from gpu_scheduler.core.packing.shapes import ShapeScores
from gpu_scheduler.core.packing.target_workload import DEFAULT

REQUEST = st.one_of(
    st.tuples(st.integers(1, 3), st.integers(1, 1000), st.just(0)),
    st.tuples(st.integers(1, 3), st.just(0), st.integers(1, 60_000)),
)


@st.composite
def kinds(draw: st.DrawFn) -> PodShape:
    each = draw(st.lists(REQUEST, min_size=1, max_size=3))
    return pod_shape(containers=[DeviceRequest(n, *request) for n, request in enumerate(each)])


@pytest.mark.long
@settings(deadline=None, max_examples=500)
@given(kinds(), free_milli(4))
def test_best_fit_is_what_the_search_finds(asked: PodShape, free: tuple[int, ...]):
    cluster = ClusterBuilder().node("a", 4).obj()
    for device, (milli, usable) in enumerate(zip(free, cluster.dev_usable_mib, strict=True)):
        cluster.free_milli[device], cluster.free_mib[device] = milli, milli * usable // 1000
    snapshot = Snapshot(cluster)
    chooser = PodRequest(asked, snapshot).chooser
    ask = ShapeScores(
        snapshot.node_shapes[0], DEFAULT, Scoring(Packing.SPREAD, 0, 0)
    ).shape_requests(chooser, 0)
    choice = chooser.choose(0)
    if not ask.steps:  # no device could ever serve it, or milli do not say what fits
        assert choice is None or (chooser.by_size and len(asked.devices) > 1)
        return
    found = best_fit(tuple(sorted(free)), ask)
    if found is None or choice is None:
        assert found is UNSURE or found is choice
    elif found is not UNSURE:
        left = list(free)
        for pick in choice.picks:
            left[pick[1]] -= snapshot.charge_milli(pick)
        assert found == (sorted(left), choice.left_milli, ask.size)


def test_where_two_devices_would_do_alike_nothing_is_said():
    snapshot = Snapshot(ClusterBuilder().node("a", 2).held("a/0", 700).held("a/1", 200).obj())
    pods = pod_shape(containers=[DeviceRequest(0, 1, 500), DeviceRequest(1, 1, 200)])
    chooser = PodRequest(pods, snapshot).chooser
    ask = ShapeScores(
        snapshot.node_shapes[0], DEFAULT, Scoring(Packing.SPREAD, 0, 0)
    ).shape_requests(chooser, 0)
    assert best_fit((300, 800), ask) is UNSURE  # 300 are free on either once the first is there
