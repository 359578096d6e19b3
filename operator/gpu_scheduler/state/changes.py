"""What is new of the state, for whoever plans and for whoever writes statuses.

``version`` grows with every change that could alter a plan. What is touched is each job whose
status may have changed, for a reason that is not kept here.
"""

import asyncio
from collections.abc import Iterable, Sequence, Set

from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.state.queue.waiting import PendingPods


class Changes:
    """Counts versions, and remembers what is touched."""

    def __init__(self, waiting: PendingPods) -> None:
        """Nothing is new; ``waiting`` is told of jobs whose pods may be other ones."""
        self._waiting = waiting
        self._touched: set[JobKey] = set()
        self._touched_pods: dict[JobKey, None] = {}  # the same, with pods that wait
        self._ownerless: dict[PodUID, None] = {}
        self.touched: Set[JobKey] = self._touched
        self.version = 0
        self.some = asyncio.Event()  # wakes who plans, who clears it

    def replan(self, changes: int = 1, *, wake: bool = True) -> None:
        """The next plan may be another one; ``wake``: False while a plan is under way."""
        self.version += changes
        if changes and wake:
            self.some.set()

    def touch(self, key: JobKey) -> None:
        """A job's status may be another one, and what its waiting pods are told."""
        self._touched.add(key)
        if self._waiting.has_pods(key):
            self._touched_pods[key] = None

    def ownerless(self, uid: PodUID) -> None:
        """A pod waits for us and belongs to no workload that is known."""
        self._ownerless[uid] = None

    def members_changed(self, key: JobKey) -> None:
        """A pod of a job changed: what waits of it may depend on that, and its status."""
        self._waiting.members_changed(key)
        self.touch(key)

    def touch_statuses(self, keys: Iterable[JobKey]) -> None:
        """The statuses of jobs may be other ones; what their pods are told is not."""
        self._touched.update(keys)

    def take_touched(self) -> Set[JobKey]:
        """The jobs whose status may be another one, each once."""
        taken = frozenset(self._touched)
        self._touched.clear()
        return taken

    def take_ownerless(self) -> Sequence[PodUID]:
        """Pods that belong to no workload that is known, each once."""
        taken, self._ownerless = tuple(self._ownerless), {}
        return taken

    def take_touched_pods(self) -> Sequence[JobKey]:
        """The jobs whose waiting pods may be told something else, each once."""
        taken, self._touched_pods = tuple(self._touched_pods), {}
        return taken
