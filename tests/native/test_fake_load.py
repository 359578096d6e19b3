"""What devices and processes of the pretended driver do: set, by schedule, and in sum."""

import ctypes
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pynvml
import pytest
from tests.native.agent_node import ready, stay
from tests.native.cuda import Cuda
from tests.native.fake_gpu import FakeGPU
from tests.native.nvml_cases import busy, code, first

HERE = "tests.native.test_fake_load"
INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND, VERSION_MISMATCH = 2, 3, 6, 25
TENSOR, PCIE_TX, PCIE_RX, NO_METRIC = 5, 20, 21, 63


def figures() -> dict[str, Any]:
    """What NVML says of the first device."""
    device = first()
    rates = pynvml.nvmlDeviceGetUtilizationRates(device)
    return {
        "util": rates.gpu,
        "memory-util": rates.memory,
        "power": pynvml.nvmlDeviceGetPowerUsage(device) / 1000,
        "temperature": pynvml.nvmlDeviceGetTemperature(device, 0),
        "sm-clock": pynvml.nvmlDeviceGetClockInfo(device, pynvml.NVML_CLOCK_SM),
        "memory-clock": pynvml.nvmlDeviceGetClockInfo(device, pynvml.NVML_CLOCK_MEM),
        "throttle": pynvml.nvmlDeviceGetCurrentClocksEventReasons(device),
        "older": pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(device),
        "encoder": pynvml.nvmlDeviceGetEncoderUtilization(device)[0],
        "decoder": pynvml.nvmlDeviceGetDecoderUtilization(device)[0],
    }


def test_a_load_that_is_set_is_told(gpu: FakeGPU) -> None:
    gpu.load(0, util=70, memory_util=30, power=310, temperature=81, sm_clock=1200)
    gpu.load(gpu.uuids[0], memory_clock=900, encoder=5, decoder=6, throttle="thermal,power-cap")
    assert gpu.call(f"{HERE}:figures") == {
        "util": 70,
        "memory-util": 30,
        "power": 310,
        "temperature": 81,
        "sm-clock": 1200,
        "memory-clock": 900,
        "throttle": 0x24,
        "older": 0x24,
        "encoder": 5,
        "decoder": 6,
    }


@pytest.mark.parametrize(
    "words",
    [
        ("load", 0, "--util"),
        ("load", 0, "--util", "101"),
        ("load", 0, "--util", "-1"),
        ("load", 0, "--nothing", 1),
        ("load", 0, "--throttle", "thermal,cold"),
        ("load", 9, "--util", 1),
        ("busy", 1, 5),
    ],
)
def test_what_cannot_be_set_is_refused(gpu: FakeGPU, words: tuple[object, ...]) -> None:
    with pytest.raises(AssertionError, match="no such command, device, field, value or process"):
        gpu.control(*words)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no step"),
        ("# nothing\n", "no step"),
        ("0 --util 5\nsoon --util 6\n", "line 2"),
        ("5 --util 5\n4 --util 6\n", "line 2"),
        ("0 --util\n", "line 1"),
        ("0 --util 5\n9 loop\n10 --util 6\n", "line 3"),
        ("0 loop\n", "line 1"),
    ],
)
def test_a_schedule_that_is_wrong_is_refused_with_its_line(
    gpu: FakeGPU, text: str, said: str
) -> None:
    with pytest.raises(AssertionError, match=said):
        gpu.play(0, text)


def trace(moments: list[float]) -> list[list[int]]:
    """Utilisation and temperature at some seconds after now."""
    device, began, found = first(), time.monotonic(), []
    for moment in moments:
        time.sleep(max(0.0, began + moment - time.monotonic()))
        rates = pynvml.nvmlDeviceGetUtilizationRates(device)
        found.append([rates.gpu, pynvml.nvmlDeviceGetTemperature(device, 0)])
    return found


def player(schedule: str, folder: str, program: str) -> list[list[int]]:
    """Play and look from one process, so that both begin at once."""
    import subprocess
    from pathlib import Path

    path = Path(folder, "schedule")
    path.write_text(schedule)
    first()
    subprocess.run([program, "play", "0", path], check=True)
    return trace([0.5, 1.5, 2.5])


@pytest.mark.parametrize(
    ("last", "third"), [("2 loop", [70, 50]), ("2 --util 5\n3 end", [5, 90]), ("", [0, 90])]
)
def test_a_schedule_goes_on_by_itself_and_loops_or_ends(
    gpu: FakeGPU, last: str, third: list[int]
) -> None:
    schedule = f"# a trace\n0 --util 70 --temperature 50\n1 --util 0 --temperature 90\n{last}\n"
    program = str(gpu.build.fakegpu / "fakegpuctl")
    found = gpu.call(f"{HERE}:player", schedule, str(gpu.folder), program)
    assert found == [[70, 50], [0, 90], third]


def test_an_xid_of_a_schedule_comes_at_its_time(gpu: FakeGPU) -> None:
    gpu.call("tests.native.nvml_cases:uuids")  # makes the state
    waiting = gpu.start_call("tests.native.nvml_cases:waits_for_xids")
    assert waiting.stdout
    assert waiting.stdout.readline() == "waiting\n"
    gpu.play(0, "0.2 --xid 13\n0.4 --xid 79\n")
    assert json.loads(waiting.stdout.readline())[:2] == [13, 79]
    waiting.communicate(timeout=60)


