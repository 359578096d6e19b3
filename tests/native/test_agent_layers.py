"""The self-test and the driver's own limits against the pretended driver."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.native.agent_node import container_id, pod_uid
from tests.native.fake_gpu import MIB, FakeGPU, uuid_of

from gpu_scheduler.agent.kernel_limits import LIMIT_MAX, KernelLimits, NvmlLimits
from gpu_scheduler.agent.kernel_start import start_kernel_limits
from gpu_scheduler.agent.nvml import NvmlDriver
from gpu_scheduler.agent.pods import GpuContainer
from gpu_scheduler.agent.poll import Poller
from gpu_scheduler.agent.selftest import framework, interposer, judge, run_probe
from gpu_scheduler.agent.settings import AgentSettings
from gpu_scheduler.agent.usage import ContainerUse, Use
from gpu_scheduler.api.orders import OrderedContainer, OrderedPod

R615 = {"driver": "615.71.09", "memory_limits": 1}


def try_the_library(library: str) -> tuple[str, str]:
    layer = interposer(run_probe, library=Path(library))
    return layer.result, layer.detail


def test_the_self_test_passes_with_the_library(gpu: FakeGPU) -> None:
    library = str(gpu.build.folder / "libgpucap.so")
    result, detail = gpu.call("tests.native.test_agent_layers:try_the_library", library)
    assert result == "passed"
    assert "total shown 256 MiB" in detail
    assert "by cuGetProcAddress" in detail
    assert "by dlsym" in detail
    assert gpu.used_mib() == 0, "nothing is left behind"


@pytest.mark.library_first
def test_it_fails_with_a_library_that_does_nothing(gpu: FakeGPU, tmp_path: Path) -> None:
    idle = tmp_path / "libidle.so"
    subprocess.run(
        ["gcc", "-shared", "-o", str(idle), "-x", "c", "-"], input=b"int idle;", check=True
    )
    result, detail = gpu.call("tests.native.test_agent_layers:try_the_library", str(idle))
    assert result == "failed", detail
    assert "320 MiB by dlsym" in detail


def test_on_a_full_device_it_proves_nothing(fake_gpu: Callable[..., FakeGPU]) -> None:
    gpu = fake_gpu(total_mib=310, reserved_mib=0)
    library = str(gpu.build.folder / "libgpucap.so")
    result, _ = gpu.call("tests.native.test_agent_layers:try_the_library", library)
    assert result == "untested"


def test_the_command_prints_a_verdict_and_never_fails(gpu: FakeGPU, tmp_path: Path) -> None:
    output = tmp_path / "verdict.json"
    command = [sys.executable, "-m", "gpu_scheduler.main", "agent", "self-test"]
    done = gpu.run([*command, "--output", output])
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said == json.loads(output.read_text())
    assert said["isolation"] == "none", "no library in /opt/gpucap here"
    assert "interposer untested" in said["sentence"]


def test_cupy_is_tried_where_it_is() -> None:
    assert framework(lambda how, env: {"got_mib": {"cupy": 1}}).result == "untested"


class Leaf:
    """A folder that stands for a container's cgroup, below something named kubepods."""

    def __init__(self, root: Path, number: int) -> None:
        self.path = root / "kubepods" / f"pod{pod_uid(number)}" / container_id(number)
        self.path.mkdir(parents=True, exist_ok=True)
        (root / "cgroup.controllers").write_text("cpu memory\n")


def limited(root: str, cap_mib: int) -> dict[str, Any]:
    """Limit pod 1 as the agent does, and say what a process in its cgroup gets."""
    leaf = Leaf(Path(root), 1)
    container = GpuContainer(
        OrderedPod(pod_uid(1), "team-a", "p", (), job="j", project="p"),
        OrderedContainer(0, "main", {uuid_of(0): cap_mib}, container_id(1)),
    )
    driver = NvmlDriver()
    driver.open()
    limits = NvmlLimits()
    kernel = KernelLimits(limits, Path(root))
    use = ContainerUse(container, (Use(uuid_of(0), cap_mib, ()),))
    kernel.update([use])
    inside = run_probe("driver", {"FAKEGPU_CGROUP": str(leaf.path)})
    outside = run_probe("driver", {"FAKEGPU_CGROUP": root})
    again = KernelLimits(limits, Path(root))
    again.update([use])
    return {
        "holds": kernel.holds(use),
        "again": again.holds(use),
        "hard": limits.hard_bytes(uuid_of(0), leaf.path),
        "inside": judge("kernel", inside, cap_mib).result,
        "outside": judge("kernel", outside, cap_mib).result,
    }


def test_the_drivers_limit_stops_a_container_and_nobody_else(
    fake_gpu: Callable[..., FakeGPU], tmp_path: Path
) -> None:
    gpu = fake_gpu(**R615, context_mib=16)
    found = gpu.call("tests.native.test_agent_layers:limited", str(tmp_path), 200)
    assert found == {
        "holds": True,
        "again": True,
        "hard": 200 * MIB,
        "inside": "passed",
        "outside": "failed",
    }


def turned_on(root: str) -> dict[str, Any]:
    """Turn the limits on as the agent does at its start, its own cgroup being pod 1's."""
    leaf = Leaf(Path(root), 1)
    (leaf.path / "cgroup.procs").write_text(f"{os.getpid()}\n")
    os.environ["FAKEGPU_CGROUP"] = str(leaf.path)
    driver = NvmlDriver()
    poller = Poller.__new__(Poller)
    poller.kernel = None
    settings = AgentSettings(node="n1", cgroup_root=root, kernel_limits=True)
    layer = start_kernel_limits(settings, driver, poller)
    left = None
    if poller.kernel is not None:
        left = NvmlLimits().hard_bytes(uuid_of(0), leaf.path) == LIMIT_MAX
    return {"result": layer.result, "detail": layer.detail, "lifted": left}


@pytest.mark.parametrize(
    ("options", "result", "detail"),
    [
        ({**R615, "context_mib": 16}, "passed", "cap 256 MiB"),
        ({"driver": "570.86.15"}, "untested", "driver 570.86.15 is older than r615"),
    ],
)
def test_the_limits_are_turned_on_where_they_hold(
    fake_gpu: Callable[..., FakeGPU],
    tmp_path: Path,
    options: dict[str, object],
    result: str,
    detail: str,
) -> None:
    gpu = fake_gpu(**options)
    found = gpu.call("tests.native.test_agent_layers:turned_on", str(tmp_path))
    assert found["result"] == result, found
    assert detail in found["detail"]
    assert found["lifted"] in (True, None)
    assert (found["lifted"] is True) == (result == "passed")
