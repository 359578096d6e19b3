"""The pretend A100s of the real node: labels, driver, and what a container sees of them.

Two, unless a cluster's settings ask for more.

NVIDIA's container runtime reads the CDI specification and edits a container for exactly the
devices in its NVIDIA_VISIBLE_DEVICES. Each device's edits can be told apart (an environment
variable and a file under /dev/fakegpu), so a container can prove which devices it was given. The
pretended driver's libraries and its shared folder come with any device.
"""

import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.fake_driver import FakeDriver

CONTAINER_DEVICES = "/dev/fakegpu"  # one file per assigned device, named by its UUID
CONTAINER_LIBRARIES = f"/usr/lib/{platform.machine()}-linux-gnu"
CONTAINER_PROGRAMS = "/opt/fakegpu"
CONTAINER_STATE = "/var/lib/fakegpu"
DRIVER_VERSION = "570.86.15"
CUDA_VERSION = 12080


@dataclass(frozen=True, slots=True)
class PretendGPU:
    """One device, with the memory figures of a 40 GB A100 (MiB)."""

    index: int
    uuid: str
    model: str = "NVIDIA A100-PCIE-40GB"
    memory_mib: int = 40960
    usable_mib: int = 40448  # total minus what the driver keeps for itself
    compute_capability: str = "8.0"


def pretended(count: int) -> tuple[PretendGPU, ...]:
    """So many devices that are alike; a UUID repeats one digit, so that people can tell them."""
    return tuple(
        PretendGPU(index, f"GPU-{d * 8}-{d * 4}-4{d * 3}-8{d * 3}-{d * 12}")
        for index, d in enumerate(str(number) for number in range(1, count + 1))
    )


GPUS = pretended(2)


def node_labels(gpus: Sequence[PretendGPU] = GPUS) -> dict[str, str]:
    """The labels that GPU feature discovery would set."""
    first = gpus[0]
    major, minor = first.compute_capability.split(".")
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.count": str(len(gpus)),
        "nvidia.com/gpu.product": first.model.replace(" ", "-"),
        "nvidia.com/gpu.memory": str(first.memory_mib),
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor,
    }


def driver_configuration(*, context_mib: int, gpus: Sequence[PretendGPU] = GPUS) -> str:
    """These devices as native/fakegpu reads them: the driver keeps what programs cannot use."""
    lines = [f"driver {DRIVER_VERSION}", f"cuda {CUDA_VERSION}", f"context_mib {context_mib}"]
    lines += [
        f"device {gpu.index} {gpu.uuid} {gpu.model.replace(' ', '_')} {gpu.memory_mib} "
        f"{gpu.memory_mib - gpu.usable_mib} {gpu.compute_capability}"
        for gpu in gpus
    ]
    return "".join(f"{line}\n" for line in lines)


def write_cdi(
    folder: Path, *, driver: FakeDriver | None = None, gpus: Sequence[PretendGPU] = GPUS
) -> None:
    """Write the specification, and the file of each device that it mounts, below ``folder``."""
    files = folder / "devices"
    files.mkdir(parents=True, exist_ok=True)
    for gpu in gpus:
        (files / gpu.uuid).write_text(f"{gpu.index} {gpu.uuid} {gpu.model} {gpu.memory_mib} MiB\n")
    specification = cdi_specification(files, driver, gpus)
    (folder / "nvidia.json").write_text(json.dumps(specification, indent=2))


def cdi_specification(
    files: Path, driver: FakeDriver | None = None, gpus: Sequence[PretendGPU] = GPUS
) -> dict[str, Any]:
    """The CDI specification: a device per UUID, the same by index, and ``all``.

    Args:
        files: the folder with a file per UUID, mounted into containers that get the device.
        driver: whose libraries, programs and shared folder come with any device.
        gpus: the devices.

    Source: https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md
    """
    devices: dict[str, dict[str, list[Any]]] = {}
    for gpu in gpus:
        mount = _mount(files / gpu.uuid, f"{CONTAINER_DEVICES}/{gpu.uuid}")
        edits: dict[str, list[Any]] = {
            "env": [f"FAKE_GPU_{gpu.index}={gpu.uuid}"],
            "mounts": [mount],
        }
        devices[gpu.uuid] = devices[str(gpu.index)] = edits
    every = [devices[gpu.uuid] for gpu in gpus]
    devices["all"] = {key: [each for e in every for each in e[key]] for key in ("env", "mounts")}
    shared: dict[str, list[Any]] = {"env": [f"FAKE_GPU_DRIVER={DRIVER_VERSION}"]}
    if driver:
        shared["mounts"] = [
            *(_mount(each, f"{CONTAINER_LIBRARIES}/{each.name}") for each in driver.libraries),
            *(_mount(each, f"{CONTAINER_PROGRAMS}/{each.name}") for each in driver.programs),
            _mount(driver.folder, CONTAINER_STATE, access="rw"),
        ]
    return {
        "cdiVersion": "0.5.0",
        "kind": "nvidia.com/gpu",
        "devices": [{"name": name, "containerEdits": each} for name, each in devices.items()],
        "containerEdits": shared,
    }


def _mount(source: Path, target: str, access: str = "ro") -> dict[str, Any]:
    options = [access, "nosuid", "nodev", "bind"]
    return {"hostPath": str(source), "containerPath": target, "options": options}
