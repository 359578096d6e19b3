"""What a leader knows before it plans for the first time, and in which order it learns it.

Lists are consistent reads made after the API server has accepted the term, so they hold all that an
earlier leader has written. Nothing is placed before these are complete:

- pods, whose annotations are the only ledger, and nodes with their GPUNodes: or a device is
  promised twice, or by a name that its agent does not know;
- GPUProjects, GPUClasses and Jobs: or a pod is charged to nobody, and a quota exceeded;
- GPUJobs, those that wait included: or who was listed first starts before who is first. They come
  before Jobs and pods, because some look at a pod once and want to know whose it is.

All else comes when it comes and counts from then on: Namespaces, ResourceQuotas, Leases of agents,
stored results of sweeps (no trial starts before those are read). kopf lists nothing: it watches
from where our lists ended.
"""

import asyncio
import gc
import itertools
import logging
from collections.abc import Sequence
from typing import Any, NoReturn

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.kube.reflector import Reflector
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.informers.our_lists import OurLists

log = logging.getLogger(__name__)

_BACKOFF = Backoff(0.2, 4.0)


class FirstLook:
    """Lists everything, our own kinds also now and then."""

    def __init__(
        self,
        lists: OurLists,
        reflectors: Sequence[Reflector[Any]],
        resync_seconds: float,
    ) -> None:
        """``reflectors``: of what has to be known first; they go on for ever."""
        self._lists = lists
        self._reflectors = reflectors
        self._resync_seconds = resync_seconds

    async def ours(self) -> None:
        """List our own objects until that has worked.

        Raises:
            NotLeader: the fence has closed.
        """
        for attempt in itertools.count():
            delay = _BACKOFF.delay_seconds(attempt)
            try:
                return await self._lists.all()
            except errors.NotLeader:
                raise
            except errors.ApiError as error:
                if not attempt:  # once, however often it is tried again
                    log.warning("listing our objects: %s; trying again", error)
            except Exception:
                unexpected("resync", f"our objects (again in {delay:.1f} s)")
            await asyncio.sleep(delay)

    async def rest(self, group: asyncio.TaskGroup) -> None:
        """Follow all others from now on, in tasks of the group; return once they are listed."""
        for reflector in self._reflectors:
            group.create_task(reflector.run())
        for reflector in self._reflectors:
            await reflector.synced.wait()
        # What is known now lives long: spare the collector the walk over it, also this once. Lists
        # leave no garbage that it would find.
        gc.freeze()

    async def run(self) -> NoReturn:
        """List our own objects every ``resync_seconds``, and where that is asked for."""
        while True:
            await self._lists.due(self._resync_seconds)
            await self.ours()
