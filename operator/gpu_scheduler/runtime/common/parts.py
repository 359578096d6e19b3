"""The parts of a leader as tasks of one group: none of them ends in silence.

An exception of a part ends them all, and with them the leader: what one object can cause is caught
where it is dealt with, and of anything else a fresh leader knows nothing. A task group alone takes
a part that was cancelled from inside, by a future of its own, for one that is done.
"""

import asyncio
from collections.abc import Coroutine
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")


class Parts(asyncio.TaskGroup):
    """A task group whose tasks do not end by themselves.

    Raises:
        ExceptionGroup: of what parts raised; ``RuntimeError`` of one that ended otherwise.
    """

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        """Start a part."""
        return super().create_task(_unending(coro), name=name, context=context)


async def _unending(part: Coroutine[Any, Any, T]) -> T:
    called = getattr(part, "__qualname__", "a part")
    try:
        await part
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise RuntimeError(f"{called} was cancelled from inside") from error
    raise RuntimeError(f"{called} ended by itself")
