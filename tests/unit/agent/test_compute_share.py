"""The share of time that containers had, as it is told: when, how, and when not."""

from dataclasses import replace

import pytest
from tests.unit.agent.builders import POD, container, seen
from tests.unit.agent.fake_driver import gpu

from gpu_scheduler.agent.compute_share import FIRST_SECONDS, WINDOW_SECONDS, ComputeShares
from gpu_scheduler.agent.pods import GpuContainer
from gpu_scheduler.agent.sampler import SLOW_SECONDS
from gpu_scheduler.agent.usage import ContainerUse, Use

KEY = (POD, 0)
LOOK_SECONDS = 3.0


def working(*ratios: float | None, of: GpuContainer | None = None) -> ContainerUse:
    """A container with one process for each of these shares, all on one device."""
    processes = tuple(replace(seen(100 + i), busy_ratio=each) for i, each in enumerate(ratios))
    return ContainerUse(of or container(), (Use(gpu(0), 20000, processes),))


class Node:
    """Looks every three seconds."""

    def __init__(self) -> None:
        self.shares, self.now = ComputeShares(), 1000.0
        self.told: list[int | None] = []

    def look(self, seconds: float, *uses: ContainerUse) -> int | None:
        """For so long; what is told of the first pod in the end."""
        until = self.now + seconds
        while self.now < until:
            self.shares.update(uses, self.now)
            now = self.shares.percent().get(KEY)
            if not self.told or now != self.told[-1]:
                self.told.append(now)
            self.now += LOOK_SECONDS
        return self.told[-1]


def test_it_is_told_after_a_minute_and_not_before() -> None:
    node = Node()
    assert node.look(FIRST_SECONDS, working(0.42)) is None
    assert node.look(2 * SLOW_SECONDS, working(0.42)) == 40


def test_equal_work_is_told_once() -> None:
    node = Node()
    for _ in range(30):
        for share in (0.38, 0.44, 0.35, 0.47):  # around a step's edge
            node.look(SLOW_SECONDS, working(share))
    node.look(3 * WINDOW_SECONDS, working(0.36))
    assert node.told == [None, 40]


def test_other_work_is_told_at_the_end_of_a_window() -> None:
    node = Node()
    node.look(WINDOW_SECONDS, working(0.9))
    node.look(10 * WINDOW_SECONDS, working(0.2))
    assert node.told[:2] == [None, 90] and node.told[-1] == 20
    assert len(node.told) <= 4, "at most one in between, of the window that has both"


def test_all_containers_of_a_node_are_told_together() -> None:
    node, told = Node(), set()
    one, other = working(0.5), working(0.5, of=container(uid="other"))
    node.look(100, one)
    node.look(WINDOW_SECONDS, one, other)
    begun = node.now
    one, other = working(0.9), working(0.1, of=container(uid="other"))
    for _ in range(400):
        node.look(LOOK_SECONDS, one, other)
        told.add(tuple(sorted(node.shares.percent().values())))
    assert node.now - begun > 3 * WINDOW_SECONDS
    assert told <= {(50, 50), (10, 90)} | {(x, y) for x in (20, 30, 40) for y in (60, 70, 80)}
    assert len(told) <= 3, "never one without the other"


def test_an_old_answer_of_the_driver_counts_once() -> None:
    node = Node()
    node.look(LOOK_SECONDS, working(1.0))  # the answer of the next ten seconds, too
    node.look(FIRST_SECONDS + SLOW_SECONDS, working(0.0))
    assert node.told[-1] == 20, "one of six looks"


@pytest.mark.parametrize(
    ("ratios", "percent"),
    [((), 0), ((0.0,), 0), ((0.3, 0.4), 70), ((0.8, 0.7), 100), ((0.5, None), None)],
    ids=["no process", "idle", "two processes", "more than all", "one is not known"],
)
def test_the_processes_of_a_container_add_up(
    ratios: tuple[float | None, ...], percent: int | None
) -> None:
    node = Node()
    assert node.look(FIRST_SECONDS + 2 * SLOW_SECONDS, working(*ratios)) == percent


def test_of_several_devices_the_mean_is_told() -> None:
    node, busy, idle = Node(), replace(seen(), busy_ratio=0.8), replace(seen(), busy_ratio=0.0)
    both = (Use(gpu(0), 20000, (busy,)), Use(gpu(1), 20000, (idle,)))
    assert node.look(100, ContainerUse(container(), both)) == 40
    lost = (both[0], replace(both[1], readable=False))
    other = Node()
    assert other.look(100, ContainerUse(container(), lost)) is None


def test_what_the_driver_cannot_tell_any_more_is_not_told_any_more() -> None:
    node = Node()
    assert node.look(100, working(0.5)) == 50
    assert node.look(3 * WINDOW_SECONDS, working(None)) is None


def test_of_one_look_nothing_is_told() -> None:
    node = Node()
    node.look(100, working(0.5))
    node.look(2 * WINDOW_SECONDS, working(None))
    assert node.look(2 * SLOW_SECONDS, working(1.0)) is None, "it is known again since just now"
    assert node.look(FIRST_SECONDS, working(1.0)) == 100
    other = Node()
    other.look(FIRST_SECONDS + SLOW_SECONDS, working(None))
    assert other.look(2 * SLOW_SECONDS, working(1.0)) is None


def test_a_container_that_started_again_is_another_one() -> None:
    node = Node()
    first = container(container_id="")
    assert node.look(30, working(0.9, of=first)) is None
    assert node.look(60, working(0.9)) == 90, "its id was not known at first"
    again = container(container_id="d" * 64)
    assert node.look(FIRST_SECONDS, working(0.1, of=again)) is None
    assert node.look(2 * SLOW_SECONDS, working(0.1, of=again)) == 10


def test_one_that_is_gone_is_forgotten() -> None:
    node = Node()
    node.look(100, working(0.5))
    assert node.look(SLOW_SECONDS) is None
    assert node.look(FIRST_SECONDS, working(0.1)) is None
