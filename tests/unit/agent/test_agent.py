"""The agent's loop with a pretend driver, API server and clock."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.unit.agent.builders import cgroup, container, ordered, orders, proc
from tests.unit.agent.fake_api import FakeApi
from tests.unit.agent.fake_driver import MIB, FakeDriver, gpu
from tests.unit.agent.until import until

from gpu_scheduler.agent.agent import Agent, LookTiming
from gpu_scheduler.agent.driver import DriverError, GpuProcess, Xid
from gpu_scheduler.agent.health import Health
from gpu_scheduler.agent.isolation import IsolationVerdict, verdict
from gpu_scheduler.agent.kernel_limits import KernelLimits
from gpu_scheduler.agent.metrics import AgentMetrics
from gpu_scheduler.agent.pods import Pods
from gpu_scheduler.agent.poll import Poll, Poller
from gpu_scheduler.agent.procfs import ProcFS
from gpu_scheduler.agent.publish import Publisher
from gpu_scheduler.agent.sampler import Sampler
from gpu_scheduler.agent.selftest import SETTLE_SECONDS, Layer, SelftestVerdict
from gpu_scheduler.agent.selftest import verdict as self_test_verdict
from gpu_scheduler.agent.usage import ContainerUse
from gpu_scheduler.agent.watchdog import Watchdog
from gpu_scheduler.api.gpunode import ContainerReport
from gpu_scheduler.kube.unexpected import counts

PID = 4_000_000_000  # no process has it
SETTLE_LOOKS = int(SETTLE_SECONDS / 3)
MAPPED = "7f-80 r-xp 0 08:01 1 /opt/gpu-scheduler/lib/libgpucap.so\n"


class Stage:
    """An agent whose clock moves by ``every`` seconds with each look."""

    def __init__(self, root: Path, every: float = 3.0, answer_seconds: float = 5.0) -> None:
        self.root, self.every, self.now = root, every, 0.0
        self.driver = FakeDriver()
        self.api = FakeApi()
        self.pods = Pods()
        procfs = ProcFS(root)
        sampler = Sampler(self.driver, procfs, Health())
        self.poller = Poller(sampler, procfs, Watchdog(tolerance_mib=512))
        self.publisher = Publisher(self.api, "n1", lambda: self.now)
        self.publisher.take(orders())
        self.metrics = AgentMetrics("n1")
        self.answer_seconds = answer_seconds
        self.agent = self._agent()
        self.agent.reporting = True

    def _agent(self) -> Agent:
        timing = LookTiming(
            sample_seconds=self.every,
            answer_seconds=self.answer_seconds,
            clock=lambda: self.now,
            wall=lambda: f"t{self.now:g}",
        )
        return Agent(self.poller, self.pods, self.publisher, self.metrics, timing)

    def restart(self, found: SelftestVerdict | None) -> None:
        """Another agent goes on from what this one reported, with a self-test of its own."""
        last, self.agent = self.agent.status, self._agent()
        self.agent.self_test = found
        self.agent.go_on(last)

    def told(self) -> tuple[list[str] | None, str | None]:
        """Levels that have failed, and the best that passed, as the GPUNode says."""
        status = self.api.statuses()[-1]
        return status.get("failedIsolation"), status.get("isolation")

    def run_container(
        self, mib: int, *, maps: str = MAPPED, text: str | None = None, kill: bool = False
    ) -> None:
        ours = container(kill=kill)
        self.pods.containers = {ours.pod.uid: (ours,)}
        proc(self.root, PID, maps=maps, text=text)
        self.driver.on = {gpu(0): [GpuProcess(PID, mib * MIB)]}

    async def look(self, times: int = 1) -> None:
        for _ in range(times):
            await self.agent.poll()
            await self.publisher.write()
            self.now += self.every

    @property
    def reports(self) -> list[ContainerReport]:
        return self.agent.status.containers or []


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


async def test_a_quiet_node_is_written_once_and_once_more_when_it_is_known_to_be_quiet(
    stage: Stage,
) -> None:
    stage.run_container(1000)
    await stage.look(20)
    assert len(stage.api.statuses()) == 1
    await stage.look(480)
    assert len(stage.api.statuses()) == 2
    assert [each.compute_percent for each in stage.reports] == [0]
    assert stage.metrics.counts.samples == 500


async def test_an_evader_is_found_within_ten_seconds(stage: Stage) -> None:
    stage.run_container(1000, maps="")
    await stage.look()
    assert [each.isolation for each in stage.reports] == ["unprotected"]
    assert str(PID) in (stage.reports[0].message or "")


async def test_a_container_over_its_cap_is_told_within_three_looks(stage: Stage) -> None:
    stage.run_container(1000)
    await stage.look()
    stage.run_container(30000)
    await stage.look(2)
    assert stage.reports[0].over_cap_since is None
    await stage.look()
    assert stage.reports[0].over_cap_since == "t3"
    assert "30000 MiB" in (stage.reports[0].message or "")
    stage.run_container(100)
    await stage.look(3)
    assert stage.reports[0].over_cap_since is None


async def test_an_xid_is_written_after_one_look(stage: Stage) -> None:
    await stage.look()
    stage.driver.events = [Xid(gpu(1), 79)]
    await stage.look()
    assert [d["healthy"] for d in stage.api.statuses()[-1]["devices"]] == [True, False]


async def test_a_stranger_blocks_its_device_from_the_second_look_on(stage: Stage) -> None:
    stage.run_container(1000, text="0::/user.slice\n")
    await stage.look()
    assert stage.agent.status.devices[0].foreign_processes is None
    await stage.look()
    (stranger,) = stage.agent.status.devices[0].foreign_processes or []
    assert (stranger.pid, stranger.name, stranger.used_mib) == (PID, "python", 1024)
    stage.driver.on = {}
    await stage.look()
    assert stage.agent.status.devices[0].foreign_processes is None


async def test_a_driver_that_fails_leaves_the_devices_unhealthy_and_is_asked_again(
    stage: Stage,
) -> None:
    await stage.look()
    stage.driver.broken = DriverError("Driver Not Loaded")
    await stage.look()
    assert [d.message for d in stage.agent.status.devices] == ["NVML: Driver Not Loaded"] * 2
    stage.driver.broken = None
    await stage.look()
    assert all(d.healthy for d in stage.agent.status.devices)


async def test_being_over_is_not_forgotten_while_the_device_does_not_answer(stage: Stage) -> None:
    stage.run_container(30000, maps="")
    await stage.look(3)
    stage.driver.errors = {gpu(0): DriverError("Unknown Error")}
    await stage.look(5)
    assert stage.reports[0].over_cap_since == "t0"
    assert stage.reports[0].isolation == "unprotected"
    stage.driver.broken = DriverError("Driver Not Loaded")
    await stage.look(5)
    assert stage.reports[0].over_cap_since == "t0"


class Hanging(FakeDriver):
    """Does not answer while it is told to hang."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = threading.Event()
        self.answers.set()

    def count(self) -> int:
        assert self.answers.wait(60), "the test has forgotten the driver"
        return super().count()


