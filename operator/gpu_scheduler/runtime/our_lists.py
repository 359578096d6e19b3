"""Where our lists of our own kinds ended: kopf watches from there instead of listing once more.

Its list would come while the leader plans for the first time and tell of each object at a third of
a millisecond; what was deleted between the two lists nobody would hear of. Filled by each resync,
asked by kopf's session in place of a list.
"""

import asyncio
from collections.abc import Mapping

from gpu_scheduler.api.names import GROUP, VERSION

_OURS = f"/apis/{GROUP}/{VERSION}/"


class OurLists:
    """Versions of lists, by their paths; each is told once."""

    def __init__(self) -> None:
        """Nothing is listed yet."""
        self._made = asyncio.Event()
        self._versions: dict[str, str] = {}

    def made(self, versions: Mapping[str, str]) -> None:
        """All lists are complete and taken in."""
        self._versions.update(versions)
        self._made.set()

    async def version(self, path: str) -> str:
        """The version to watch a collection of ours from; empty: it has to be listed.

        Waits until the first lists are complete. Who asks again has found that it is too old.
        """
        if not path.startswith(_OURS):
            return ""
        await self._made.wait()
        return self._versions.pop(path, "")
