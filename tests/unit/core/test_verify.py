from hypothesis import given
from hypothesis import strategies as st
from tests.unit.builders import A100, USABLE_MIB, ClusterBuilder

from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.core.verify import PodDevices, overbooked

CLUSTER = ClusterBuilder().node("a", 2).node("b", 2).obj()
USABLE = USABLE_MIB[A100]


def holder(pod: str, since: float, milli: int, mib: int = 0, device: str = "a/0") -> PodDevices:
    return PodDevices(PodUID(pod), "a", since, (DeviceAllocation(0, device, milli, mib),))


def test_a_full_device_is_fine():
    assert overbooked(CLUSTER, [holder("x", 1, 500, 20224), holder("y", 2, 500, 20224)]) == ()


def test_the_newest_pods_above_the_line_are_named():
    held = [holder("old", 1, 500), holder("newest", 3, 400), holder("new", 2, 300)]
    (found,) = overbooked(CLUSTER, held)
    assert (found.node, found.device, found.milli, found.usable_mib) == ("a", "a/0", 1200, USABLE)
    assert found.evict == ("newest",)


def test_as_many_leave_as_needed():
    held = [holder("a", 1, 900), holder("b", 2, 900), holder("c", 3, 900)]
    assert overbooked(CLUSTER, held)[0].evict == ("c", "b")


def test_memory_counts_as_well_as_milli():
    held = [holder("a", 1, 100, USABLE), holder("b", 2, 100, 1)]
    assert overbooked(CLUSTER, held)[0].evict == ("b",)


def test_a_pod_alone_on_a_device_stays_whatever_its_memory():
    assert overbooked(CLUSTER, [holder("a", 1, 1000, USABLE + 8)]) == ()


def test_a_pod_alone_with_more_than_a_device_leaves():
    devices = (DeviceAllocation(0, "a/0", 700, 0), DeviceAllocation(1, "a/0", 700, 0))
    assert overbooked(CLUSTER, [PodDevices(PodUID("a"), "a", 1, devices)])[0].evict == ("a",)


def test_a_pod_that_leaves_one_device_no_longer_counts_on_the_next():
    both = PodDevices(
        PodUID("wide"),
        "a",
        9,
        (DeviceAllocation(0, "a/0", 1000, 0), DeviceAllocation(0, "a/1", 1000, 0)),
    )
    held = [both, holder("x", 1, 10), holder("y", 2, 10, device="a/1")]
    assert [(o.device, o.evict) for o in overbooked(CLUSTER, held)] == [("a/0", ("wide",))]


def test_a_device_that_is_not_known_is_held_to_its_milli():
    held = [holder("x", 1, 600, 99, "gone"), holder("y", 2, 600, 99, "gone")]
    (found,) = overbooked(CLUSTER, held)
    assert (found.usable_mib, found.evict) == (0, ("y",))


def test_devices_of_the_same_id_on_two_nodes_are_two():
    devices = (DeviceAllocation(0, "0", 800, 0),)
    held = [PodDevices(PodUID(n), n, 1, devices) for n in ("a", "b")]
    assert overbooked(CLUSTER, held) == ()


@given(
    st.lists(
        st.tuples(
            st.integers(0, 5),
            st.lists(st.tuples(st.sampled_from(CLUSTER.dev_id), st.integers(1, 1000)), max_size=3),
        ),
        max_size=12,
    )
)
def test_without_the_evicted_every_device_is_within_its_line(
    pods: list[tuple[int, list[tuple[str, int]]]],
):
    held = [
        PodDevices(
            PodUID(f"p{i}"),
            "a",
            since,
            tuple(
                DeviceAllocation(c, d, m, m * USABLE // 1000) for c, (d, m) in enumerate(devices)
            ),
        )
        for i, (since, devices) in enumerate(pods)
    ]
    found = overbooked(CLUSTER, held)
    evicted = [pod for o in found for pod in o.evict]
    assert len(evicted) == len(set(evicted))
    rest = [h for h in held if h.pod not in evicted]
    assert overbooked(CLUSTER, rest) == ()
    for device in CLUSTER.dev_id:
        shares = [g for h in rest for g in h.devices if g.device == device]
        assert sum(g.milli for g in shares) <= 1000
        assert sum(g.mib for g in shares) <= USABLE
    assert overbooked(CLUSTER, reversed(held)) == found
