"""What reaches us outside of watches: reports, logs, stored results, and what a driver says."""

import contextlib
import math
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.agent.fake_driver import FakeDriver
from tests.unit.generated.others import (
    hostile_configmaps,
    hostile_orders,
    logs,
    nvml_errors,
    nvml_facts,
    nvml_processes,
    nvml_vitals,
    reports,
)
from tests.unit.generated.values import Obj

from gpu_scheduler.agent.driver import DeviceProperties, DriverError, GpuProcess, Vitals, Xid
from gpu_scheduler.agent.health import Health
from gpu_scheduler.agent.pods import Pods
from gpu_scheduler.agent.poll import PodSnapshot, Poller
from gpu_scheduler.agent.procfs import ProcFS
from gpu_scheduler.agent.report import status
from gpu_scheduler.agent.sampler import Sampler
from gpu_scheduler.agent.watchdog import Watchdog
from gpu_scheduler.api.names import RESULTS_KEY
from gpu_scheduler.api.orders import BadOrdersError, parse
from gpu_scheduler.api.search import Objective
from gpu_scheduler.state.nodes.devices import from_gpunode
from gpu_scheduler.sweeps.core.reports import BadReportError, parse_report
from gpu_scheduler.sweeps.core.results import read_message
from gpu_scheduler.sweeps.core.rows import BadRowsError, decode

LOSS = Objective("loss")


@given(reports)
def test_a_report_is_read_or_refused_with_a_sentence(body: bytes) -> None:
    try:
        report = parse_report(body, LOSS)
    except BadReportError as error:
        assert str(error)
    else:
        assert report.step >= 0


@given(logs)
def test_a_termination_message_is_read_or_explained(message: bytes) -> None:
    reading = read_message(message, LOSS)
    assert reading.value is None or math.isfinite(reading.value)
    assert reading.value is not None or reading.message


@given(hostile_configmaps())
def test_stored_results_are_read_or_refused_as_such(stored: Obj) -> None:
    with contextlib.suppress(BadRowsError):
        decode(stored["data"][RESULTS_KEY])


@given(st.lists(hostile_orders(), max_size=3))
def test_orders_are_taken_whole_or_not_at_all(told: list[bytes]) -> None:
    known, taken = Pods(), False
    for text in told:
        with contextlib.suppress(BadOrdersError):
            known.take(parse(text), 0.0)
            taken = True
    assert taken or not known.containers


@given(
    facts=nvml_facts(),
    processes=nvml_processes,
    error=nvml_errors,
    vitals=nvml_vitals,
    code=st.integers(-1, 200),
)
def test_whatever_a_driver_says_becomes_a_status_that_the_operator_can_read(
    facts: list[DeviceProperties],
    processes: list[GpuProcess],
    error: DriverError | None,
    vitals: Vitals,
    code: int,
) -> None:
    driver = FakeDriver(devices=facts)
    for each in facts:
        driver.on[each.uuid] = processes
        driver.vital[each.uuid] = vitals
    if error is not None and facts:
        driver.errors[facts[0].uuid] = error
    driver.events = [Xid(each.uuid, code) for each in facts]
    procfs = ProcFS(Path("/nonexistent"))
    poller = Poller(Sampler(driver, procfs, Health()), procfs, Watchdog(tolerance_mib=512))
    for now in (0.0, 3.0):
        look = poller.poll(now, "2026-01-01T00:00:00Z", PodSnapshot({}, {}))
        if look.sample.problem is not None:
            continue
        found = status(look, look.usage.foreign, None)
        for device in from_gpunode(found.to_json()):
            assert device.usable_mib >= 0
