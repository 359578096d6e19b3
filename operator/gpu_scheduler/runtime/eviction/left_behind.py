"""For how long pods whose owner is gone are counted on to go: ``state.pods.bereft``.

The garbage collector takes them, a few in a second where thousands of GPUJobs are deleted at once.
Who has not begun to go a minute after it was last seen to take one, or ten minutes after the pod
was found so, stays where it is: the pod says so, and gives back what its project borrows as others
do.
"""

from collections.abc import Callable
from typing import NoReturn

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.runtime.common.poll import poll_for_ever
from gpu_scheduler.state.cluster_state import ClusterState

_CHECK_SECONDS = 5.0
IDLE_SECONDS = 60.0  # in which the garbage collector takes none
MOST_SECONDS = 600.0


class LeftBehind:
    """Gives up on pods that do not go."""

    def __init__(self, state: ClusterState, *, clock: Callable[[], float]) -> None:
        """``clock``: monotonic seconds."""
        self._state = state
        self._clock = clock
        self._since: dict[PodUID, float] = {}
        self._taken = 0.0  # when one was last seen to go

    async def run(self) -> NoReturn:
        """Check for ever."""
        about = "pods whose owner is gone"
        await poll_for_ever(self.check, seconds=_CHECK_SECONDS, loop="left behind", about=about)

    def check(self) -> None:
        """Look once."""
        now, there = self._clock(), self._state.bereft.following
        if self._since.keys() - there:
            self._taken = now
        self._since = {uid: self._since.get(uid, now) for uid in there}
        for uid, since in self._since.items():
            if now - since >= MOST_SECONDS or now - max(since, self._taken) >= IDLE_SECONDS:
                self._state.give_up_on(uid)
        self._since = {uid: at for uid, at in self._since.items() if uid in there}
