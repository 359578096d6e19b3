"""Ten thousand jobs of a minute in a namespace, beside one that ran for long the day before."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import orjson
import pytest
from tests.unit.runtime.fake_client import FakeClient

from gpu_scheduler.api.gpuusage import MOST_BYTES, GPUUsageStatus
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.runtime.common.work_name import GPUJOB, WorkName
from gpu_scheduler.runtime.usage.held import Held
from gpu_scheduler.runtime.usage.usage_objects import UsageObjects
from gpu_scheduler.runtime.usage.works import LiveWork
from gpu_scheduler.state.jobs.job import GPUJobRecord, job_key
from gpu_scheduler.usage.answer import Totals

MINUTE, DAY = 60.0, 86400.0
NAMESPACE = "team-a"
TRIALS, AT_ONCE = 10_000, 100


class Leader:
    """Time goes by as a test says."""

    def __init__(self, seconds: float, stored: Mapping[str, Any] | None = None) -> None:
        self.seconds = seconds
        self.client = FakeClient(self._answer)
        self._stored = stored
        self._totals: dict[str, Totals] = {}
        self.objects = UsageObjects(
            cast(Client, self.client),
            Clock(lambda: self.seconds, lambda: 1_700_000_000 + self.seconds),
            terminating=(),
            over=lambda kept, namespace: True,
        )

    def _answer(self, sent: Any) -> Any:
        meta = {"name": "current", "namespace": NAMESPACE, "uid": "usage-uid"}
        if sent.method == "GET":
            items = [{"metadata": meta, "status": self._stored}] if self._stored else []
            return {"metadata": {"resourceVersion": "1"}, "items": items}
        return {"metadata": meta}

    async def minute(self, *names: str) -> None:
        """These hold GPUs in it."""
        self.seconds += MINUTE
        for name in names:
            known = self._totals.get(name, Totals(containers=1))
            self._totals[name] = known + Totals(seconds=MINUTE, busy_seconds=MINUTE / 2)
        works = {name: self._work(name) for name in names}
        await self.objects.update(works, self, lambda work, now: None)
        await self.objects.write()

    def _work(self, name: str) -> LiveWork:
        key = job_key(NAMESPACE, name)
        job = GPUJobRecord(key, NAMESPACE, name, name, 1, "", False, None)
        work = WorkName(name, GPUJOB, name)
        held = Held(None, PodUID(f"{name}-0"), work, key, "a", (), 500, (), 0.0)
        return LiveWork(work, job, [held], [], [], 500)

    def sums(self, work: str) -> Totals:
        return self._totals[work]

    def by_role(self, work: str) -> Mapping[str, Totals]:
        return {}

    def status(self) -> dict[str, Any]:
        sent = self.client.of("PATCH", "/gpuusages/current/status")
        found: dict[str, Any] = sent[-1].body["status"]
        return found

    def known(self, names: Iterable[str]) -> int:
        return sum(self.objects.kept(NAMESPACE, name) is not None for name in names)


@pytest.mark.long
async def test_the_job_of_yesterday_is_still_there() -> None:
    """Its object has no room for all of them, and the leader remembers no more than a number."""
    leader = Leader(1000.0)
    for _ in range(180):
        await leader.minute("long")
    await leader.minute()
    leader.seconds += DAY
    trials = [f"trial-{number}" for number in range(TRIALS)]
    for first in range(0, TRIALS, AT_ONCE):
        await leader.minute(*trials[first : first + AT_ONCE])
    for _ in range(12):
        await leader.minute()
    status = GPUUsageStatus.model_validate(leader.status())
    assert len(orjson.dumps(status.to_json())) < MOST_BYTES + 1024
    long, *others = status.workloads
    assert (long.name, long.state) == ("long", "Ended")
    assert long.busy.mean == 50
    assert long.curve is not None
    assert {each.name for each in others[:AT_ONCE]} == set(trials[-AT_ONCE:])
    assert status.omitted == TRIALS - len(others)
    assert leader.known(trials) == len(others)

    another = Leader(leader.seconds, leader.status())
    await another.objects.restore()
    await another.minute("new")
    status = GPUUsageStatus.model_validate(another.status())
    assert [each.name for each in status.workloads[:2]] == ["new", "long"]
    assert status.omitted >= TRIALS - len(others)
    another.seconds += 8 * DAY
    await another.minute("new")
    status = GPUUsageStatus.model_validate(another.status())
    assert ([each.name for each in status.workloads], status.omitted) == (["new"], 0)
