"""A history on a disk that fills up and gets room again, and what may be told of it.

As a program it plays that on a real file system, which it expects to be a small one of its own.
"""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from msgspec import structs
from tests.unit.agent.builders import container, sample, seen, use

from gpu_scheduler.agent.container_host import ContainerHostUse
from gpu_scheduler.agent.driver import Load
from gpu_scheduler.agent.history.columns import RingType
from gpu_scheduler.agent.history.history_clock import HistoryClock
from gpu_scheduler.agent.history.recorder import FILE, Recorder
from gpu_scheduler.agent.history.slot import LOOK_SECONDS, LOOKS
from gpu_scheduler.agent.usage import ContainerUse

MEGABYTES = 2
_PAGE = 4096
_HOST = ContainerHostUse(500.0, 2048.0, 0.1, 0.0)


def busy_at(look: int) -> float:
    """What the work did: another value each time."""
    return look % 10 / 10


class Node:
    """A node whose work is known, so that whatever its history tells can be judged."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now = folder, 1000.0
        self.looked: set[int] = set()
        self._clock = self._new_clock()
        self.recorder = self.starts()

    def starts(self) -> Recorder:
        self.recorder = Recorder(self.folder, MEGABYTES, self._new_clock(), self._host)
        return self.recorder

    def _new_clock(self) -> HistoryClock:
        return HistoryClock("boot", lambda: self.now, lambda: self.now)

    def _host(self, ids: Collection[str], now: float) -> Mapping[str, ContainerHostUse]:
        return dict.fromkeys(ids, _HOST)

    def looks(self, times: int, of: str = "job-uid") -> None:
        for _ in range(times):
            self.now += LOOK_SECONDS
            look = int(self._clock.now()) // LOOK_SECONDS
            if of:
                self.looked.add(look)
            busy = busy_at(look)
            both = sample()
            device = replace(both.devices[0], load=Load(busy))
            uses = [_doing(busy, of)] if of else []
            self.recorder.take(replace(both, devices=(device,)), uses, self.now)

    @property
    def tells(self) -> bool:
        """Whether the leader is told anything."""
        return self.recorder.answering.missing(self.now) == ""

    def wrong(self) -> list[str]:
        """What its history and its answer tell that was not so."""
        file = self.recorder.file
        assert file is not None
        found: list[str] = []
        for slot in file.slots():
            assert slot.owner is not None
            if slot.owner.type is RingType.CONTAINER:
                continue
            for number, values in slot.looks(0, file.look() + 1):
                if number not in self.looked and slot.owner.type is RingType.SHARE:
                    found.append(f"{slot.owner.type.name} at {number}: nobody was there")
                if abs((values["busy"] or 0.0) - busy_at(number)) > 0.01:
                    found.append(f"{slot.owner.type.name} at {number}: {values['busy']}")
        told = self.recorder.answering.answer(0)
        for share in told.shares:
            if share.totals.seconds > LOOK_SECONDS * len(self.looked):
                found.append(f"{share.totals.seconds} seconds")
            if abs((share.busy or 0.0) - busy_at(told.look)) > 0.01:
                found.append(f"now {share.busy}")
        return found


def _doing(busy: float, work: str) -> ContainerUse:
    made = container()
    return use(
        replace(seen(100, 1000), busy_ratio=busy),
        of=replace(made, pod=structs.replace(made.pod, work=work)),
    )


def fill(path: Path) -> None:
    """Take all the room that there is."""
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(_PAGE))
        except OSError:
            return


def give_back_zeros(path: Path) -> None:
    """As a file system that copies on writing: what was kept free for a file is no more."""
    content = path.read_bytes()
    for at in range(0, len(content), _PAGE):
        if not any(content[at : at + _PAGE]):
            where = ["-o", str(at), "-l", str(_PAGE)]
            subprocess.run(["fallocate", "--punch-hole", *where, path], check=True)


def begins_without_room(folder: Path) -> dict[str, object]:
    """A disk that is full before there is a history."""
    filler = folder / "filler"
    filler.write_bytes(bytes(MEGABYTES * 1_000_000))
    node = Node(folder)
    free = os.statvfs(folder).f_bavail
    node.looks(30)
    found: dict[str, object] = {
        "told": node.tells,
        "missing": node.recorder.answering.missing(node.now),
        "taken": free - os.statvfs(folder).f_bavail,
    }
    filler.unlink()
    node.looks(10)
    return {**found, "toldLater": node.tells, "wrong": node.wrong()}


def fills_up_below(folder: Path) -> dict[str, object]:
    """Writes into the file itself fail, some of a look's and not others."""
    node = Node(folder)
    node.looks(5)
    give_back_zeros(folder / FILE)
    filler = folder / "filler"
    fill(filler)
    times = 0
    while node.tells and times < 2 * LOOKS:
        node.looks(1)
        times += 1
    node.looks(2 * LOOKS)
    found: dict[str, object] = {
        "told": node.tells,
        "missing": node.recorder.answering.missing(node.now),
    }
    filler.unlink()
    node.looks(10)
    return {**found, "toldLater": node.tells, "wrong": node.wrong()}


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
    scene = {"begins": begins_without_room, "fills": fills_up_below}[sys.argv[1]]
    sys.stdout.write(json.dumps(scene(Path(sys.argv[2]))))
