"""The gauges of a device as NVML tells them: reasons in words, what is unknown, buffers freed."""

from collections.abc import Callable
from typing import Any

import pynvml
import pytest

from gpu_scheduler.agent.driver import DeviceLostError, Load
from gpu_scheduler.agent.nvml import NvmlDriver

SW_POWER_CAP, HW_SLOWDOWN, SW_THERMAL, HW_THERMAL, POWER_BRAKE = 0x04, 0x08, 0x20, 0x40, 0x80
IDLE, APPLICATION_CLOCKS, SYNC_BOOST, DISPLAY = 0x01, 0x02, 0x10, 0x100


class Library:
    """Answers by name; what has none is not in this driver."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: dict[str, Callable[..., Any]] = {}
        self.allocated: list[object] = []
        for name in (each for each in dir(pynvml) if each.startswith(("nvmlDevice", "nvmlGpm"))):
            monkeypatch.setattr(pynvml, name, self._function(name))
        monkeypatch.setattr(NvmlDriver, "_handle", lambda self, index: "handle")
        monkeypatch.setattr(pynvml, "nvmlShutdown", lambda: None)

    def _function(self, name: str) -> Callable[..., Any]:
        def ask(*arguments: Any) -> Any:
            if name not in self.answers:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
            return self.answers[name](*arguments)

        return ask

    def say(self, name: str, answer: Any) -> None:
        self.answers[name] = lambda *_: answer

    def fail(self, name: str, code: int) -> None:
        def error(*_: Any) -> Any:
            raise pynvml.NVMLError(code)

        self.answers[name] = error

    def monitor(self, value: float = 0.0, answer: int = pynvml.NVML_SUCCESS) -> None:
        """GPM that says the same of each metric."""

        def allocate() -> object:
            self.allocated.append(object())
            return self.allocated[-1]

        def between(asked: Any) -> Any:
            assert asked.sample1 is not asked.sample2
            for number in range(asked.numMetrics):
                asked.metrics[number].value = value
                asked.metrics[number].nvmlReturn = answer
            return asked

        support = pynvml.c_nvmlGpmSupport_t()
        support.isSupportedDevice = 1
        self.say("nvmlGpmQueryDeviceSupport", support)
        self.answers |= {
            "nvmlGpmSampleAlloc": allocate,
            "nvmlGpmSampleGet": lambda _, sample: sample,
            "nvmlGpmMetricsGet": between,
            "nvmlGpmSampleFree": self.allocated.remove,
        }


class FakeStruct:
    """In place of a ctypes struct, whose members take no ordinary object."""

    def __init__(self) -> None:
        self.version = self.numMetrics = 0
        self.sample1: object = None
        self.sample2: object = None
        self.metrics = [pynvml.c_nvmlGpmMetric_t() for _ in range(8)]


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    monkeypatch.setattr(pynvml, "c_nvmlGpmMetricsGet_t", FakeStruct)
    return Library(monkeypatch)


@pytest.fixture
def driver() -> NvmlDriver:
    found = NvmlDriver()
    found._open = True
    return found


def test_what_a_driver_does_not_have_is_unknown(library: Library, driver: NvmlDriver) -> None:
    assert driver.load(0) == Load()


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (0, set()),
        (IDLE | APPLICATION_CLOCKS | SYNC_BOOST | DISPLAY, set()),
        (SW_POWER_CAP | IDLE, {"power-cap"}),
        (SW_THERMAL, {"thermal"}),
        (HW_THERMAL | HW_SLOWDOWN, {"thermal"}),
        (HW_SLOWDOWN, {"power-brake"}),
        (SW_THERMAL | HW_SLOWDOWN, {"thermal", "power-brake"}),
        (POWER_BRAKE, {"power-brake"}),
        (POWER_BRAKE | HW_THERMAL | SW_POWER_CAP, {"power-brake", "thermal", "power-cap"}),
    ],
)
@pytest.mark.parametrize("name", ["Event", "Throttle"])
def test_reasons_are_told_in_words_also_by_drivers_that_name_them_otherwise(
    library: Library, driver: NvmlDriver, name: str, bits: int, words: set[str]
) -> None:
    library.say(f"nvmlDeviceGetCurrentClocks{name}Reasons", bits)
    assert driver.load(0).throttled == words


def test_coders_and_clocks(library: Library, driver: NvmlDriver) -> None:
    library.say("nvmlDeviceGetEncoderUtilization", [25, 167000])
    library.answers["nvmlDeviceGetClockInfo"] = lambda _, kind: 1000 + kind
    assert driver.load(0) == Load(
        encoder_ratio=0.25,
        sm_clock_mhz=1000 + pynvml.NVML_CLOCK_SM,
        memory_clock_mhz=1000 + pynvml.NVML_CLOCK_MEM,
    )


def test_means_need_two_looks(library: Library, driver: NvmlDriver) -> None:
    library.monitor(40.0)
    assert driver.load(0).tensor_ratio is None
    found = driver.load(0)
    assert found.tensor_ratio == 0.4
    assert found.pcie_rx_bytes_per_second == found.pcie_tx_bytes_per_second == 40 << 20
    assert found.nvlink_rx_bytes_per_second == found.nvlink_tx_bytes_per_second == 40 << 20
    assert len(library.allocated) == 2


def test_a_metric_that_is_not_there_is_unknown(library: Library, driver: NvmlDriver) -> None:
    library.monitor(40.0, pynvml.NVML_ERROR_NOT_SUPPORTED)
    driver.load(0)
    assert driver.load(0).tensor_ratio is None


def test_a_sample_that_could_not_be_read_is_compared_with_nothing(
    library: Library, driver: NvmlDriver
) -> None:
    library.monitor(40.0)
    driver.load(0)
    read = library.answers["nvmlGpmSampleGet"]
    library.fail("nvmlGpmSampleGet", pynvml.NVML_ERROR_UNKNOWN)
    assert driver.load(0).tensor_ratio is None
    library.answers["nvmlGpmSampleGet"] = read
    assert driver.load(0).tensor_ratio is None
    assert driver.load(0).tensor_ratio == 0.4


def test_closing_frees_every_buffer(library: Library, driver: NvmlDriver) -> None:
    library.monitor()
    for index in (0, 1, 0, 1):
        driver.load(index)
    assert len(library.allocated) == 4
    driver.close()
    assert library.allocated == []


def test_a_gauge_that_fails_costs_itself_and_a_lost_device_is_told(
    library: Library, driver: NvmlDriver
) -> None:
    library.fail("nvmlDeviceGetClockInfo", pynvml.NVML_ERROR_UNKNOWN)
    assert driver.load(0) == Load()
    library.fail("nvmlDeviceGetClockInfo", pynvml.NVML_ERROR_GPU_IS_LOST)
    with pytest.raises(DeviceLostError):
        driver.load(0)


def test_what_blocks_for_long_is_never_asked(library: Library, driver: NvmlDriver) -> None:
    def blocks(*_: Any) -> Any:
        raise AssertionError("it counts for 20 ms while its caller waits")

    library.answers["nvmlDeviceGetPcieThroughput"] = blocks
    driver.load(0)
