"""Prometheus metrics of the agent (prefix ``gpusched_``, base units, ratios 0 to 1).

Computed when they are scraped, from the last sample. They say nothing of who uses the devices: that
is the operator's to show. What the driver does not know is absent, never 0.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from gpu_scheduler.agent.driver import THROTTLE_REASONS
from gpu_scheduler.agent.sampler import DeviceSample, Sample
from gpu_scheduler.agent.usage import Usage
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.web.collector import Collector, filled

_DEVICE = ("node", "gpu", "uuid", "model")
_BY_REASON = (*_DEVICE, "reason")
_BY_CODE = (*_DEVICE, "code")
_BY_ERRORS = (*_DEVICE, "errors")


@dataclass(slots=True)
class Counts:
    """What only ever grows."""

    killed: int = 0
    samples: int = 0
    sample_seconds: float = 0.0


class AgentMetrics(Collector):
    """The collector. The agent sets ``sample`` and ``usage`` after each look."""

    def __init__(self, node: str, clock: Clock | None = None) -> None:
        super().__init__(clock)
        self.counts = Counts()
        self.sample = Sample(0.0)
        self.usage = Usage((), {})
        self.last_active: dict[str, float] = {}
        self._node = node

    def figures(self) -> Iterable[Metric]:
        """Of the devices, and of the agent itself."""
        yield from self._devices()
        yield from self._troubles()
        for name, text, value in (
            ("agent_killed_processes", "Processes killed by policy.", self.counts.killed),
            ("agent_samples", "Looks at the devices.", self.counts.samples),
            ("agent_sample_seconds", "Time that they took.", self.counts.sample_seconds),
        ):
            yield CounterMetricFamily(f"gpusched_{name}", text, value=value)

    def _devices(self) -> Iterable[Metric]:
        figures: tuple[tuple[str, str, dict[str, float | None]], ...] = (
            (
                "gpu_healthy",
                "1 while it takes pods.",
                self._each(lambda d: float(d.message is None)),
            ),
            (
                "gpu_utilization_ratio",
                "Share of time with a kernel.",
                self._each(lambda d: d.load.busy_ratio),
            ),
            ("gpu_memory_total_bytes", "Device memory.", self._each(lambda d: d.total_bytes)),
            ("gpu_memory_used_bytes", "Of it in use.", self._each(_used)),
            ("gpu_power_watts", "Power drawn.", self._each(lambda d: d.load.power_watts)),
            ("gpu_temperature_celsius", "Heat.", self._each(lambda d: d.load.temperature_celsius)),
            (
                "gpu_memory_busy_ratio",
                "Share of time with device memory read or written.",
                self._each(lambda d: d.load.memory_busy_ratio),
            ),
            (
                "gpu_tensor_ratio",
                "Share of time with tensor cores at work; from Hopper on.",
                self._each(lambda d: d.load.tensor_ratio),
            ),
            (
                "gpu_sm_clock_hertz",
                "Clock of the multiprocessors.",
                self._each(lambda d: _hertz(d.load.sm_clock_mhz)),
            ),
            (
                "gpu_memory_clock_hertz",
                "Clock of device memory.",
                self._each(lambda d: _hertz(d.load.memory_clock_mhz)),
            ),
            (
                "gpu_pcie_received_bytes_per_second",
                "Over PCIe to the device; from Hopper on.",
                self._each(lambda d: d.load.pcie_rx_bytes_per_second),
            ),
            (
                "gpu_pcie_sent_bytes_per_second",
                "Over PCIe from the device; from Hopper on.",
                self._each(lambda d: d.load.pcie_tx_bytes_per_second),
            ),
            (
                "gpu_nvlink_received_bytes_per_second",
                "Over all NVLinks to the device; from Hopper on.",
                self._each(lambda d: d.load.nvlink_rx_bytes_per_second),
            ),
            (
                "gpu_nvlink_sent_bytes_per_second",
                "Over all NVLinks from the device; from Hopper on.",
                self._each(lambda d: d.load.nvlink_tx_bytes_per_second),
            ),
            (
                "gpu_encoder_ratio",
                "Share of time with video encoded.",
                self._each(lambda d: d.load.encoder_ratio),
            ),
            (
                "gpu_decoder_ratio",
                "Share of time with video decoded.",
                self._each(lambda d: d.load.decoder_ratio),
            ),
            (
                "gpu_foreign_processes",
                "Processes of nobody's allocation.",
                self._each(self._foreign),
            ),
            ("gpu_last_active_timestamp_seconds", "Last seen busy.", dict(self.last_active)),
        )
        names = {d.facts.uuid: self._labels(d) for d in self.sample.devices}
        for name, text, values in figures:
            known = (
                (names[uuid], value)
                for uuid, value in values.items()
                if value is not None and uuid in names
            )
            yield filled(GaugeMetricFamily(f"gpusched_{name}", text, labels=_DEVICE), known)

    def _troubles(self) -> Iterable[Metric]:
        """What slows devices down or breaks them."""
        devices = [(self._labels(device), device) for device in self.sample.devices]
        throttled = GaugeMetricFamily(
            "gpusched_gpu_throttled", "1 while it is held below its clocks.", labels=_BY_REASON
        )
        yield filled(
            throttled,
            (
                ([*labels, reason], float(reason in device.load.throttled))
                for labels, device in devices
                if device.load.throttled is not None
                for reason in sorted(THROTTLE_REASONS)
            ),
        )
        xids = CounterMetricFamily(
            "gpusched_gpu_xid", "XIDs since the agent's start, by number.", labels=_BY_CODE
        )
        yield filled(
            xids,
            (
                ([*labels, str(code)], float(times))
                for labels, device in devices
                for code, times in sorted(device.xids.items())
            ),
        )
        ecc = CounterMetricFamily(
            "gpusched_gpu_ecc_errors",
            "Uncorrectable errors of device memory since the last reset.",
            labels=_DEVICE,
        )
        yield filled(
            ecc,
            (
                (labels, float(device.vitals.uncorrected_ecc))
                for labels, device in devices
                if device.vitals.uncorrected_ecc is not None
            ),
        )
        rows = CounterMetricFamily(
            "gpusched_gpu_remapped_rows",
            "Rows of device memory that were replaced, by the errors that were seen in them; in "
            "the device's life.",
            labels=_BY_ERRORS,
        )
        yield filled(
            rows,
            (
                ([*labels, errors], float(number))
                for labels, device in devices
                for errors, number in (
                    ("corrected", device.vitals.remapped_after_corrected),
                    ("uncorrected", device.vitals.remapped_after_uncorrected),
                )
                if number is not None
            ),
        )

    def _labels(self, device: DeviceSample) -> list[str]:
        facts = device.facts
        return [self._node, str(facts.index), facts.uuid, facts.model]

    def _each(self, figure: Callable[[DeviceSample], float | None]) -> dict[str, float | None]:
        return {d.facts.uuid: figure(d) for d in self.sample.devices}

    def _foreign(self, device: DeviceSample) -> float:
        return float(len(self.usage.foreign.get(device.facts.uuid, ())))


def _hertz(mhz: int | None) -> float | None:
    return None if mhz is None else mhz * 1e6


def _used(device: DeviceSample) -> float | None:
    return float(device.memory.used_bytes) if device.memory is not None else None
