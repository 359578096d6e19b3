"""What looks at the devices leave in the rings."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from tests.unit.agent.builders import CONTAINER, OTHER_POD, container, sample, seen, use

from gpu_scheduler.agent.container_host import ContainerHostUse
from gpu_scheduler.agent.driver import Load
from gpu_scheduler.agent.history.columns import RingType, Values
from gpu_scheduler.agent.history.history_clock import HistoryClock
from gpu_scheduler.agent.history.recorder import Recorder
from gpu_scheduler.agent.history.slot import RingSlot
from gpu_scheduler.agent.sampler import Sample
from gpu_scheduler.agent.usage import ContainerUse
from gpu_scheduler.kube.unexpected import counts

BUSY = replace(seen(100, 1000), busy_ratio=0.7)
IDLE = replace(seen(101, 300), busy_ratio=0.0)
NEIGHBOUR = container(uid=OTHER_POD, container_id="d" * 64)


class Node:
    """A recorder with looks every three seconds."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now = folder, 1000.0
        self.host: dict[str, ContainerHostUse] = {}
        self.recorder = self.starts()

    def starts(self) -> Recorder:
        clock = HistoryClock("boot", lambda: self.now, lambda: self.now)
        self.recorder = Recorder(self.folder, 2, clock, self._host)
        return self.recorder

    def _host(self, ids: Collection[str], now: float) -> Mapping[str, ContainerHostUse]:
        return {each: self.host[each] for each in ids if each in self.host}

    def look(self, seconds: float, *uses: ContainerUse, of: Sample | None = None) -> None:
        until = self.now + seconds
        while self.now < until:
            self.recorder.take(of or sample(), uses, self.now)
            self.now += 3.0

    def rings(self, of: RingType) -> list[RingSlot]:
        assert self.recorder.file is not None
        return [s for s in self.recorder.file.slots() if s.owner and s.owner.type is of]

    def last(self, of: RingType, pod_uid: str = "") -> Values:
        assert self.recorder.file is not None
        (slot,) = [s for s in self.rings(of) if s.owner and pod_uid in ("", s.owner.pod_uid)]
        return list(slot.looks(0, self.recorder.file.look() + 1))[-1][1]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def on_first(load: Load) -> Sample:
    both = sample()
    return replace(both, devices=(replace(both.devices[0], load=load),))


def test_two_containers_on_a_device_have_their_own_figures(node: Node) -> None:
    node.look(60, use(BUSY), use(IDLE, of=NEIGHBOUR), of=on_first(Load(0.7, 250.0, 61.0)))
    mine, other = (node.last(RingType.SHARE, uid) for uid in (container().pod.uid, OTHER_POD))
    assert (mine["busy"], mine["memoryMiB"]) == (pytest.approx(0.7, abs=0.01), 1000)
    assert (other["busy"], other["memoryMiB"]) == (0, 300)
    device = node.last(RingType.DEVICE)
    assert device["busy"] == pytest.approx(0.7, abs=0.01)
    assert device["allocated"] == pytest.approx(2 * 0.495, abs=0.01)
    assert device["used"] == pytest.approx(0.495, abs=0.01)  # 0.7 of a 0.49
    assert (device["powerWatts"], device["temperatureCelsius"]) == (250, 61)


@pytest.mark.parametrize(
    ("cap_mib", "share"), [(20224, 0.5), (12134, 0.3), (40448, 1.0), (1, 0.001)]
)
def test_a_share_is_the_one_that_was_given(node: Node, cap_mib: int, share: float) -> None:
    node.look(15, use(BUSY, cap_mib=cap_mib))  # of 40,448 MiB: what the driver keeps is nobody's
    (ring,) = node.rings(RingType.SHARE)
    assert ring.sums.share == share


def test_what_nobody_knows_is_unknown(node: Node) -> None:
    node.look(15, use(seen(100, None)), of=on_first(Load()))
    assert node.last(RingType.SHARE) == {
        "busy": None,
        "memoryMiB": None,
        "neighboursAbove": 0.0,
        "refused": None,
    }
    device = node.last(RingType.DEVICE)
    assert device["busy"] is device["used"] is device["powerWatts"] is None
    assert set(node.last(RingType.CONTAINER).values()) == {None}


