"""Looks every ten seconds where the GPUs are, and keeps it: charts of the cluster and of projects.

Written as often as GPUUsages into one object, by default once a minute, so a change of leader loses
a minute of the fine chart and nothing that shows in the coarse one.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import NoReturn

from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.failures import Failures
from gpu_scheduler.runtime.common.build import CommonParts
from gpu_scheduler.runtime.common.pending import Pending
from gpu_scheduler.runtime.common.poll import poll_for_ever
from gpu_scheduler.runtime.usage.charting.chart import CLUSTER, Charts, Figures
from gpu_scheduler.runtime.usage.charting.chart_object import ChartObject
from gpu_scheduler.runtime.usage.cluster_use import ClusterUses
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.usage.figures import HELD, ClusterUse, GpuState

log = logging.getLogger(__name__)

_PERIOD_SECONDS = 10.0
_TRY_AGAIN_SECONDS = 30.0


class ChartKeeper:
    """Looks for ever."""

    def __init__(self, common: CommonParts, cluster: ClusterUses) -> None:
        """Nothing is known yet; ``cluster``: what GPUs do."""
        self._common = common
        self._cluster = cluster
        self._object = ChartObject(common.client, common.settings.lease_namespace)
        self._failures: Failures[str] = Failures(common.clock.monotonic)
        self._written = 0.0  # monotonic seconds
        self.charts = Charts()

    def borrowed_since(self, project: str, now: float) -> float | None:
        """Since when it borrows without a break; None: not known. ``now``: epoch seconds."""
        chart = self.charts.by_name.get(project)
        return chart.since("borrowed", now) if chart is not None else None

    async def run(self) -> NoReturn:
        """Look for ever.

        Raises:
            NotLeader: the fence has closed.
        """
        await self.restore()
        await poll_for_ever(
            self.look, seconds=_PERIOD_SECONDS, loop="usage", about="charts", at_once=True
        )

    async def restore(self) -> None:
        """Go on with what a leader before this one kept; until then nothing is overwritten."""
        while True:
            try:
                self.charts = await self._object.read()
                self._failures.over(CLUSTER)
                return
            except errors.NotLeader:
                raise
            except errors.ApiError as error:
                if self._failures.note(CLUSTER, error):
                    log.warning("charts cannot be read, so none is kept: %s", error)
            await asyncio.sleep(_TRY_AGAIN_SECONDS)

    async def look(self) -> None:
        """Look now, and write where that is due.

        Raises:
            NotLeader: the fence has closed.
        """
        use, pending = await self._cluster.look(), await self._common.pending()
        at, clock = self._common.clock.now(), self._common.clock.monotonic()
        self.charts.add(at, figures(self._common.state, use, pending, self._idle_seconds))
        due = clock - self._written >= self._common.settings.usage_seconds
        if not due or not self._failures.may_try(CLUSTER):
            return
        self._written = clock
        self.charts.forget(at)
        try:
            await self._object.write(self.charts, self._common.clock.stamp())
            self._failures.over(CLUSTER)
        except errors.NotLeader:
            raise
        except errors.ApiError as error:
            if self._failures.note(CLUSTER, error):
                log.warning("charts not written: %s", error)

    @property
    def _idle_seconds(self) -> float:
        return self._common.settings.idle_seconds


def figures(
    state: ClusterState, use: ClusterUse, pending: Pending, idle_seconds: float
) -> Mapping[str, Figures]:
    """In GPUs, of the cluster and of each project; None: not known."""
    found: dict[str, dict[str, float | None]] = {}
    held = state.projects.holdings(state.ledger.held_milli)
    for name, record in state.projects.records.items():
        milli = held.get(name, 0)
        found[str(name)] = {
            "gpus": record.project.quota_milli / DEVICE_MILLI,
            "held": milli / DEVICE_MILLI,
            "busy": 0.0,
            "idle": 0.0,
            "waiting": pending.milli[name] / DEVICE_MILLI,
            "borrowed": max(0, milli - record.project.quota_milli) / DEVICE_MILLI,
        }
    for work in use.work:
        project = found.get(work.project)
        if project is None:
            continue
        if work.used is None or project["busy"] is None:
            project["busy"] = None
        else:
            project["busy"] += work.used
        if work.idle_seconds is not None and work.idle_seconds >= idle_seconds:
            project["idle"] = (project["idle"] or 0.0) + work.gpus
    whole = {each: use.gpus.get(each, 0.0) for each in GpuState}
    all_held = sum(whole[each] for each in HELD)
    known = all_held - whole[GpuState.UNKNOWN]
    found[CLUSTER] = {
        "gpus": sum(whole.values()),
        "held": all_held,
        "busy": whole[GpuState.BUSY] if known > 0 or not all_held else None,
        "idle": whole[GpuState.IDLE],
        "waiting": sum(pending.milli.values()) / DEVICE_MILLI,
        "borrowed": sum(each["borrowed"] or 0.0 for each in found.values()),
    }
    return found
