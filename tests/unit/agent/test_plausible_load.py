"""Gauges that cannot be are unknown, and the others stay."""

import math
from dataclasses import asdict, replace
from typing import Any

import pytest

from gpu_scheduler.agent.driver import Load
from gpu_scheduler.agent.plausible import load

GOOD = Load(
    busy_ratio=0.5,
    power_watts=250.0,
    temperature_celsius=60.0,
    memory_busy_ratio=0.25,
    tensor_ratio=0.125,
    sm_clock_mhz=1410,
    memory_clock_mhz=1215,
    throttled=frozenset({"thermal"}),
    pcie_rx_bytes_per_second=1e9,
    pcie_tx_bytes_per_second=2e9,
    nvlink_rx_bytes_per_second=3e9,
    nvlink_tx_bytes_per_second=4e9,
    encoder_ratio=0.0,
    decoder_ratio=1.0,
)


def test_what_can_be_stays() -> None:
    assert load(GOOD) == GOOD
    assert load(Load()) == Load()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            (name, value)
            for name in ("memory_busy_ratio", "tensor_ratio", "encoder_ratio", "decoder_ratio")
            for value in (-0.01, 1.01, math.nan, "0.5", True)
        ),
        *(
            (name, value)
            for name in ("sm_clock_mhz", "memory_clock_mhz")
            for value in (-1, 1 << 32, 1410.5, None)
        ),
        *(("throttled", value) for value in (["thermal"], {"thermal"}, frozenset({"cold"}), 4)),
        *(("pcie_rx_bytes_per_second", value) for value in (-1.0, 1e30, math.inf)),
        ("pcie_tx_bytes_per_second", b""),
        *((f"nvlink_{way}_bytes_per_second", -1.0) for way in ("rx", "tx")),
    ],
)
def test_what_cannot_be_is_unknown_by_itself(name: str, value: Any) -> None:
    found = load(replace(GOOD, **{name: value}))
    assert asdict(found) == {**asdict(GOOD), name: None}
