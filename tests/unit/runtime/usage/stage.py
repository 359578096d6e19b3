"""A cluster whose agents say what a test has them say."""

from collections.abc import Callable
from dataclasses import replace as replace_parts
from typing import Any

from msgspec.structs import replace
from tests.unit.runtime.fake_client import FakeClient
from tests.unit.state.builders import USABLE_MIB, half, make_job, make_node, make_pod

from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.runtime.common import build as common
from gpu_scheduler.runtime.common.events import Events
from gpu_scheduler.runtime.common.settings import OperatorSettings
from gpu_scheduler.runtime.informers.custom_resources import CustomResources
from gpu_scheduler.runtime.usage.minute import Minute
from gpu_scheduler.runtime.usage.seen import SeenUse
from gpu_scheduler.state.pods.pod import PodRecord
from gpu_scheduler.usage.answer import BUCKETS, AgentUsage, DeviceNow, EndedUse, ShareUse, Totals

NODE = "a"


class RecordedEvents(Events):
    """Events that nobody writes."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str, str]] = []

    def say(self, subject: Any, kind: str, reason: str, message: str) -> None:
        self.said.append((f"{subject.kind}/{subject.name}", reason, message))


class UsageStage:
    """One node with an agent; a GPUJob and its Job, of which a test makes pods run."""

    def __init__(self, client: Any = None, monotonic: Callable[[], float] | None = None) -> None:
        self.seconds = 1000.0
        self.client = client or FakeClient(_made)
        self.monotonic = monotonic or (lambda: self.seconds)
        clock = Clock(self.monotonic, lambda: 1_700_000_000 + self.monotonic())
        self.common = common.build(self.client, OperatorSettings(), clock, lambda job: None)
        self.events = RecordedEvents()
        self.common = replace_parts(self.common, events=self.events)
        self.state = self.common.state
        self.state.nodes.changed(make_node(NODE))
        self.state.nodes.reported(NODE, (), {})
        self.resources = CustomResources(self.state, changed=lambda key: None)
        self.seen = SeenUse(self.state.pods.known)
        self.minute = Minute(self.common, self.seen)
        self.look = 0
        self.shares: dict[str, ShareUse] = {}
        self.gone: dict[str, Totals] = {}

    def job(self, phase: str = "Running", version: int = 1) -> None:
        self.resources.gpujob(
            {
                "metadata": {
                    "name": "job",
                    "namespace": "team-a",
                    "uid": "gpujob-uid",
                    "generation": 1,
                    "resourceVersion": str(version),
                    "creationTimestamp": "2026-01-01T00:00:00Z",
                },
                "spec": {"image": "i", "gpu": 0.5, "completions": 4, "parallelism": 2},
                "status": {"phase": phase},
            }
        )
        self.state.job_changed(make_job(owner_uid="gpujob-uid"))
        for record in self.state.gpujobs.values():
            record.status = {"phase": phase}

    def runs(self, name: str = "job-0", version: int = 1) -> PodRecord:
        pod = make_pod(name, node=NODE, devices=half(), phase="Running", version=version)
        record = self.state.pod_changed(pod)
        assert record is not None
        self.shares[record.uid] = ShareUse(
            device="0",
            pod_uid=record.uid,
            container="main",
            work="gpujob-uid",
            share=0.5,
            cap_mib=USABLE_MIB // 2,
            device_mib=USABLE_MIB,
            compute_capability="8.0",
            windows=(),
            totals=Totals(containers=1),
            cpu_milli=1500.0,
            cpu_limit_milli=4000.0,
        )
        return record

    def works(self, pod: PodRecord, seconds: int, busy: float = 0.7, mib: int = 1000) -> None:
        """It did so for so long."""
        share = self.shares[pod.uid]
        bucket = min(int(busy * BUCKETS), BUCKETS - 1)
        buckets = [0] * BUCKETS
        buckets[bucket] = seconds
        more = Totals(
            seconds=seconds,
            busy_seconds=busy * seconds,
            held_gpu_seconds=share.share * seconds,
            used_gpu_seconds=min(busy, share.share) * seconds,
            buckets=tuple(buckets),
            peak_mib=mib,
        )
        idle = (share.idle_seconds or 0) + seconds if busy == 0 else 0
        self.shares[pod.uid] = replace(
            share,
            totals=share.totals + more,
            busy=busy,
            memory_mib=float(mib),
            idle_seconds=idle,
            ever_busy=share.ever_busy or busy > 0,
            age_seconds=share.age_seconds + seconds,
        )

    def ends(self, pod: PodRecord, *, version: int = 2) -> None:
        """Its agent has seen it end, and so has the API server."""
        sums = self.shares.pop(pod.uid).totals
        self.gone["gpujob-uid"] = self.gone.get("gpujob-uid", Totals()) + sums
        self.state.pod_changed(
            make_pod(pod.name, node=NODE, devices=half(), phase="Succeeded", version=version)
        )

    def answers(self, seconds: float = 60.0, devices: tuple[DeviceNow, ...] = ()) -> None:
        """So much later its agent says it."""
        self.seconds += seconds
        self.look += 1
        ended = tuple(EndedUse(work=work, totals=sums) for work, sums in self.gone.items())
        shares = tuple(self.shares.values())
        answer = AgentUsage(look=self.look, devices=devices, shares=shares, ended=ended)
        self.seen.take(NODE, answer, self.monotonic())

    def status(self) -> dict[str, Any]:
        """What the object says that was written last."""
        sent = self.client.of("PATCH", "/gpuusages/current/status")
        found: dict[str, Any] = sent[-1].body["status"]
        return found

    def workload(self) -> dict[str, Any]:
        (found,) = self.status()["workloads"]
        return dict(found)


async def follow(before: UsageStage) -> UsageStage:
    """The next leader, that lists what this one wrote."""
    item = {
        "apiVersion": "gpu-scheduler.io/v1alpha1",
        "kind": "GPUUsage",
        "metadata": {"name": "current", "namespace": "team-a", "uid": "usage-uid"},
        "status": before.status(),
    }

    def reply(sent: Any) -> Any:
        if sent.method == "GET":
            return {"metadata": {"resourceVersion": "1"}, "items": [item]}
        return {}

    after = UsageStage(FakeClient(reply))
    after.seconds = before.seconds
    after.look = before.look
    after.gone = before.gone
    after.job()
    for uid in before.shares:
        after.runs(before.state.pods.known[uid].name)
    after.shares = before.shares
    await after.minute.restore()
    return after


def _made(sent: Any) -> Any:
    return {"metadata": {"uid": "usage-uid"}} if sent.method == "POST" else {}
