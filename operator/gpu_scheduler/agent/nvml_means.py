"""Means of a device's figures between two calls: GPU performance monitoring, from Hopper on.

Source: "GPM Functions" of NVIDIA's NVML reference: two samples, read at least 100 ms apart, and
what lies between them, with an answer of its own for each metric. The buffers are ours to free.
"""

import contextlib
from typing import Any

import pynvml

from gpu_scheduler.agent.driver import DriverError
from gpu_scheduler.agent.nvml_calls import call, told

_METRICS = (
    pynvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL,  # per cent
    pynvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC,  # MiB a second
    pynvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC,
    pynvml.NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC,
    pynvml.NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC,
)


class NvmlMeans:
    """Of one device, for as long as NVML is open."""

    def __init__(self, handle: Any) -> None:
        """Nothing is allocated where the driver or the device has no such thing.

        Raises:
            DeviceLostError: the device is gone.
        """
        self._handle = handle
        self._samples: list[Any] = []  # two: the older, and the one to read next
        self._has_older = False
        self._asked: Any = None
        support = told(pynvml.nvmlGpmQueryDeviceSupport, handle)
        if support is None or not support.isSupportedDevice:
            return
        for _ in range(2):
            if (sample := told(pynvml.nvmlGpmSampleAlloc)) is None:
                self.close()
                return
            self._samples.append(sample)
        self._asked = pynvml.c_nvmlGpmMetricsGet_t()
        self._asked.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        self._asked.numMetrics = len(_METRICS)
        for number, metric in enumerate(_METRICS):
            self._asked.metrics[number].metricId = metric

    def since_before(self) -> dict[int, float]:
        """The metrics that are known, since the last call; none at the first.

        Raises:
            DeviceLostError: the device is gone.
        """
        if self._asked is None:
            return {}
        older, newer = self._samples
        has_older = self._has_older
        self._has_older = False
        if told(pynvml.nvmlGpmSampleGet, self._handle, newer) is None:
            return {}
        self._has_older = True
        self._samples = [newer, older]
        return self._between(older, newer) if has_older else {}

    def close(self) -> None:
        """Free the buffers; before NVML is shut down."""
        for sample in self._samples:
            with contextlib.suppress(DriverError):
                call(pynvml.nvmlGpmSampleFree, sample)
        self._samples = []
        self._asked = None

    def _between(self, older: Any, newer: Any) -> dict[int, float]:
        self._asked.sample1 = older
        self._asked.sample2 = newer
        if told(pynvml.nvmlGpmMetricsGet, self._asked) is None:
            return {}
        found = (self._asked.metrics[number] for number in range(len(_METRICS)))
        return {m.metricId: float(m.value) for m in found if m.nvmlReturn == pynvml.NVML_SUCCESS}
