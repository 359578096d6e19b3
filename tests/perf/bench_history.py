"""What a node's history costs its agent: ``python -m tests.perf.bench_history``.

Eight devices, 64 containers of one device each, their cgroups (version 2) in a folder, and as many
looks as ten hours have, every 10 s. No driver is asked. Prints JSON: CPU of a look and of a core,
and what a restart of the agent reads.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.perf.machine import machine

from gpu_scheduler.agent.container_host import ContainerHost
from gpu_scheduler.agent.driver import DeviceMemory, DeviceProperties, Load
from gpu_scheduler.agent.history.history_clock import HistoryClock
from gpu_scheduler.agent.history.history_file import HistoryFile
from gpu_scheduler.agent.history.recorder import FILE, Recorder
from gpu_scheduler.agent.history.slot import LOOK_SECONDS
from gpu_scheduler.agent.pods import GpuContainer
from gpu_scheduler.agent.sampler import DeviceProcess, DeviceSample, Sample
from gpu_scheduler.agent.usage import ContainerUse, Use
from gpu_scheduler.api.orders import OrderedContainer, OrderedPod
from gpu_scheduler.core.model.units import MIB

_MEGABYTES = 64


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.perf.bench_history")
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--containers", type=int, default=64)
    parser.add_argument("--looks", type=int, default=3600)
    options = parser.parse_args(arguments)
    sample, uses = _node(options.devices, options.containers)
    with tempfile.TemporaryDirectory() as folder:
        root, now = Path(folder), [1000.0]
        _cgroups(root / "cgroup", uses)
        clock = HistoryClock("boot", lambda: now[0], lambda: now[0])
        host = ContainerHost(root / "cgroup")
        recorder = Recorder(root, _MEGABYTES, clock, host.read)
        recorder.take(sample, uses, now[0])
        began = time.process_time()
        for _ in range(options.looks):
            now[0] += LOOK_SECONDS
            recorder.take(sample, uses, now[0])
        seconds = (time.process_time() - began) / options.looks
        recorder.close()
        began = time.process_time()
        again = HistoryFile(root / FILE, _MEGABYTES, clock)
        opened = time.process_time() - began
        found = {
            "millisecondsOfALook": round(1000 * seconds, 2),
            "percentOfACore": round(100 * seconds / LOOK_SECONDS, 3),
            "millisecondsToOpen": round(1000 * opened, 1),
            "rings": sum(1 for _ in again.slots()),
            "of": again.count,
        }
        again.close()
    print(json.dumps({"machine": machine(), "options": vars(options), **found}, indent=2))  # noqa: T201
    return 0


def _node(devices: int, containers: int) -> tuple[Sample, list[ContainerUse]]:
    memory = DeviceMemory(80 * 1024 * MIB, 512 * MIB, 40000 * MIB)
    facts = [
        DeviceProperties(
            f"GPU-{n:08x}-0000-4000-8000-000000000000", n, "NVIDIA H100", "9.0", memory
        )
        for n in range(devices)
    ]
    load = Load(0.8, 500.0, 66.0)
    sample = Sample(0.0, "580.0", tuple(DeviceSample(f, None, memory, load) for f in facts))
    uses = []
    for number in range(containers):
        device = facts[number % devices].uuid
        own = OrderedContainer(0, "main", {device: 10000}, f"{number:064x}", True)
        uid = f"0d2f1a5e-1111-4222-8333-{number:012x}"
        pod = OrderedPod(uid, "team-a", f"train-{number}", (own,), job="train", project="team-a")
        process = DeviceProcess(100 + number, 9000 * MIB, None)
        process = replace(process, busy_ratio=0.1)
        uses.append(ContainerUse(GpuContainer(pod, own), (Use(device, 10000, (process,)),)))
    return sample, uses


def _cgroups(root: Path, uses: Sequence[ContainerUse]) -> None:
    root.mkdir()
    (root / "cgroup.controllers").write_text("cpu memory io")
    for use in uses:
        own = use.container.own
        folder = root / f"kubepods/burstable/pod{use.container.pod.uid}" / own.id
        folder.mkdir(parents=True)
        (folder / "cpu.stat").write_text("usage_usec 100000\nuser_usec 1\nsystem_usec 1\n")
        (folder / "memory.current").write_text(f"{900 * MIB}\n")
        (folder / "memory.stat").write_text("".join(f"field_{n} {n}\n" for n in range(50)))
        for name in ("io", "memory"):
            line = "avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
            (folder / f"{name}.pressure").write_text(f"some {line}full {line}")


if __name__ == "__main__":
    raise SystemExit(main())
