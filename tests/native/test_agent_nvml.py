"""The agent's NVML against the pretended one: inventory, processes, health."""

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from tests.native.agent_node import ready, stay
from tests.native.cuda import Cuda
from tests.native.fake_gpu import MIB, FakeGPU

from gpu_scheduler.agent.driver import DriverError
from gpu_scheduler.agent.health import Health
from gpu_scheduler.agent.nvml import NvmlDriver
from gpu_scheduler.agent.process import processes_now
from gpu_scheduler.agent.procfs import ProcFS
from gpu_scheduler.agent.sampler import Sampler
from gpu_scheduler.agent.settings import AgentSettings

FakeGPUs = Callable[..., FakeGPU]


def inventory() -> list[dict[str, Any]]:
    driver = NvmlDriver()
    driver.open()
    found = []
    for index in range(driver.count()):
        facts = driver.facts(index)
        assert facts.memory is not None
        load = driver.load(index)
        found.append(
            {
                "uuid": facts.uuid,
                "index": facts.index,
                "model": facts.model,
                "capability": facts.compute_capability,
                "total_mib": facts.memory.total_bytes // MIB,
                "reserved_mib": facts.memory.reserved_bytes // MIB,
                "mig": facts.mig,
                "driver": driver.version(),
                "busy": load.busy_ratio,
                "watts": load.power_watts,
                "celsius": load.temperature_celsius,
            }
        )
    driver.close()
    return found


def test_devices_are_told_with_total_and_reserved_memory(fake_gpu: FakeGPUs) -> None:
    gpu = fake_gpu(devices=2)
    gpu.set(gpu.uuids[1], "gpu-percent", 97)
    gpu.set(gpu.uuids[1], "milliwatts", 250500)
    gpu.set(gpu.uuids[1], "temperature", 61)
    first, second = gpu.call("tests.native.test_agent_nvml:inventory")
    assert first == {
        "uuid": gpu.uuids[0],
        "index": 0,
        "model": "NVIDIA A100-PCIE-40GB",
        "capability": "8.0",
        "total_mib": 40960,
        "reserved_mib": 512,
        "mig": False,
        "driver": "570.86.15",
        "busy": 0.0,
        "watts": first["watts"],
        "celsius": first["celsius"],
    }
    assert (second["index"], second["uuid"]) == (1, gpu.uuids[1])
    assert (second["busy"], second["watts"], second["celsius"]) == (0.97, 250.5, 61.0)


def loads(seconds: list[float]) -> list[dict[str, Any]]:
    """The gauges of the first device, after each of these pauses, and after a new opening."""
    driver = NvmlDriver()
    driver.open()
    found: list[dict[str, Any]] = []
    for pause in seconds:
        time.sleep(pause)
        load = asdict(driver.load(0))
        reasons = load.pop("throttled")
        found.append(load | {"throttled": None if reasons is None else sorted(reasons)})
    driver.close()
    driver.open()
    found.append(asdict(driver.load(0)) | {"throttled": None})
    driver.close()
    return found


def test_gauges_of_a_device_from_hopper_on(fake_gpu: FakeGPUs) -> None:
    gpu = fake_gpu(capability="9.0")
    gpu.load(0, util=70, memory_util=30, tensor=40, power=310, temperature=83, sm_clock=1100)
    gpu.load(0, memory_clock=2619, throttle="hw-thermal,power-cap", pcie_rx=2, pcie_tx=1)
    gpu.load(0, encoder=10, decoder=20)
    first, second, anew = gpu.call("tests.native.test_agent_nvml:loads", [0.0, 0.05])
    assert second == {
        "busy_ratio": 0.7,
        "power_watts": 310.0,
        "temperature_celsius": 83.0,
        "memory_busy_ratio": 0.3,
        "tensor_ratio": pytest.approx(0.4),
        "sm_clock_mhz": 1100,
        "memory_clock_mhz": 2619,
        "throttled": ["power-cap", "thermal"],
        "pcie_rx_bytes_per_second": pytest.approx(2 * MIB),
        "pcie_tx_bytes_per_second": pytest.approx(MIB),
        "nvlink_rx_bytes_per_second": None,
        "nvlink_tx_bytes_per_second": None,
        "encoder_ratio": 0.1,
        "decoder_ratio": 0.2,
    }
    means = ("tensor_ratio", "pcie_rx_bytes_per_second", "pcie_tx_bytes_per_second")
    assert first == second | dict.fromkeys(means), "means need two looks"
    assert [anew[name] for name in means] == [None] * 3, "a new opening begins anew"


