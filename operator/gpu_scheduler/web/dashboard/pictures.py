"""Pictures of the replica that leads here; None while none does."""

from collections.abc import Callable

from gpu_scheduler.dashboard.picture import Picture
from gpu_scheduler.dashboard.reading.picture_maker import PictureMaker
from gpu_scheduler.runtime.operator import Operator


class Pictures:
    """``await pictures()`` is the newest."""

    def __init__(self, leading: Callable[[], Operator | None]) -> None:
        """``leading``: who leads here and knows the cluster."""
        self._leading = leading
        self._maker: PictureMaker | None = None

    def leads(self) -> bool:
        """Whether this replica does."""
        return self._leading() is not None

    async def __call__(self) -> Picture | None:
        """At most a second old, and the same for all who ask meanwhile."""
        leader = self._leading()
        if leader is None:
            return None
        if self._maker is None:  # a process leads once
            self._maker = PictureMaker(leader)
        return await self._maker.look()
