"""What the check runs on: device, driver, kernel, versions. It heads the report."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_check.findings import CannotRunError
from gpu_check.libraries import DriverLibraries
from gpu_check.nvml import Nvml

QUERY = Path(__file__).parent / "programs" / "device_query.py"


@dataclass(frozen=True, slots=True)
class Machine:
    """Where the figures come from.

    Attributes:
        gpu, uuid: the device's name, and its UUID as NVML writes it (GPU-… or MIG-…).
        driver: version of the NVIDIA driver; None: NVML does not say.
        cuda: the newest CUDA version that the driver serves.
        total_mib: the device's memory, as CUDA sees it without a cap.
        kernel, architecture: of the operating system.
        wsl: it is Windows' Linux, whose driver says less.
        git_commit: of this check; None: not a checkout.
        pretended: it was not a real driver.
    """

    gpu: str
    uuid: str
    driver: str | None
    cuda: str
    total_mib: float
    kernel: str
    architecture: str
    wsl: bool
    git_commit: str | None
    pretended: bool


def look(
    driver: DriverLibraries, *, device: str | None, pretended: bool
) -> tuple[Machine, Nvml | None]:
    """Ask CUDA and NVML about the device that is to be checked.

    Args:
        driver: its libraries.
        device: number or UUID as for CUDA_VISIBLE_DEVICES; None: the first.
        pretended: it is the pretended driver.

    Raises:
        CannotRunError: there is no device, or this process has a cap already.
    """
    environment = dict(driver.environment)
    if device is not None:
        environment["CUDA_VISIBLE_DEVICES"] = device
    seen = query(environment)
    if "error" in seen:
        raise CannotRunError(f"no usable NVIDIA device: {seen['error']}")
    if seen["already_capped"]:
        raise CannotRunError(
            "this process has libgpucap already (a GPUJob's container?): run the check outside"
        )
    digits = seen["uuid"]
    dashed = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    uuid, nvml = f"GPU-{dashed}", None
    for prefix in ("GPU", "MIG") if driver.nvml else ():
        try:
            nvml = Nvml(driver.nvml, f"{prefix}-{dashed}")  # type: ignore[arg-type]
        except OSError:
            continue
        uuid = f"{prefix}-{dashed}"
        break
    kernel = platform.release()
    machine = Machine(
        gpu=seen["gpu"],
        uuid=uuid,
        driver=nvml.driver_version() if nvml else None,
        cuda=seen["cuda"],
        total_mib=seen["total_mib"],
        kernel=kernel,
        architecture=platform.machine(),
        wsl="microsoft" in kernel.lower(),
        git_commit=git_commit(),
        pretended=pretended,
    )
    return machine, nvml


def query(environment: Mapping[str, str]) -> dict[str, Any]:
    """Run the questions in a process of their own.

    Raises:
        CannotRunError: the driver hangs or crashes.
    """
    try:
        done = subprocess.run(
            [sys.executable, str(QUERY)],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )
    except subprocess.TimeoutExpired:
        raise CannotRunError("the driver did not answer cuInit within 60 s") from None
    if done.returncode:
        last = (done.stderr.splitlines() or ["no message"])[-1]
        raise CannotRunError(f"the driver cannot be asked (exit {done.returncode}): {last}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def git_commit() -> str | None:
    """The commit of this checkout, with ``-dirty`` when files differ from it."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