def test_a_device_that_does_not_answer_leaves_a_gap_and_ends_nobody(node: Node) -> None:
    node.look(30, use(BUSY))
    both = sample()
    lost = replace(both, devices=(replace(both.devices[0], readable=False), both.devices[1]))
    (ring,) = node.rings(RingType.SHARE)
    before = ring.sums.seconds
    gone = ContainerUse(container(), (replace(use().uses[0], readable=False),))
    node.look(30, gone, of=lost)
    assert ring.sums.seconds == before
    assert not ring.last


def test_a_peak_between_two_rows_is_kept(node: Node) -> None:
    node.look(12, use(BUSY))
    node.look(3, use(replace(BUSY, used_bytes=9000 * 1024 * 1024)))
    node.look(12, use(BUSY))
    (ring,) = node.rings(RingType.SHARE)
    assert ring.sums.peak_mib == 9000


def test_a_container_uses_cpu_and_memory(node: Node) -> None:
    node.host[CONTAINER] = ContainerHostUse(2500.0, 4096.0, 0.25, None)
    node.look(15, use(BUSY))
    assert node.last(RingType.CONTAINER) == {
        "cpuMilli": 2500,
        "memoryMiB": 4096,
        "ioStalled": pytest.approx(0.25, abs=0.01),
        "memoryStalled": None,
    }


def test_one_that_is_gone_has_ended_and_its_ring_stays(node: Node) -> None:
    node.look(30, use(BUSY))
    node.look(15)
    (ring,) = node.rings(RingType.SHARE)
    assert ring.last
    assert ring.owner is not None
    assert (ring.owner.namespace, ring.owner.job, ring.owner.project) == (
        *("team-a", "train"),
        "project-a",
    )


def test_a_container_that_the_kubelet_has_not_named_yet_has_no_ring(node: Node) -> None:
    node.look(15, use(BUSY, of=container(container_id="")))
    assert not node.rings(RingType.SHARE)


def test_steps_of_the_hour_before_a_restart_are_summed_up_after_it(node: Node) -> None:
    node.look(1500, use(BUSY))
    node.recorder.close()
    node.starts()
    node.look(15, use(BUSY))
    (ring,) = node.rings(RingType.SHARE)
    assert node.recorder.file is not None
    steps = list(ring.steps(0, node.recorder.file.look() // 60))
    assert len(steps) >= 2
    assert all(v["busy.mean"] == pytest.approx(0.7, abs=0.01) for _, v in steps)


def test_a_look_that_failed_is_none(node: Node) -> None:
    node.recorder.take(Sample(node.now, problem="NVML: away"), (), node.now)
    assert node.recorder.file is None


def test_a_folder_that_is_not_there_costs_the_history_alone(
    node: Node, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    node.folder = tmp_path / "away"
    node.starts()
    node.look(30, use(BUSY))
    assert len(caplog.records) == 1
    assert "history: No such file or directory; tried every 60 s" in caplog.text
    node.folder.mkdir()
    node.look(60, use(BUSY))
    assert node.rings(RingType.SHARE)


def test_the_longest_names_that_there_are_have_a_ring(node: Node) -> None:
    """Of a bare pod: it is its own owner, so its name is in its work and its job too."""
    name, namespace = "p" * 253, "n" * 63
    owner = f"{namespace}/statefulset {name}#{'r' * 63}"
    long = container(namespace=namespace)
    pod = structs.replace(
        long.pod, name=name, job=f"statefulset/{name}", work=owner, project="q" * 253
    )
    own = structs.replace(long.own, name="c" * 63)
    node.look(15, use(BUSY, of=replace(long, pod=pod, own=own)))
    (ring,) = node.rings(RingType.SHARE)
    assert ring.owner is not None
    assert (ring.owner.pod, ring.owner.work) == (name, owner)
    node.recorder.close()
    node.starts()
    node.look(15)
    assert [each.owner for each in node.rings(RingType.SHARE)] == [ring.owner]


def test_what_nobody_foresaw_costs_the_history_alone(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look goes on, whose failure would close the node."""
    node.look(15, use(BUSY))
    before = counts["history"]
    with monkeypatch.context() as patched:
        patched.setattr(RingSlot, "add", lambda *_: 1 / 0)
        node.look(30, use(BUSY))
    assert counts["history"] == before + 1
    assert "division by zero" in node.recorder.answering.missing(node.now)
    node.look(60, use(BUSY))
    assert not node.recorder.answering.missing(node.now)
