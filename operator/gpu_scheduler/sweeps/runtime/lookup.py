"""Asks the API server about trials that are over and whose pod nobody has seen.

A Job's news may come before those of its pods, so a trial is looked up only after a while; and a
pod may have been deleted before anybody could read it, which no watch ever tells. One list for all
such trials of a Job.
"""

import logging
from collections.abc import Callable
from typing import NoReturn

import msgspec

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.failures import Failures
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.kube.paths import core
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.common.poll import poll_for_ever
from gpu_scheduler.sweeps.runtime.trials import Trials

log = logging.getLogger(__name__)

OVERDUE_SECONDS = 3.0
_TICK_SECONDS = 1.0
_JOB_UID = "batch.kubernetes.io/controller-uid"


class _Pods(msgspec.Struct, frozen=True):
    items: list[Pod] = []


class Lookup:
    """Looks after trials that nobody explains."""

    def __init__(self, client: Client, trials: Trials, clock: Callable[[], float]) -> None:
        """``trials`` says which, and is told what was found; ``clock``: monotonic seconds."""
        self._client = client
        self._trials = trials
        self._failures: Failures[str] = Failures(clock)  # by Job

    async def run(self) -> NoReturn:
        """Look for ever; ends with NotLeader when the fence closes."""
        await poll_for_ever(
            self.once, seconds=_TICK_SECONDS, loop="lookup", about="what is overdue"
        )

    async def once(self) -> None:
        """Look up what is overdue now."""
        for sweep, job, trials in self._trials.overdue(OVERDUE_SECONDS):
            if not self._failures.may_try(job.uid):
                continue
            try:
                found = await self._client.get(
                    core("pods", job.namespace), _Pods, labelSelector=f"{_JOB_UID}={job.uid}"
                )
                self._trials.resolve(sweep, job, trials, found.items)
                self._failures.over(job.uid)
            except errors.NotLeader:
                raise
            except errors.ApiError as error:
                if self._failures.note(job.uid, error):
                    log.info("%s: looking for pods of %s: %s", sweep.key, job.name, error)
            except Exception:  # whoever may make pods may write anything into their annotations
                unexpected("lookup", f"{sweep.key}: pods of {job.name}")
