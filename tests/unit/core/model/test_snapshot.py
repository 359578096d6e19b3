from copy import deepcopy

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.builders import A30, ClusterBuilder, dell_selfhosted, pod_shape

from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.core.model.devices import Chooser
from gpu_scheduler.core.model.request import JobKey, PodUID, ProjectName
from gpu_scheduler.core.model.running_pods import RunningPod
from gpu_scheduler.core.model.snapshot import Snapshot

TEAM = ProjectName("team-a")


def test_taking_charges_devices_node_and_project():
    snapshot = Snapshot(dell_selfhosted().obj())
    what = pod_shape(500, cpu_milli=4000, memory_bytes=1 << 30)
    snapshot.take(0, what, ((0, 1, 500, 20224),), TEAM)
    cluster = snapshot.cluster
    assert (cluster.free_milli[1], cluster.free_mib[1]) == (500, 20224)
    assert (cluster.free_cpu_milli[0], cluster.free_pods[0]) == (124_000, 109)
    assert cluster.free_memory_bytes[0] == 511 << 30
    assert snapshot.node_free_milli[0] == 1500
    assert snapshot.allocated_milli(TEAM) == 500


def test_the_cluster_it_was_made_from_stays():
    cluster = ClusterBuilder().node("a", unhealthy=[0]).obj()
    before = deepcopy(cluster)
    Snapshot(cluster).take(0, pod_shape(500), ((0, 1, 500, 20224),), TEAM)
    assert cluster == before


def test_nodes_with_the_same_devices_have_one_shape():
    cluster = dell_selfhosted().node("mixed", models=[A30, A30]).node("bare", 0).obj()
    assert Snapshot(cluster).node_shape == [0, 0, 0, 1, 2, 3]


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([100, 250, 500, 1000])), max_size=20))
def test_rolling_back_restores_every_number(takes: list[tuple[int, int]]):
    snapshot = Snapshot(dell_selfhosted().allocated("team-a", 250).obj())
    marks, states = [], []
    for node, milli in takes:
        marks.append(snapshot.mark())
        states.append((deepcopy(snapshot.cluster), list(snapshot.node_free_milli)))
        choice = Chooser(pod_shape(milli), snapshot).choose(node)
        if choice is not None:
            snapshot.take(node, pod_shape(milli, cpu_milli=1000), choice.picks, TEAM)
    for mark, state in reversed(list(zip(marks, states, strict=True))):
        snapshot.rollback(mark)
        assert (snapshot.cluster, snapshot.node_free_milli) == state


def test_a_pod_that_leaves_a_barred_device_for_a_while_changes_nothing_there():
    snapshot = Snapshot(ClusterBuilder().node("a", 2, unhealthy=[0]).obj())
    devices = (DeviceAllocation(0, snapshot.cluster.dev_id[0], 1000, 40_448),)
    pod = RunningPod(PodUID("p"), "p", JobKey("ns/p"), TEAM, "a", devices)
    before = (deepcopy(snapshot.cluster.free_milli), list(snapshot.node_free_milli))
    snapshot.release_pod(pod)
    assert snapshot.fits_back(pod)
    snapshot.put_back(pod)
    assert (snapshot.cluster.free_milli, snapshot.node_free_milli) == before
    assert Chooser(pod_shape(1000), snapshot).choose(0) is not None
