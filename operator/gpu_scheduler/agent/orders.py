"""The operator's orders as they lie in a file, which the kubelet keeps as the annotation is.

Read before every look and a few times a second between two, so that a new pod is known before its
processes are judged. A text that cannot be read changes nothing: the agent goes on with what it
knew.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NoReturn

from gpu_scheduler.api import orders
from gpu_scheduler.api.orders import BadOrdersError, Orders
from gpu_scheduler.kube.unexpected import unexpected

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.25


class OrdersFile:
    """Follows the file; ``followers`` are told of every new text that can be read."""

    def __init__(
        self,
        path: Path,
        *followers: Callable[[Orders], None],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._path = path
        self._followers = followers
        self._sleep = sleep
        self._text = b""

    async def run(self) -> NoReturn:
        """Read for ever."""
        while True:
            self.read()
            await self._sleep(_POLL_SECONDS)

    def read(self) -> None:
        """Tell what is new, if anything is."""
        try:
            text = self._path.read_bytes()
        except OSError:
            return  # not yet, or not just now: the kubelet replaces a link
        if not text or text == self._text:
            return
        self._text = text
        try:
            found = orders.parse(text)
        except BadOrdersError as error:
            log.warning("%s; going on with what was known", error)
            return
        for follower in self._followers:
            try:
                follower(found)
            except Exception:
                unexpected("orders", self._path)
