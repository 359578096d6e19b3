from dataclasses import replace
from typing import Any

from prometheus_client import generate_latest
from tests.unit.agent.builders import sample, seen, use
from tests.unit.agent.fake_driver import gpu

from gpu_scheduler.agent.driver import Load, Vitals
from gpu_scheduler.agent.metrics import AgentMetrics
from gpu_scheduler.agent.usage import ContainerUse, Usage


def shown(*uses: ContainerUse) -> list[str]:
    metrics = AgentMetrics("n1")
    metrics.sample, metrics.usage = sample(), Usage(uses, {})
    return generate_latest(metrics.registry).decode().splitlines()


def test_a_device_is_named_by_node_number_uuid_and_model() -> None:
    labels = f'{{gpu="0",model="NVIDIA A100-PCIE-40GB",node="n1",uuid="{gpu(0)}"}}'
    assert f"gpusched_gpu_memory_used_bytes{labels} 5.36870912e+08" in shown()
    assert f"gpusched_gpu_healthy{labels} 1.0" in shown()


def test_what_the_driver_does_not_know_is_absent() -> None:
    assert not [line for line in shown() if line.startswith("gpusched_gpu_power_watts{")]


DEVICE = f'gpu="0",model="NVIDIA A100-PCIE-40GB",node="n1",uuid="{gpu(0)}"'


def shown_of(**of_first: Any) -> list[str]:
    """What is shown where the first device's sample has these fields."""
    metrics = AgentMetrics("n1")
    found = sample()
    first = replace(found.devices[0], **of_first)
    metrics.sample = replace(found, devices=(first, *found.devices[1:]))
    return generate_latest(metrics.registry).decode().splitlines()


def test_gauges_of_a_device_are_in_base_units() -> None:
    lines = shown_of(
        load=Load(
            memory_busy_ratio=0.25,
            tensor_ratio=0.5,
            sm_clock_mhz=1410,
            memory_clock_mhz=1215,
            pcie_rx_bytes_per_second=3.0,
            pcie_tx_bytes_per_second=4.0,
            nvlink_rx_bytes_per_second=5.0,
            nvlink_tx_bytes_per_second=6.0,
            encoder_ratio=0.125,
            decoder_ratio=0.0,
        )
    )
    for name, value in {
        "memory_busy_ratio": "0.25",
        "tensor_ratio": "0.5",
        "sm_clock_hertz": "1.41e+09",
        "memory_clock_hertz": "1.215e+09",
        "pcie_received_bytes_per_second": "3.0",
        "pcie_sent_bytes_per_second": "4.0",
        "nvlink_received_bytes_per_second": "5.0",
        "nvlink_sent_bytes_per_second": "6.0",
        "encoder_ratio": "0.125",
        "decoder_ratio": "0.0",
    }.items():
        assert f"gpusched_gpu_{name}{{{DEVICE}}} {value}" in lines


def test_every_reason_is_told_where_the_driver_knows_them() -> None:
    lines = shown_of(load=Load(throttled=frozenset({"thermal"})))
    before, after = DEVICE.split(",uuid=")
    assert with_reason(lines) == [
        f'gpusched_gpu_throttled{{{before},reason="{reason}",uuid={after}}} {value}'
        for reason, value in (("power-brake", 0.0), ("power-cap", 0.0), ("thermal", 1.0))
    ]
    assert not with_reason(shown_of(load=Load()))


def with_reason(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("gpusched_gpu_throttled{")]


def test_xids_and_ecc_errors_are_counters() -> None:
    lines = shown_of(xids={31: 2, 79: 1}, vitals=Vitals(uncorrected_ecc=3))
    assert f'gpusched_gpu_xid_total{{code="31",{DEVICE}}} 2.0' in lines
    assert f'gpusched_gpu_xid_total{{code="79",{DEVICE}}} 1.0' in lines
    assert [line for line in lines if line.startswith("gpusched_gpu_ecc_errors_total{")] == [
        f"gpusched_gpu_ecc_errors_total{{{DEVICE}}} 3.0"
    ]


def test_remapped_rows_are_told_by_their_errors_where_the_driver_knows_them() -> None:
    def rows(vitals: Vitals) -> list[str]:
        lines = shown_of(vitals=vitals)
        return [line for line in lines if line.startswith("gpusched_gpu_remapped_rows_total{")]

    assert rows(Vitals(remapped_after_corrected=0, remapped_after_uncorrected=2)) == [
        f'gpusched_gpu_remapped_rows_total{{errors="{errors}",{DEVICE}}} {value}'
        for errors, value in (("corrected", 0.0), ("uncorrected", 2.0))
    ]
    assert not rows(Vitals())


def test_nothing_is_said_of_who_uses_them() -> None:
    """The port is open to the cluster's network."""
    lines = "\n".join(shown(use(replace(seen(), busy_ratio=0.5))))
    for word in ("namespace=", "job=", "pod=", "train", "team-a", "project-a"):
        assert word not in lines
