"""By default once a minute: what work did, what to change about it, and GPUUsage as it is then."""

import asyncio
from collections.abc import Collection, Mapping
from typing import NoReturn

from gpu_scheduler.api.advice import MOST, Advice
from gpu_scheduler.api.gpujob import FINISHED
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.runtime.common.build import CommonParts
from gpu_scheduler.runtime.common.poll import poll_for_ever
from gpu_scheduler.runtime.common.work_name import GPUJOB
from gpu_scheduler.runtime.status.pod_advice import PodAdvice
from gpu_scheduler.runtime.usage.advice_told import AdviceTold
from gpu_scheduler.runtime.usage.advising import Adviser, price_of
from gpu_scheduler.runtime.usage.earlier_runs import EarlierRuns, comparable, workers_of
from gpu_scheduler.runtime.usage.gpu_seconds import GpuSeconds
from gpu_scheduler.runtime.usage.kept_work import Advised, KeptWork, stamp
from gpu_scheduler.runtime.usage.seen import SeenUse
from gpu_scheduler.runtime.usage.sums import job_usage
from gpu_scheduler.runtime.usage.usage_objects import UsageObjects
from gpu_scheduler.runtime.usage.works import LiveWork, live_works
from gpu_scheduler.state.jobs.job import job_key


class Minute:
    """Looks for ever."""

    def __init__(self, common: CommonParts, seen: SeenUse) -> None:
        """Nothing is read or written yet."""
        self._common = common
        self._seen = seen
        self._adviser = Adviser(common.settings.idle_seconds)
        self._earlier = EarlierRuns()
        self.told = AdviceTold(common.events, common.state.changes)
        self.pod_advice = PodAdvice(common.state, clock=common.clock.monotonic)
        self.objects = UsageObjects(
            common.client,
            common.clock,
            terminating=common.state.namespaces.terminating,
            over=self._over,
        )
        self.gpu_seconds = GpuSeconds(
            common.state, common.settings.idle_seconds, common.clock.monotonic
        )
        self.headlines: Mapping[str, str] = {}
        """The rule that stands at the head of what is said of work, by its key."""

    async def run(self) -> NoReturn:
        """Look for ever."""
        await self.restore()
        seconds = self._common.settings.usage_seconds
        await poll_for_ever(
            self.look, seconds=seconds, loop="usage", about="all work", at_once=True
        )

    async def restore(self) -> None:
        """Go on from what another leader wrote.

        Raises:
            NotLeader: the fence has closed.
        """
        await self.objects.restore()
        for key, shown in self.objects.held():
            advised = Advised.of(shown)
            self._adviser.take_over(key, advised)
            self.told.take_over(key, advised)

    async def look(self) -> None:
        """Look now.

        Raises:
            NotLeader: the fence has closed.
        """
        now = self._common.clock.monotonic()
        works = await live_works(self._common.state, self._seen, now)
        await self.gpu_seconds.settle(works.values())
        await self._look_for_earlier_runs(works)
        headlines: dict[str, str] = {}

        def told(work: LiveWork, now: float) -> Advised | None:
            if not work.shares:
                return None
            key, found = work.name.key, self._advice(work, now)
            self.told.take(work, found, now)
            if work.name.kind != GPUJOB:
                pods = [pod for pod, _ in work.pods]
                self.pod_advice.take(pods, found[0] if found else None)
            if found:
                headlines[key] = found[0].rule
            return Advised(found, self._adviser.since(key), self.told.events(key, now))

        over = await self.objects.update(works, self._seen, told)
        self.headlines = headlines
        await asyncio.sleep(0)
        self._tell_statuses(over)
        self._adviser.keep(works)
        self.pod_advice.keep({pod.uid for work in works.values() for pod, _ in work.pods})
        lately = works.keys() | self.objects.lately()
        self.told.keep(lately)
        await asyncio.sleep(0)
        self._seen.keep_ended(lately)
        await self.objects.write()

    def _tell_statuses(self, over: Collection[str]) -> None:
        """Have those look again that ended before their agents had told the rest of it.

        A hundredth more or less is not worth a write.
        """
        changed: list[JobKey] = []
        jobs = {job.uid: job for job in self._common.state.gpujobs.values()} if over else {}
        for job in (jobs[uid] for uid in over if uid in jobs):
            now = job_usage(*self._seen.totals(job.uid))
            told = job.status.get("usage") or {}
            known = int(told.get("gpuSeconds") or 0), int(told.get("peakMiB") or 0)
            if now is not None and (
                now.gpu_seconds > known[0] * 1.01 or (now.peak_mib or 0) > known[1]
            ):
                changed.append(job.key)

        self._common.state.changes.touch_statuses(changed)

    async def _look_for_earlier_runs(self, works: Mapping[str, LiveWork]) -> None:
        devices = self._common.state.nodes.agents.devices
        one_model = len({each.model for there in devices.values() for each in there}) <= 1
        jobs = (work.job for work in works.values() if work.name.kind == GPUJOB)
        if any(workers_of(job) > 1 and comparable(job, one_model=one_model) for job in jobs):
            known = self._common.state.gpujobs.values()
            await self._earlier.look(known, self._common.clock.now(), one_model=one_model)

    def _advice(self, work: LiveWork, now: float) -> list[Advice]:
        model = self._model(work)
        price = price_of(self._common.state.classes.catalogue, model)
        earlier = self._earlier.of(work.job) if work.name.kind == GPUJOB else None
        found = self._adviser.findings(work, model, price, now, earlier)
        return [
            Advice(
                rule=str(each.rule), since=stamp(since), message=each.message, command=each.command
            )
            for each, since in found[:MOST]
        ]

    def _model(self, work: LiveWork) -> str:
        pod, shares = work.pods[0]
        devices = self._common.state.nodes.agents.devices.get(pod.node, ())
        of = {device.id: device.model for device in devices}
        return next((of[share.device] for share in shares if share.device in of), "")

    def _over(self, kept: KeptWork, namespace: str) -> bool:
        """A GPUJob that has not ended may get GPUs again; of others nobody knows."""
        shown = kept.shown
        if shown.kind != GPUJOB:
            return True
        job = self._common.state.gpujobs.get(job_key(namespace, shown.name))
        return job is None or job.uid != shown.uid or job.status.get("phase") in FINISHED