async def test_a_driver_that_hangs_makes_the_devices_unhealthy_meanwhile(tmp_path: Path) -> None:
    stage = Stage(tmp_path, answer_seconds=0.05)
    stage.poller.sampler = Sampler(hanging := Hanging(), ProcFS(tmp_path), Health())
    await stage.look()
    hanging.answers.clear()
    looking = asyncio.create_task(stage.agent.poll())
    await until(lambda: stage.agent.stuck)
    assert not looking.done()
    assert {d.message for d in stage.agent.status.devices} == {"NVML has not answered for 0.05 s"}
    hanging.answers.set()
    await looking
    assert not stage.agent.stuck
    assert all(d.healthy for d in stage.agent.status.devices)


class Table:
    """Limits of the driver."""

    def __init__(self) -> None:
        self.hard: dict[str, int] = {}

    def set(self, uuid: str, folder: Path, hard_bytes: int) -> None:
        self.hard[folder.name] = hard_bytes

    def hard_bytes(self, uuid: str, folder: Path) -> int:
        return self.hard.get(folder.name, 0)


async def test_a_new_container_gets_the_drivers_limit_between_two_looks(tmp_path: Path) -> None:
    stage = Stage(tmp_path, every=3600.0)
    table, ours = Table(), container()
    (stage.root / "cgroup" / "kubepods" / "pod1" / ours.own.id).mkdir(parents=True)
    stage.poller.kernel = KernelLimits(table, stage.root / "cgroup")
    running = asyncio.create_task(stage.agent.run())
    await until(lambda: stage.metrics.counts.samples > 0)
    stage.pods.containers = {ours.pod.uid: (ours,)}
    stage.agent.pods_changed()
    await until(lambda: bool(table.hard))
    assert stage.metrics.counts.samples == 1, "the clock stands still: no second look was due"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert table.hard == {ours.own.id: 20000 * MIB}


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Pids of what the policy has killed, as far as the agent knows."""
    pids: list[int] = []
    monkeypatch.setattr(
        "gpu_scheduler.agent.poll.kill",
        lambda procfs, uid, doomed: pids.extend(p.pid for p in doomed) or [p.pid for p in doomed],
    )
    return pids


async def test_the_policy_kill_kills_the_process_and_no_other(
    stage: Stage, killed: list[int]
) -> None:
    stage.run_container(30000)
    proc(stage.root, PID + 1, text=cgroup("9d2f1a5e-1111-4222-8333-444455556666"))
    stage.driver.on[gpu(0)].append(GpuProcess(PID + 1, 30000 * MIB))
    await stage.look(4)
    assert killed == [], "without the policy nothing is killed"
    ours = container(kill=True)
    stage.pods.containers = {ours.pod.uid: (ours,)}
    await stage.look()
    assert killed == [PID]
    assert "by policy kill" in (stage.reports[0].message or "")
    assert stage.metrics.counts.killed == 1


async def test_what_is_killed_is_reported_first(stage: Stage, killed: list[int]) -> None:
    stage.run_container(30000, kill=True)
    await stage.look(3)
    assert stage.reports[0].over_cap_since == "t0"
    assert killed == []
    await stage.look()
    assert killed == [PID]


async def test_before_the_operators_first_word_it_looks_and_judges_nobody(stage: Stage) -> None:
    stage.agent.reporting = False
    proc(stage.root, PID)
    stage.driver.on = {gpu(0): [GpuProcess(PID, 30000 * MIB)]}
    await stage.look(5)
    assert stage.metrics.counts.samples == 5
    assert [d.facts.uuid for d in stage.metrics.sample.devices] == [gpu(0), gpu(1)]
    assert not stage.metrics.usage.foreign
    assert stage.agent.status.devices == []
    assert stage.api.writes == []
    stage.driver.broken = DriverError("Driver Not Loaded")
    await stage.look()
    assert stage.api.writes == []


async def test_the_operators_word_is_read_before_each_look(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    ours = container()
    proc(tmp_path, PID, maps=MAPPED)
    stage.driver.on = {gpu(0): [GpuProcess(PID, 1000 * MIB)]}
    stage.agent._refresh = lambda: stage.pods.take(orders(ordered()), stage.now)
    await stage.look(2)
    assert [each.uid for each in stage.reports] == [ours.pod.uid]
    assert not stage.agent.status.devices[0].foreign_processes


async def test_a_look_that_fails_makes_the_devices_unhealthy_and_the_next_is_as_ever(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.every = 0.0
    await stage.look()
    before = counts["look"]
    real, failed = stage.poller.poll, asyncio.Event()

    def fails(*given: Any) -> Poll:
        failed.set()
        raise RuntimeError("nobody foresaw it")

    monkeypatch.setattr(stage.poller, "poll", fails)
    running = asyncio.create_task(stage.agent.run())
    await until(lambda: not all(d.healthy for d in stage.agent.status.devices))
    assert counts["look"] > before
    monkeypatch.setattr(stage.poller, "poll", real)
    stage.now += 3
    stage.agent.pods_changed()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await stage.look()
    assert all(d.healthy for d in stage.agent.status.devices)


async def test_one_container_that_cannot_be_judged_costs_no_other(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.run_container(1000)
    odd = container(uid="9d2f1a5e-1111-4222-8333-444455556666", container_id="e" * 64)
    stage.pods.containers[odd.pod.uid] = (odd,)

    def judge(use: ContainerUse, **more: Any) -> IsolationVerdict:
        if use.container.pod.uid == odd.pod.uid:
            raise RuntimeError("nobody foresaw it")
        return verdict(use, **more)

    monkeypatch.setattr("gpu_scheduler.agent.poll.verdict", judge)
    before = counts["look"]
    await stage.look()
    found = {each.uid: each.isolation for each in stage.reports}
    assert found == {container().pod.uid: "interposer", odd.pod.uid: "unprotected"}
    assert counts["look"] == before + 1


async def test_a_node_whose_self_test_flaps_goes_on_failing(stage: Stage) -> None:
    failed = self_test_verdict(Layer("interposer", "failed", "got 320 MiB"))
    passed = self_test_verdict(Layer("interposer", "passed", "cap 256 MiB"))
    stage.agent.self_test = failed
    await stage.look()
    for _ in range(3):  # its agent begins anew, with a test that passes and one that does not
        for verdict_ in (passed, failed):
            stage.restart(verdict_)
            await stage.look(SETTLE_LOOKS - 1)
            assert stage.told() == (["interposer"], "none")
    stage.restart(passed)
    await stage.look(SETTLE_LOOKS)
    assert stage.told() == (["interposer"], "none")
    await stage.look()
    assert stage.told() == (None, "interposer")
    stage.restart(passed)
    await stage.look()
    assert stage.told() == (None, "interposer")


async def test_a_node_that_never_failed_is_trusted_at_once(stage: Stage) -> None:
    stage.restart(self_test_verdict(Layer("interposer", "passed", "cap 256 MiB")))
    await stage.look()
    assert stage.told() == (None, "interposer")


async def test_without_a_self_test_nothing_has_failed(stage: Stage) -> None:
    stage.agent.self_test = self_test_verdict(Layer("interposer", "failed", "got 320 MiB"))
    await stage.look()
    stage.restart(None)
    await stage.look()
    assert stage.told() == (None, None)