def test_an_older_device_does_not_tell_means(gpu: FakeGPU) -> None:
    gpu.load(0, tensor=40, pcie_rx=2)
    *_, second, _ = gpu.call("tests.native.test_agent_nvml:loads", [0.0, 0.05])
    assert second["tensor_ratio"] is second["pcie_rx_bytes_per_second"] is None
    assert (second["throttled"], second["sm_clock_mhz"]) == ([], 1410)


def hold(mib: int) -> None:
    cuda = Cuda()
    cuda.allocate(mib)
    ready()
    stay()


def holders() -> list[tuple[int, int | None]]:
    driver = NvmlDriver()
    driver.open()
    found = [(p.pid, p.used_bytes) for p in driver.processes(0)]
    driver.close()
    return found


@pytest.mark.parametrize("known", [True, False])
def test_processes_are_told_with_their_pid_and_memory_if_it_is_known(
    fake_gpu: FakeGPUs, known: bool
) -> None:
    gpu = fake_gpu() if known else fake_gpu(na="used")
    children = [gpu.start_call("tests.native.test_agent_nvml:hold", mib) for mib in (100, 200)]
    try:
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        found = dict(gpu.call("tests.native.test_agent_nvml:holders"))
        sizes = [400 * MIB, 500 * MIB] if known else [None, None]
        assert found == dict(zip((child.pid for child in children), sizes, strict=True))
    finally:
        for child in children:
            child.kill()
            child.communicate()
    assert gpu.call("tests.native.test_agent_nvml:holders") == []


def on_the_node() -> list[dict[str, Any]]:
    return processes_now(AgentSettings(node="a", orders_file="/nowhere"))


def test_whoever_asks_in_the_agents_pod_gets_a_look_of_its_own(gpu: FakeGPU) -> None:
    child = gpu.start_call("tests.native.test_agent_nvml:hold", 100)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        (found,) = gpu.call("tests.native.test_agent_nvml:on_the_node")
        assert (found["gpu"], found["uuid"], found["pid"]) == (0, gpu.uuids[0], child.pid)
        assert (found["memoryMiB"], found["pod"]) == (400, None)
        assert found["command"].startswith("python")
    finally:
        child.kill()
        child.communicate()


def busy() -> list[list[float]] | None:
    """Pids and shares; None where the driver cannot tell."""
    driver = NvmlDriver()
    driver.open()
    found, _ = driver.busy_by_pid(0, 0)
    return None if found is None else [[pid, share] for pid, share in found.items()]


def test_how_busy_a_process_is(gpu: FakeGPU) -> None:
    child = gpu.start_call("tests.native.test_agent_nvml:hold", 1)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        assert gpu.call("tests.native.test_agent_nvml:busy") == [], "nobody is: known, and nothing"
        gpu.control("busy", child.pid, 42)
        assert gpu.call("tests.native.test_agent_nvml:busy") == [[child.pid, 0.42]]
        gpu.configure(na="busy")
        assert gpu.call("tests.native.test_agent_nvml:busy") is None
    finally:
        child.kill()
        child.communicate()


class Watching:
    """Looks of a sampler in another process, told to break the devices in between."""

    def __init__(self) -> None:
        self.sampler = Sampler(NvmlDriver(), ProcFS(), Health())
        self.now = 0.0

    def messages(self, seconds: float = 3.0) -> list[str | None]:
        sample = self.sampler.sample(self.now)
        self.now += seconds
        return [sample.problem] if sample.problem else [d.message for d in sample.devices]


def watch(folder: str, steps: list[list[Any]]) -> list[list[str | None]]:
    """Look, and before each further look do one step with fakegpuctl."""
    import subprocess

    watching = Watching()
    found = [watching.messages(10.0)]
    for step in steps:
        subprocess.run([folder + "/fakegpuctl", *(str(word) for word in step)], check=True)
        found.append(watching.messages(10.0))
    return found


def watched(gpu: FakeGPU, *steps: tuple[Any, ...]) -> list[list[str | None]]:
    folder = str(gpu.build.fakegpu)
    found: list[list[str | None]] = gpu.call("tests.native.test_agent_nvml:watch", folder, steps)
    return found


