"""Turns the driver's own limits on, if this node has them and they hold a probe.

Runs once, in the driver's thread, before the first look. They are tried with a small one on the
agent's own cgroup: the agent itself holds no GPU memory. The answer is a layer of the self-test's
verdict; whatever is missing is said there and the other layers go on.
"""

import os
from pathlib import Path

from gpu_scheduler.agent import cgroup_tree
from gpu_scheduler.agent.driver import Driver, DriverError
from gpu_scheduler.agent.kernel_limits import (
    LIMIT_MAX,
    DriverLimits,
    KernelLimits,
    LimitError,
    NvmlLimits,
    unavailable,
)
from gpu_scheduler.agent.poll import Poller
from gpu_scheduler.agent.selftest import LIMIT_MIB, Layer, ProbeRunner, judge, run_probe
from gpu_scheduler.agent.settings import AgentSettings
from gpu_scheduler.core.model.units import MIB
from gpu_scheduler.kube.unexpected import unexpected


def start_kernel_limits(
    settings: AgentSettings,
    driver: Driver,
    poller: Poller,
    run: ProbeRunner = run_probe,
) -> Layer:
    """Probe, test, and give ``poller`` the limits when they hold."""
    try:
        return _start(settings, driver, poller, run)
    except Exception as error:  # the other layers go on
        unexpected("kernel-limits", "start")
        return Layer("kernel", "failed", f"{type(error).__name__}: {error}"[:200])


def kernel_layer(limits: DriverLimits, root: Path, uuid: str, run: ProbeRunner) -> Layer:
    """Whether the driver stops a process at a limit.

    Args:
        limits: The driver's functions.
        root: Of the node's cgroups.
        uuid: The device to try with.
        run: Starts the probe.
    """
    folder = cgroup_tree.leaf_of_process(os.getpid(), root)
    if folder is None:
        return Layer("kernel", "untested", f"the agent's own cgroup is not below {root}")
    try:
        limits.set(uuid, folder, LIMIT_MIB * MIB)
    except LimitError as error:
        return Layer("kernel", "failed", str(error))
    try:
        return judge("kernel", run("driver", {"CUDA_VISIBLE_DEVICES": uuid}))
    finally:
        limits.set(uuid, folder, LIMIT_MAX)


def _start(settings: AgentSettings, driver: Driver, poller: Poller, run: ProbeRunner) -> Layer:
    root = Path(settings.cgroup_root)
    try:
        driver.open()
        version = driver.version()
        devices = [driver.facts(index) for index in range(driver.count())]
    except DriverError as error:
        return Layer("kernel", "untested", f"NVML: {error}")
    limits = _bind()
    mig = any(device.mig for device in devices)
    reason = unavailable(version, mig=mig, root=root, limits=limits)
    if reason is not None or limits is None or not devices:
        return Layer("kernel", "untested", reason or "no device")
    layer = kernel_layer(limits, root, devices[0].uuid, run)
    if layer.result == "passed":
        poller.kernel = KernelLimits(limits, root)
    return layer


def _bind() -> DriverLimits | None:
    try:
        return NvmlLimits()
    except LimitError:
        return None
