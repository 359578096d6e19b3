"""A loop that checks something again and again, and that no mistake of one check ends.

Run as a task of the leader by whoever has a ``check``.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NoReturn

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.failures import LastWords
from gpu_scheduler.kube.unexpected import unexpected

log = logging.getLogger(__name__)


async def poll_for_ever(
    check: Callable[[], Awaitable[None] | None],
    *,
    seconds: float,
    loop: str,
    about: str,
    at_once: bool = False,
) -> NoReturn:
    """Check every ``seconds``; what a check raises is noted (``kube.unexpected``).

    What the API server answers, again and again, is said once. ``at_once``: the first comes now.

    Raises:
        NotLeader: the fence has closed.
    """
    failure = LastWords(asyncio.get_running_loop().time)
    pause = 0.0 if at_once else seconds
    while True:
        await asyncio.sleep(pause)
        pause = seconds
        try:
            done = check()
            if done is not None:
                await done
        except errors.NotLeader:
            raise
        except errors.ApiError as error:
            if failure.news(error):
                log.warning("%s: %s", about, error)
        except Exception:
            unexpected(loop, about)
