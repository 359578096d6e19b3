"""What the leader is answered from a node's rings."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from tests.unit.agent.builders import OTHER_POD, POD, container, sample, seen, use
from tests.unit.agent.fake_driver import gpu

from gpu_scheduler.agent.container_host import ContainerHostUse
from gpu_scheduler.agent.driver import Load, Vitals
from gpu_scheduler.agent.history.answering import Answering
from gpu_scheduler.agent.history.columns import RingType
from gpu_scheduler.agent.history.history_clock import HistoryClock
from gpu_scheduler.agent.history.recorder import Recorder
from gpu_scheduler.agent.history.rows import share_owner
from gpu_scheduler.agent.history.slot import LOOKS_OF_STEP, RingOwner
from gpu_scheduler.agent.ledger import MemoryMarks
from gpu_scheduler.agent.pods import GpuContainer
from gpu_scheduler.agent.sampler import Sample
from gpu_scheduler.agent.usage import ContainerUse
from gpu_scheduler.core.model.units import MIB
from gpu_scheduler.usage.answer import (
    MOST_PROCESSES,
    DeviceHealth,
    ProcessNow,
    ShareUse,
    Totals,
    dumps,
    parse,
)

MINUTE, HOUR = 60, 3600
SHARE = 0.495  # 20,000 of 40,448 MiB, rounded up to the thousandth that was given


def of_work(uid: str = POD, number: int = 0, work: str = "job-uid") -> GpuContainer:
    made = container(uid=uid, container_id=f"{number:064x}")
    return replace(made, pod=structs.replace(made.pod, work=work))


def doing(busy: float | None, mib: int = 1000, of: GpuContainer | None = None) -> ContainerUse:
    process = replace(seen(100, mib), busy_ratio=busy)
    return use(process, of=of or of_work())


class Node:
    def __init__(self, folder: Path, megabytes: int = 2) -> None:
        self.folder, self.megabytes, self.now = folder, megabytes, 1000.0
        self.marks: dict[RingOwner, MemoryMarks] = {}
        self.host = ContainerHostUse(500.0, 2048.0, 0.1, 0.0, 1000.0, 4096.0)
        self.recorder = self.starts()

    def starts(self) -> Recorder:
        clock = HistoryClock("boot", lambda: self.now, lambda: self.now)
        self.recorder = Recorder(
            self.folder, self.megabytes, clock, self._host, lambda uses: self.marks
        )
        return self.recorder

    def _host(self, ids: Collection[str], now: float) -> Mapping[str, ContainerHostUse]:
        return dict.fromkeys(ids, self.host)

    def look(self, seconds: float, *uses: ContainerUse, load: float = 0.7) -> None:
        of = sample()
        device = replace(of.devices[0], load=Load(load, tensor_ratio=0.3, throttled=frozenset()))
        of = replace(of, devices=(device,))
        until = self.now + seconds
        while self.now < until:
            self.recorder.take(of, uses, self.now)
            self.now += 10.0

    @property
    def answering(self) -> Answering:
        return self.recorder.answering

    def share(self, since: int = 0) -> ShareUse:
        (found,) = self.answering.answer(since).shares
        return found


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_share_is_told_with_its_sums_and_what_its_container_uses(node: Node) -> None:
    assert node.answering.missing(node.now) == "no look at the GPUs yet"
    node.look(10 * MINUTE, doing(0.7))
    assert not node.answering.missing(node.now)
    share = node.share()
    assert (share.device, share.work, share.container) == (gpu(0), "job-uid", "main")
    assert share.share == pytest.approx(SHARE, abs=0.01)
    assert share.totals.busy_seconds == pytest.approx(0.7 * share.totals.seconds, rel=0.01)
    assert share.totals.held_gpu_seconds == pytest.approx(SHARE * share.age_seconds, rel=0.01)
    assert share.totals.used_gpu_seconds == pytest.approx(SHARE * share.totals.seconds, rel=0.01)
    assert (share.cpu_milli, share.cpu_limit_milli, share.ram_limit_mib) == (500, 1000, 4096)
    assert (share.idle_seconds, share.ever_busy) == (0, True)
    answer = node.answering.answer(0)
    assert parse(dumps(answer)) == answer


def test_how_a_device_is_and_who_is_on_it_comes_from_the_last_look(node: Node) -> None:
    first = sample().devices[0]
    hot = Load(
        0.7,
        241.0,
        81.0,
        throttled=frozenset({"thermal", "power-cap"}),
        nvlink_rx_bytes_per_second=MIB,
        nvlink_tx_bytes_per_second=2 * MIB,
    )
    broken = Vitals(uncorrected_ecc=3, remapped_after_uncorrected=2, remap_failed=True)
    many = [replace(seen(100 + n, n), busy_ratio=0.01) for n in range(MOST_PROCESSES + 8)]
    of = Sample(0.0, devices=(replace(first, load=hot, vitals=broken, xids={79: 2}),))
    node.recorder.take(of, (use(*many, of=of_work()),), node.now)
    answer = parse(dumps(node.answering.answer(0)))
    assert answer.devices[0].health == DeviceHealth(
        celsius=81.0,
        watts=241.0,
        slowed=("power-cap", "thermal"),
        xids={79: 2},
        uncorrected_ecc=3,
        remapped_after_uncorrected=2,
        remap_failed=True,
        nvlink_mib_a_second=3.0,
    )
    (share,) = answer.shares
    assert len(share.processes) == MOST_PROCESSES, "those with most memory"
    assert share.processes[0] == ProcessNow(pid=171, memory_mib=71.0, busy=0.01)
    node.now += 10
    node.look(10, use(of=of_work()))
    (share,) = node.answering.answer(0).shares
    assert share.processes == () and node.answering.answer(0).devices[0].health == DeviceHealth(
        slowed=()
    ), "what is not known is no nought"


def test_windows_are_cut_after_the_warm_up_and_told_once(node: Node) -> None:
    node.look(19 * MINUTE, doing(0.7))
    assert node.share().windows == ()
    node.look(2 * MINUTE, doing(0.7))
    (window,) = node.share().windows or ()
    assert window.looks == 90
    assert window.busy_median == pytest.approx(0.7, abs=0.01)
    assert window.cpu_median == pytest.approx(0.5)
    assert window.ram_max == pytest.approx(0.5)
    assert window.tensor_median == pytest.approx(0.3, abs=0.01)
    known = node.answering.answer(0).look
    node.look(MINUTE, doing(0.7))
    assert node.share(known + 1).windows is None
    assert len(node.share(known - 30).windows or ()) == 1


def test_windows_are_the_same_after_a_restart_of_the_agent(node: Node) -> None:
    for minute in range(70):
        node.look(MINUTE, doing(minute % 10 / 10))
    before = node.share().windows
    node.starts()
    node.look(10, doing(0.0))
    assert len(before or ()) == 4
    assert node.share().windows == (before or ())[1:]  # of the first half is not kept any more


def test_the_tensor_cores_of_a_neighbour_are_nobodys(node: Node) -> None:
    node.look(21 * MINUTE, doing(0.3), load=0.9)
    assert (node.share().windows or ())[0].tensor_median is None


def test_what_neighbours_use_above_their_shares_is_known(node: Node) -> None:
    other = doing(0.9, of=of_work(OTHER_POD, 1, "other"))
    node.look(21 * MINUTE, doing(0.3), other, load=1.0)
    mine, _ = node.answering.answer(0).shares
    above = (mine.windows or ())[0].neighbours_above
    assert above == pytest.approx(0.9 - SHARE, abs=0.01)


def test_a_peak_of_two_seconds_and_refusals_come_from_the_ledger(node: Node) -> None:
    owner = share_owner(doing(0.5), gpu(0))
    node.marks = {owner: MemoryMarks(1200, 3)}
    node.look(MINUTE, doing(0.5))
    node.marks = {owner: MemoryMarks(15_000, 5)}
    node.look(MINUTE, doing(0.5))
    share = node.share()
    assert share.totals.peak_mib == 15_000
    assert share.totals.refused == 2  # those of before nobody saw come
    assert share.memory_mib == 1000


def test_what_ended_is_told_to_who_does_not_know_it(node: Node) -> None:
    node.look(10 * MINUTE, doing(0.7))
    known = node.answering.answer(0).look
    node.look(MINUTE)
    (ended,) = node.answering.answer(known).ended
    assert (ended.work, ended.totals.containers) == ("job-uid", 1)
    assert ended.totals.held_gpu_seconds == pytest.approx(SHARE * 10 * MINUTE, rel=0.03)
    node.look(MINUTE)
    assert node.answering.answer(known + 10).ended == ()
    assert node.answering.answer(10**9).ended == (ended,)  # of another history


def test_ten_thousand_trials_keep_their_sums_and_push_nobody_out(tmp_path: Path) -> None:
    node = Node(tmp_path)  # 2 MB: about fifty rings
    long_one = doing(0.5, of=of_work(OTHER_POD, 10**9, "long"))
    node.look(20 * MINUTE, long_one)
    node.look(20)
    for number in range(300):
        trial = doing(1.0, mib=number, of=of_work(f"{number:08x}-0000", number, "sweep"))
        node.look(20, trial)
        node.look(10)
    ended = rounded(node)
    assert ended["sweep"].containers == 300
    assert ended["sweep"].seconds == pytest.approx(300 * 20, rel=0.01)
    assert ended["sweep"].peak_mib == 299
    assert ended["long"].containers == 1
    node.starts()
    node.look(10)
    assert rounded(node) == ended


@pytest.mark.long
@pytest.mark.parametrize("works", ["a sweep", "jobs"])
def test_ten_thousand_trials_of_a_minute_leave_the_job_of_yesterday(
    works: str, tmp_path: Path
) -> None:
    """On a file of the size that there is by default: with its history, and its sums."""
    node = Node(tmp_path, megabytes=64)
    node.look(3 * HOUR, doing(0.5, of=of_work(OTHER_POD, 10**9, "long")))
    node.look(20)
    node.now += 24 * HOUR
    at_once, trials = 100, 10_000
    for first in range(0, trials, at_once):
        numbers = range(first, first + at_once)
        name = "sweep" if works == "a sweep" else "job-{}"
        uses = [doing(1.0, of=of_work(f"{n:08x}-0000", n, name.format(n))) for n in numbers]
        node.look(MINUTE, *uses)
        node.look(10)
    assert node.recorder.without_ring == 0
    file = node.recorder.file
    assert file is not None
    assert len(list(file.slots())) == file.count, "it was full"
    (long,) = [
        slot
        for slot in file.slots()
        if slot.owner and slot.owner.work == "long" and slot.owner.type is RingType.SHARE
    ]
    steps = list(long.steps(0, file.look() // LOOKS_OF_STEP + 1))
    assert len(steps) in (18, 19)
    assert all(values["busy.mean"] == pytest.approx(0.5, abs=0.01) for _, values in steps)
    ended = rounded(node)
    assert ended["long"].seconds == pytest.approx(3 * HOUR, rel=0.01)
    if works == "a sweep":
        assert ended["sweep"].containers == trials
        assert ended["sweep"].seconds == pytest.approx(trials * MINUTE, rel=0.01)


def rounded(node: Node) -> dict[str, Totals]:
    """The sums of what has ended; those of fractions depend on the order in the last bits."""
    fractions = ("held_gpu_seconds", "used_gpu_seconds", "unused_gpu_seconds")
    return {
        each.work: structs.replace(
            each.totals, **{name: round(getattr(each.totals, name), 6) for name in fractions}
        )
        for each in node.answering.answer(0).ended
    }
