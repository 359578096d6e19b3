"""A loop that looks at something again and again, and that no mistake of one look ends.

Run as a task of the leader by whoever has a ``check``.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NoReturn

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.unexpected import unexpected


async def poll_for_ever(
    poll: Callable[[], Awaitable[None]], *, seconds: float, loop: str, about: str
) -> NoReturn:
    """Look every ``seconds``; what a look raises is noted (``kube.unexpected``).

    Raises:
        NotLeader: the fence has closed.
    """
    while True:
        await asyncio.sleep(seconds)
        try:
            await poll()
        except errors.NotLeader:
            raise
        except Exception:
            unexpected(loop, about)
