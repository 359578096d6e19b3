"""The history's file: what is kept, over restarts and damage, and who has to give way."""

import os
import random
from pathlib import Path

import pytest

from gpu_scheduler.agent.history.columns import RingType
from gpu_scheduler.agent.history.history_clock import HistoryClock
from gpu_scheduler.agent.history.history_file import HistoryError, HistoryFile
from gpu_scheduler.agent.history.slot import LOOK_SECONDS, LOOKS, STEPS, RingOwner, RingSlot

DEVICE = RingOwner(type=RingType.DEVICE, device="GPU-1")
MEGABYTES = 1


class Node:
    """A node whose clocks a test moves."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "history"
        self.boot, self.wall, self.booted = 500.0, 1.8e9, "boot-1"

    def open(self) -> HistoryFile:
        clock = HistoryClock(self.booted, lambda: self.boot, lambda: self.wall)
        return HistoryFile(self.path, MEGABYTES, clock)

    def goes_on(self, seconds: float) -> None:
        self.boot += seconds
        self.wall += seconds

    def restarts(self, seconds_away: float) -> None:
        self.booted += "x"
        self.boot = 20.0
        self.wall += seconds_away


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def share(number: int, work: str = "") -> RingOwner:
    return RingOwner(
        type=RingType.SHARE,
        device="GPU-1",
        container_id=f"{number:064x}",
        pod=f"p-{number}",
        work=work,
    )


def run(node: Node, file: HistoryFile, owner: RingOwner, *ratios: float | None) -> RingSlot:
    """A look for each of these."""
    for busy in ratios:
        node.goes_on(LOOK_SECONDS)
        slot = file.of(owner)
        assert slot is not None
        slot.add(file.look(), {"busy": busy, "memoryMiB": 100.0})
        file.mark()
    found = file.of(owner)
    assert found is not None
    return found


def busy(slot: RingSlot, file: HistoryFile) -> list[float | None]:
    return [values["busy"] for _, values in slot.looks(0, file.look() + 1)]


def test_looks_and_sums_are_there_for_the_next_agent(node: Node) -> None:
    file = node.open()
    slot = run(node, file, share(1), 0.5, None, 0.0, 1.0)
    assert busy(slot, file) == [0.5, None, 0.0, 1.0]
    file.close()
    again = node.open()
    (found,) = again.slots()
    assert found.owner == share(1)
    assert busy(found, again) == [0.5, None, 0.0, 1.0]
    assert (found.sums.seconds, found.sums.busy_seconds) == (30.0, 15.0)
    assert (found.sums.peak_mib, found.sums.idle_seconds) == (100, 0)
    assert sum(found.sums.buckets) == 30


def test_a_gap_is_a_gap(node: Node) -> None:
    file = node.open()
    run(node, file, DEVICE, 0.2)
    node.goes_on(LOOKS * LOOK_SECONDS - LOOK_SECONDS)  # rows of before are where its rows would be
    slot = run(node, file, DEVICE, 0.4)
    numbers = [number for number, _ in slot.looks(0, file.look() + 1)]
    assert numbers == [file.look()]


def test_ten_minutes_leave_their_least_mean_and_most_for_a_week(node: Node) -> None:
    file = node.open()
    start = file.look() // 60 + 1
    while file.look() // 60 < start:
        node.goes_on(LOOK_SECONDS)
    slot = run(node, file, DEVICE, *([0.2] * 30 + [0.8] * 29))
    slot.close_step(start)
    node.goes_on(6 * 86400.0)
    ((number, values),) = slot.steps(0, file.look() // 60 + 1)
    assert number == start
    assert values["busy.min"] == pytest.approx(0.2)
    assert values["busy.max"] == pytest.approx(0.8)
    assert values["busy.mean"] == pytest.approx((30 * 0.2 + 29 * 0.8) / 59, abs=0.003)
    node.goes_on(2 * 86400.0)
    assert not list(slot.steps(0, file.look() // 60 + 1))


@pytest.mark.parametrize("hours", [-1, 0, 1])
def test_a_clock_that_is_set_moves_nothing(node: Node, hours: int) -> None:
    file = node.open()
    run(node, file, DEVICE, 0.1, 0.2)
    node.wall += 3600.0 * hours
    slot = run(node, file, DEVICE, 0.3)
    assert busy(slot, file) == [0.1, 0.2, 0.3]
    file.close()
    node.wall -= 3600.0 * hours
    again = node.open()
    assert busy(run(node, again, DEVICE, 0.4), again) == [0.1, 0.2, 0.3, 0.4]


@pytest.mark.parametrize(("away", "looks"), [(300.0, 30), (-3600.0, 0), (9e9, 0)])
def test_a_node_that_starts_again_knows_how_long_it_was_away(
    node: Node, away: float, looks: int
) -> None:
    """By its wall clock: set back, a moment; far ahead, so long that nothing is left."""
    file = node.open()
    run(node, file, DEVICE, 0.1)
    before = file.look()
    file.close()
    node.restarts(away)
    again = node.open()
    if away > 1e6:
        assert again.look() - before > STEPS * 60
    else:
        assert again.look() - before == looks
    (slot,) = again.slots()
    assert [number for number, _ in slot.looks(0, before + 1)] == [before]


@pytest.mark.parametrize("work", ["", "job-{}", "sweep"])
def test_short_trials_push_out_each_other_alone(work: str, node: Node) -> None:
    """Those of one work, whose sums are in one ring, and jobs of which each has its own."""

    def trial(number: int) -> RingOwner:
        return share(number, work.format(number))

    file = node.open()
    long = run(node, file, trial(0), *([0.5] * 70))
    file.end(long)
    for number in range(1, 10 * file.count):
        file.end(run(node, file, trial(number), 0.5))
        if number == 5 * file.count:
            file.close()
            file = node.open()
    owners = {slot.owner for slot in file.slots()}
    assert trial(0) in owners
    assert trial(10 * file.count - 1) in owners
    assert len(owners) == file.count
    if work == "sweep":
        (sums,) = [s.sums for s in file.slots() if s.owner and s.owner.type is RingType.WORK]
        assert sums.containers == 10 * file.count - len(owners) + 1  # all but whose ring is there


def test_of_long_ones_who_ended_first_gives_way_and_who_runs_never(node: Node) -> None:
    file = node.open()
    for number in range(file.count):
        run(node, file, share(number), *([0.5] * 61))
    assert file.of(DEVICE) is None
    for number in (2, 1):
        slot = file.of(share(number))
        assert slot is not None
        file.end(slot)
        node.goes_on(LOOK_SECONDS)
    assert file.of(DEVICE) is not None
    owners = {slot.owner for slot in file.slots()}
    assert share(2) not in owners
    assert share(1) in owners


def test_who_has_not_ended_after_all_goes_on(node: Node) -> None:
    file = node.open()
    file.end(run(node, file, share(1), 0.5))
    slot = run(node, file, share(1), 0.7)
    assert not slot.last
    assert busy(slot, file) == pytest.approx([0.5, 0.7], abs=0.01)


@pytest.mark.parametrize("seed", range(20))
def test_a_torn_file_says_nothing_wrong(node: Node, seed: int) -> None:
    """Bytes anywhere are others: what is still told is what was, and nobody fails."""
    chance = random.Random(seed)
    file = node.open()
    for number in range(3):
        run(node, file, share(number), *([0.2 * number] * 20))
    told = {slot.owner: dict(slot.looks(0, file.look() + 1)) for slot in file.slots()}
    file.close()
    content = bytearray(node.path.read_bytes())
    used = len(content) if seed % 2 else 3 * RingSlot.SIZE
    for _ in range(chance.randint(1, 50)):
        at = chance.randrange(used)
        length = chance.randint(1, 400)
        content[at : at + length] = chance.randbytes(len(content[at : at + length]))
    node.path.write_bytes(content)
    again = node.open()
    for slot in again.slots():
        assert slot.owner in told
        found = dict(slot.looks(0, again.look() + 1))
        assert found.items() <= told[slot.owner].items()
        assert slot.sums.seconds <= 200.0
    run(node, again, share(9), 0.5)


@pytest.mark.parametrize("content", [b"somebody's notes", b"GPUHIST\0" + b"\1" * 40])
def test_what_is_no_history_of_ours_is_set_aside(node: Node, content: bytes) -> None:
    node.path.write_bytes(content)
    file = node.open()
    run(node, file, DEVICE, 0.5)
    assert node.path.with_name("history.other").read_bytes() == content


def test_nobody_else_may_read_it_and_no_link_is_followed(node: Node, tmp_path: Path) -> None:
    node.open().close()
    assert node.path.stat().st_mode & 0o777 == 0o600
    node.path.unlink()
    target = tmp_path / "elsewhere"
    target.write_bytes(b"precious")
    node.path.symlink_to(target)
    with pytest.raises(HistoryError):
        node.open()
    assert target.read_bytes() == b"precious"


def test_it_takes_its_whole_size_at_once(node: Node) -> None:
    file = node.open()
    stat = os.stat(node.path)
    assert stat.st_size == stat.st_blocks * 512 == 4096 + file.count * RingSlot.SIZE <= 1e6