def means(seconds: float) -> dict[str, Any]:
    """What lies between two samples, and what NVML answers where there is nothing to tell."""
    device = first()
    supported = pynvml.nvmlGpmQueryDeviceSupport(device).isSupportedDevice
    samples = [pynvml.nvmlGpmSampleAlloc() for _ in range(2)]
    asked = pynvml.c_nvmlGpmMetricsGet_t()
    asked.version, asked.numMetrics = pynvml.NVML_GPM_METRICS_GET_VERSION, 4
    for number, metric in enumerate((TENSOR, PCIE_TX, PCIE_RX, NO_METRIC)):
        asked.metrics[number].metricId = metric
    asked.sample1, asked.sample2 = samples
    unread = code(pynvml.nvmlGpmMetricsGet, asked)
    read = [code(pynvml.nvmlGpmSampleGet, device, samples[0])]
    time.sleep(seconds)
    read.append(code(pynvml.nvmlGpmSampleGet, device, samples[1]))
    got = code(pynvml.nvmlGpmMetricsGet, asked)
    asked.version = 7
    version = code(pynvml.nvmlGpmMetricsGet, asked)
    freed = [code(pynvml.nvmlGpmSampleFree, sample) for sample in samples]
    return {
        "supported": supported,
        "read": read,
        "codes": [unread, got, version, *freed],
        "values": [round(asked.metrics[n].value, 2) for n in range(3)],
        "answers": [asked.metrics[n].nvmlReturn for n in range(4)],
    }


def test_a_device_from_hopper_on_tells_means_between_two_samples(
    fake_gpu: Callable[..., FakeGPU],
) -> None:
    gpu = fake_gpu(capability="9.0")
    gpu.load(0, tensor=40, pcie_tx=100, pcie_rx=7)
    found = gpu.call(f"{HERE}:means", 0.05)
    assert found == {
        "supported": 1,
        "read": [0, 0],
        "codes": [INVALID_ARGUMENT, 0, VERSION_MISMATCH, 0, 0],
        "values": [40, 100, 7],
        "answers": [0, 0, 0, NOT_SUPPORTED],
    }


def test_a_mean_is_over_all_that_a_schedule_did_in_between(
    fake_gpu: Callable[..., FakeGPU],
) -> None:
    gpu = fake_gpu(capability="10.0")
    gpu.play(0, "0 --tensor 80\n0.1 --tensor 0\n0.2 loop\n")
    tensor, *_ = gpu.call(f"{HERE}:means", 0.8)["values"]
    assert 30 < tensor < 50


def test_an_older_device_has_no_such_means(gpu: FakeGPU) -> None:
    found = gpu.call(f"{HERE}:means", 0.0)
    assert (found["supported"], found["read"]) == (0, [NOT_SUPPORTED] * 2)


def works(mib: int, text: str) -> None:
    """Hold memory and keep the device busy: by a call where there is a text."""
    cuda = Cuda()
    cuda.allocate(mib)
    if text:
        library = ctypes.CDLL("libcuda.so.1")
        assert library.fakegpu_busy(b"all of it") == -1
        assert library.fakegpu_busy(text.encode()) == 0
    ready()
    stay()


def seen() -> dict[str, Any]:
    device = first()
    found = busy()
    rates = pynvml.nvmlDeviceGetUtilizationRates(device)
    return {"device": rates.gpu, "processes": sorted(found)}


@contextmanager
def working(gpu: FakeGPU, *busy_texts: str, by_call: bool = False) -> Iterator[list[int]]:
    started = [
        gpu.start_call(f"{HERE}:works", 10, text if by_call else "", FAKEGPU_BUSY=text)
        for text in busy_texts
    ]
    try:
        for each in started:
            assert each.stdout
            assert each.stdout.readline() == "ready\n"
        yield [each.pid for each in started]
    finally:
        for each in started:
            each.kill()
            each.communicate()


@pytest.mark.parametrize("by_call", [False, True])
def test_two_processes_on_one_device_are_as_busy_as_they_say_and_so_is_the_device(
    gpu: FakeGPU, by_call: bool
) -> None:
    with working(gpu, "70", "0", by_call=by_call) as (worker, idler):
        found = gpu.call(f"{HERE}:seen")
        assert found == {"device": 70, "processes": [[worker, 70]]}
        gpu.control("busy", idler, 20)
        assert gpu.call(f"{HERE}:seen")["device"] == 90
        gpu.control("busy", idler, 60)
        assert gpu.call(f"{HERE}:seen")["device"] == 100, "bounded"
    assert gpu.call(f"{HERE}:seen") == {"device": 0, "processes": [NOT_FOUND]}


def test_a_device_is_as_busy_as_was_set_where_that_is_more(gpu: FakeGPU) -> None:
    gpu.load(0, util=85)
    with working(gpu, "70"):
        assert gpu.call(f"{HERE}:seen")["device"] == 85


def test_a_process_works_by_turns(gpu: FakeGPU) -> None:
    with working(gpu, "0.2:80,0.2:0"):
        looks = gpu.call(f"{HERE}:looks_often", 1.0)
        assert set(looks) == {0, 80}
        assert 0.25 < looks.count(80) / len(looks) < 0.75


def looks_often(seconds: float) -> list[int]:
    device, found, until = first(), [], time.monotonic() + seconds
    while time.monotonic() < until:
        found.append(pynvml.nvmlDeviceGetUtilizationRates(device).gpu)
        time.sleep(0.01)
    return found
