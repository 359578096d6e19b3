"""Pictures of the cluster: at most one a second, the same for all who look meanwhile."""

from collections.abc import Callable

from gpu_scheduler.dashboard.picture import Picture

SECONDS = 1.0  # that a picture may be old


class Pictures:
    """Made when somebody looks, on the event loop, where the state may be read."""

    def __init__(self, make: Callable[[], Picture | None], clock: Callable[[], float]) -> None:
        """``make``: one of this moment; None: this replica does not lead."""
        self._make = make
        self._clock = clock
        self._made: tuple[float, Picture] | None = None

    async def __call__(self) -> Picture | None:
        """The newest."""
        now = self._clock()
        if self._made is None or now - self._made[0] >= SECONDS:
            picture = self._make()
            self._made = None if picture is None else (now, picture)
        return None if self._made is None else self._made[1]
