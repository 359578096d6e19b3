"""Requests in MiB and fractions on one device, as the planner, the ledger and a new one count them.

A device never gives more MiB than it has, nor more than 1,000 milli of fractions, and nothing waits
that fits: counted here from the allocations alone.
"""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.builders import pod_shape

from gpu_scheduler.api import allocation
from gpu_scheduler.api.names import ALLOCATION, memory_mib_annotation
from gpu_scheduler.core.model.cluster import Cluster, NodeInfo
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.core.model.pod_request import PodRequest
from gpu_scheduler.core.model.request import PodShape, PodUID, ProjectName
from gpu_scheduler.core.model.resources import NOTHING
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.core.packing.table import ScoreTable
from gpu_scheduler.core.packing.target_workload import DEFAULT
from gpu_scheduler.core.verify import PodDevices, overbooked
from gpu_scheduler.state.nodes.devices import NodeDevice
from gpu_scheduler.state.nodes.ledger import Charge, Ledger

TEAM = ProjectName("team-a")
INFO = NodeInfo("a", cpu_milli=1 << 30, memory_bytes=1 << 50, pods=1 << 20)


def a_ledger(usable_mib: int) -> Ledger:
    ledger = Ledger()
    ledger.set_node(INFO, (NodeDevice("GPU-0", 0, "A100", usable_mib),))
    return ledger


def filled(
    asked: list[PodShape | int], usable_mib: int
) -> tuple[list[tuple[DeviceAllocation, ...]], Cluster]:
    """Places pods one by one, each by the table; a number takes the pod of that place away."""
    ledger = a_ledger(usable_mib)
    snapshot = Snapshot(ledger.cluster)
    table = ScoreTable(snapshot, Packing.FRAGMENTATION, DEFAULT)
    requests: dict[PodShape, PodRequest] = {}
    held: dict[PodUID, tuple[PodShape, tuple[DeviceAllocation, ...]]] = {}
    for number, each in enumerate(asked):
        if isinstance(each, int):
            if held:
                uid = sorted(held)[each % len(held)]
                gone, devices = held.pop(uid)
                snapshot.release(0, gone, snapshot.picks_of(0, devices), TEAM)
                ledger.release_pod(uid)
            continue
        request = requests.setdefault(each, PodRequest(each, snapshot))
        found = table.best(request)
        assert (found is not None) == fits(each, [g for _, g in held.values()], usable_mib)
        if found is None:
            continue
        picks = found[1].picks
        text = allocation.annotations("a", snapshot.allocations_of(picks))
        devices = allocation.parse(text[ALLOCATION]).devices
        assert devices == snapshot.allocations_of(picks)
        assert ledger.has_room("a", NOTHING, devices)
        assert int(text[memory_mib_annotation(0)]) == devices[0].mib
        snapshot.take(0, each, picks, TEAM)
        uid = PodUID(f"{number:04}")
        held[uid] = each, devices
        ledger.charge_pod(uid, Charge("a", TEAM, NOTHING, devices))
    anew = a_ledger(usable_mib)
    for uid, (_, devices) in sorted(held.items(), reverse=True):
        anew.charge_pod(uid, Charge("a", TEAM, NOTHING, devices))
    for other in (ledger.cluster, anew.cluster):
        assert other.free_milli == snapshot.cluster.free_milli
        assert other.free_mib == snapshot.cluster.free_mib
        assert other.unheld_milli(0) == snapshot.cluster.unheld_milli(0)
    on = [PodDevices(uid, "a", 0.0, devices) for uid, (_, devices) in held.items()]
    assert overbooked(anew.cluster, on) == ()
    return [devices for _, devices in held.values()], anew.cluster


def fits(pod: PodShape, held: list[tuple[DeviceAllocation, ...]], usable_mib: int) -> bool:
    (asked,) = pod.devices
    taken = [allocated for devices in held for allocated in devices]
    free_mib = usable_mib - sum(allocated.mib for allocated in taken)
    if asked.mib:
        return asked.mib <= free_mib
    free = 1000 - sum(allocated.milli for allocated in taken if not allocated.by_memory)
    return asked.milli <= free and asked.milli * usable_mib // 1000 <= free_mib


def pods(*, most: int) -> st.SearchStrategy[list[PodShape | int]]:
    fractions = st.builds(pod_shape, st.sampled_from([1, 7, 125, 333, 500, 1000]))
    sizes = st.one_of(st.sampled_from([1, 81, 82, 100, 2000]), st.integers(1, 90_000))
    by_memory = st.builds(lambda mib: pod_shape(mib=mib), sizes)
    return st.lists(st.one_of(fractions, by_memory, st.integers(0, 99)), max_size=most)


@pytest.mark.long
@settings(deadline=None, max_examples=200)
@given(pods(most=40), st.sampled_from([1000, 1001, 15_109, 40_448, 81_559]))
@example([pod_shape(1)] * 1001 + [pod_shape(mib=559), pod_shape(mib=1)], 81_559)
@example([pod_shape(500), pod_shape(mib=40_780), pod_shape(1)], 81_559)
def test_no_device_gives_more_than_it_has_and_nothing_waits_that_fits(
    asked: list[PodShape | int], usable_mib: int
):
    held, cluster = filled(asked, usable_mib)
    taken = [allocated for devices in held for allocated in devices]
    assert (
        sum(allocated.mib for allocated in taken) == usable_mib - cluster.free_mib[0] <= usable_mib
    )
    assert sum(allocated.milli for allocated in taken if not allocated.by_memory) <= 1000


def test_815_pods_of_100_mib_fill_a_gpu_of_81559_mib():
    held, cluster = filled([pod_shape(mib=100)] * 820, 81_559)
    assert (len(held), cluster.free_mib) == (815, [59])


def test_23_pods_of_2000_mib_fill_a_gpu_of_46068_mib():
    held, cluster = filled([pod_shape(mib=2000)] * 24, 46_068)
    assert (len(held), cluster.free_mib) == (23, [68])


def test_what_an_older_operator_wrote_counts_as_it_did():
    (allocated,) = allocation.parse('{"v":1,"n":"a","c":{"0":{"GPU-0":[2,100]}}}').devices
    ledger = a_ledger(81_559)
    ledger.charge_pod(PodUID("old"), Charge("a", TEAM, NOTHING, (allocated,)))
    assert ledger.cluster.free_milli == [998]
    assert ledger.cluster.free_mib == [81_459]