def test_a_fatal_xid_is_seen_at_the_next_look_and_sticks(fake_gpu: FakeGPUs) -> None:
    gpu = fake_gpu(devices=2)
    first, *_, after, later = watched(
        gpu,
        ("xid", gpu.uuids[1], 45),
        ("xid", gpu.uuids[1], 31),
        ("xid", gpu.uuids[1], 79),
        ("xid", gpu.uuids[0], 13),
    )
    assert first == [None, None]
    assert after == later == [None, "XID 79: the GPU has fallen off the bus"]


def test_many_events_at_once_are_all_read(gpu: FakeGPU) -> None:
    found = watched(gpu, *[("xid", gpu.uuids[0], 13)] * 5, ("xid", gpu.uuids[0], 48))
    assert found[-1] == ["XID 48: double-bit ECC error"]


def test_a_lost_device_is_unhealthy_and_comes_back(fake_gpu: FakeGPUs) -> None:
    gpu = fake_gpu(devices=2)
    well, lost, back = watched(
        gpu, ("set", gpu.uuids[0], "lost", 1), ("set", gpu.uuids[0], "lost", 0)
    )
    assert well == back == [None, None]
    assert lost == ["NVML: GPU is lost", None]


def test_an_xid_of_a_device_that_was_lost_is_the_cause_that_is_told(gpu: FakeGPU) -> None:
    *_, lost = watched(gpu, ("xid", gpu.uuids[0], 79), ("set", gpu.uuids[0], "lost", 1))
    assert lost == ["XID 79: the GPU has fallen off the bus; GPU is lost"]


def rows() -> list[int | None]:
    driver = NvmlDriver()
    driver.open()
    vitals = driver.vitals(0)
    driver.close()
    return [vitals.remapped_after_corrected, vitals.remapped_after_uncorrected]


def test_remapped_rows_are_told_by_their_errors(gpu: FakeGPU) -> None:
    gpu.set(gpu.uuids[0], "remapped-rows", 3)
    assert gpu.call("tests.native.test_agent_nvml:rows") == [0, 3]


def test_what_the_driver_remembers_counts_while_it_says_so(gpu: FakeGPU) -> None:
    told = {
        ("ecc-uncorrected", 2): "2 uncorrectable ECC errors since the last reset",
        ("ecc-corrected", 2): None,
        ("remap-failed", 1): "a bad memory row could not be remapped",
        ("remap-pending", 1): None,
        ("recovery-action", 1): "the driver asks for a GPU reset",
        ("recovery-action", 2): "the driver asks for a reboot of the node",
    }
    steps = []
    for field, number in told:
        steps += [("set", gpu.uuids[0], field, number), ("set", gpu.uuids[0], field, 0)]
    well, *found = watched(gpu, *steps)
    assert well == [None]
    assert found[0::2] == [[message] for message in told.values()]
    assert found[1::2] == [[None]] * len(told), "mended"


def without_a_driver(folder: str, text: str) -> list[list[str | None]]:
    from pathlib import Path

    watching = Watching()
    found = [watching.messages()]
    Path(folder, "config").write_text(text)
    return [*found, watching.messages()]


def test_a_driver_that_comes_later_is_found(gpu: FakeGPU) -> None:
    config = gpu.folder / "config"
    text = config.read_text()
    config.unlink()
    before, after = gpu.call("tests.native.test_agent_nvml:without_a_driver", str(gpu.folder), text)
    assert before[0].startswith("NVML: ")
    assert after == [None]


def test_a_machine_without_nvml_says_so() -> None:
    with pytest.raises(DriverError, match="NVML Shared Library Not Found"):
        NvmlDriver().open()


def sample_for_ever() -> None:
    watching = Watching()
    watching.messages()
    ready()
    while True:
        watching.messages()
        time.sleep(0.01)


def test_a_killed_agent_leaves_nothing_on_the_devices(gpu: FakeGPU) -> None:
    agent = gpu.start_call("tests.native.test_agent_nvml:sample_for_ever")
    assert agent.stdout is not None
    agent.stdout.readline()
    assert gpu.used_mib() == 0, "the agent holds no GPU memory"
    assert gpu.state()["processes"] == []
    agent.kill()
    agent.communicate()
    assert gpu.state()["processes"] == []
    assert gpu.call("tests.native.test_agent_nvml:inventory")[0]["index"] == 0
