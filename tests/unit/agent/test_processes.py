"""Which process is whose, for the owner of the node."""

from pathlib import Path
from typing import Any

import pytest
from tests.unit.agent.builders import HOST, container, sample, seen
from tests.unit.agent.fake_driver import FakeDriver, gpu

from gpu_scheduler.agent.driver import DriverError, GpuProcess
from gpu_scheduler.agent.process import processes_now
from gpu_scheduler.agent.processes import rows
from gpu_scheduler.agent.settings import AgentSettings
from gpu_scheduler.agent.usage import Surroundings, usage


def shown(*processes: Any) -> list[dict[str, Any]]:
    found = sample(*processes)
    mine = container()
    return rows(found, usage(found, {mine.pod.uid: (mine,)}, {}, Surroundings()))


def test_a_process_is_told_with_its_container_and_its_memory() -> None:
    assert shown(seen(100, 1000)) == [
        {
            "gpu": 0,
            "uuid": gpu(0),
            "pid": 100,
            "command": "python",
            "memoryMiB": 1000,
            "namespace": "team-a",
            "pod": "train-0",
            "container": "main",
        }
    ]


def test_a_stranger_has_a_command_and_no_container() -> None:
    (found,) = shown(seen(7, None, in_cgroup=HOST, command="miner"))
    assert (found["pid"], found["command"], found["memoryMiB"]) == (7, "miner", None)
    assert found["namespace"] is found["pod"] is found["container"] is None


def test_a_look_of_its_own_is_taken_and_the_driver_let_go(tmp_path: Path) -> None:
    driver = FakeDriver(on={gpu(1): [GpuProcess(1, 5 << 20)]})
    settings = AgentSettings(node="a", orders_file=str(tmp_path / "orders"))
    (found,) = processes_now(settings, driver)
    assert (found["gpu"], found["pid"], found["memoryMiB"]) == (1, 1, 5)
    assert driver.opened == driver.closed == 1


def test_without_a_driver_that_is_said(tmp_path: Path) -> None:
    settings = AgentSettings(node="a", orders_file=str(tmp_path / "orders"))
    with pytest.raises(DriverError, match="no driver"):
        processes_now(settings, FakeDriver(broken=DriverError("no driver")))
