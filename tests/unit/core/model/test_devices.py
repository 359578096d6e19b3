import pytest
from tests.unit.builders import A30, A100, ClusterBuilder, pod_shape

from gpu_scheduler.core.model.devices import Chooser, accepts
from gpu_scheduler.core.model.request import DeviceRequest, PodShape
from gpu_scheduler.core.model.snapshot import DeviceType, Snapshot

BIG = "NVIDIA-A100-SXM4-80GB"


def chosen(builder: ClusterBuilder, what: PodShape) -> list[tuple[str, int, int]] | None:
    """Device, milli and MiB of each pick on the first node."""
    snapshot = Snapshot(builder.obj())
    choice = Chooser(what, snapshot).choose(0)
    return choice and [(g.device, g.milli, g.mib) for g in snapshot.allocations_of(choice.picks)]


def node(gpus: int = 4) -> ClusterBuilder:
    return ClusterBuilder().node("a", gpus)


def test_a_fraction_takes_the_device_with_the_least_left():
    builder = node().held("a/1", 300).held("a/2", 500).held("a/3", 700)
    assert chosen(builder, pod_shape(500)) == [("a/2", 500, 20224)]
    assert chosen(builder, pod_shape(600)) == [("a/1", 600, 24268)]
    assert chosen(builder, pod_shape(800)) == [("a/0", 800, 32358)]


def test_a_whole_gpu_takes_a_fully_free_device():
    builder = node(2).held("a/0", 1)
    assert chosen(builder, pod_shape(1000)) == [("a/1", 1000, 40448)]
    assert chosen(builder, pod_shape(1000, count=2)) is None


def test_whole_gpus_are_different_devices():
    assert chosen(node(2), pod_shape(1000, count=2)) == [("a/0", 1000, 40448), ("a/1", 1000, 40448)]


def test_an_unhealthy_device_takes_nothing():
    builder = ClusterBuilder().node("a", 2, unhealthy=[0])
    assert chosen(builder, pod_shape(100)) == [("a/1", 100, 4044)]
    assert chosen(builder, pod_shape(1000, count=2)) is None


def test_a_fraction_of_several_devices_takes_the_fullest_that_hold_it():
    builder = node().held("a/1", 400).held("a/3", 500)
    assert chosen(builder, pod_shape(500, count=2)) == [("a/3", 500, 20224), ("a/1", 500, 20224)]


def test_memory_takes_the_smallest_device_that_holds_it_with_an_exact_cap():
    builder = ClusterBuilder().node("a", models=[BIG, A100, A30])
    assert chosen(builder, pod_shape(mib=20_000)) == [("a/2", 832, 20_000)]
    assert chosen(builder, pod_shape(mib=24_063)) == [("a/1", 595, 24_063)]
    assert chosen(builder, pod_shape(mib=40_449)) == [("a/0", 500, 40_449)]
    assert chosen(builder, pod_shape(mib=81_051)) is None


def test_the_share_of_a_request_in_memory_is_rounded_up():
    assert chosen(node(1).held("a/0", 753), pod_shape(mib=10_000)) is None
    assert chosen(node(1).held("a/0", 752), pod_shape(mib=10_000)) == [("a/0", 248, 10_000)]


def test_several_containers_are_placed_together():
    both = [DeviceRequest(0, 1, 500), DeviceRequest(2, 1, 300)]
    builder = node(2).held("a/0", 400)
    assert chosen(builder, pod_shape(containers=both)) == [("a/0", 500, 20224), ("a/1", 300, 12134)]
    assert chosen(node(1), pod_shape(containers=both)) == [("a/0", 500, 20224), ("a/0", 300, 12134)]
    assert chosen(node(1).held("a/0", 300), pod_shape(containers=both)) is None


def test_a_whole_gpu_and_a_fraction_in_one_pod():
    both = [DeviceRequest(0, 1, 300), DeviceRequest(1, 1, 1000)]
    builder = node(2).held("a/1", 10)
    assert chosen(builder, pod_shape(containers=both)) == [
        ("a/1", 300, 12134),
        ("a/0", 1000, 40448),
    ]


@pytest.mark.parametrize(
    ("models", "min_compute", "accepted"),
    [
        ((), (0, 0), True),
        (("a100",), (0, 0), True),
        (("t4", "40gb"), (0, 0), True),
        (("a30",), (0, 0), False),
        ((), (8, 0), True),
        ((), (8, 6), False),
        (("a100",), (9, 0), False),
    ],
)
def test_model_and_compute_capability_filter(
    models: tuple[str, ...], min_compute: tuple[int, int], accepted: bool
):
    device = DeviceType(A100, 40448, (8, 0))
    assert accepts(pod_shape(1, models=models, min_compute=min_compute), device) is accepted


def test_only_devices_of_the_model_are_used_on_a_mixed_node():
    builder = ClusterBuilder().node("a", models=[A100, A30]).held("a/0", 100)
    assert chosen(builder, pod_shape(900, models=("a30",))) == [("a/1", 900, 21655)]
    assert chosen(builder, pod_shape(901, models=("a100",))) is None


def test_a_ledger_that_holds_more_memory_than_milli_is_respected():
    builder = node(1)
    builder.obj().free_mib[0] = 20_000
    assert chosen(builder, pod_shape(500)) is None
    assert chosen(builder, pod_shape(400)) == [("a/0", 400, 16179)]
