"""What libgpucap costs: an allocation with its free, and the start of a process, with and without.

Against the pretended driver, in one run, turn by turn, so that both see the same machine. Bounds:
0.4 microseconds per allocation and free, alone, beside a hundred and a thousand processes of the
container, and after ten thousand have gone; twenty microseconds for one that is refused beside so
many; a millisecond per start, three beside so many; a tenth of a second for the reset of a context
with a hundred thousand allocations.

    python -m tests.perf.bench_gpucap
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.native.build import build
from tests.native.container import Container, build_programs
from tests.native.cuda import Cuda, Number
from tests.native.fake_gpu import FakeGPU

MOST_ADDED_NS, MOST_REFUSED_NS = 400.0, 20_000.0
MOST_ADDED_MS, MOST_BESIDE_MS, MOST_RESET_MS = 1.0, 3.0, 100.0
TURNS, STARTS, ROUNDS = 4000, 30, 8
BESIDE, GONE, RESET = (99, 999), 10_000, 100_000


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing measured: the least of the rounds, without the library and with it."""

    name: str
    unit: str
    bare: float
    capped: float
    most_added: float

    @property
    def added(self) -> float:
        """What the library adds."""
        return self.capped - self.bare

    @property
    def ok(self) -> bool:
        """Within its bound."""
        return self.added <= self.most_added


def _number(container: Container, command: list[str], preload: bool) -> float:
    run = container.run if preload else container.gpu.run
    done = run(command)
    if done.returncode:
        raise RuntimeError(f"{command}: exit {done.returncode}: {done.stderr}")
    return float(done.stdout)


def _allocation(container: Container, kind: str) -> Figure:
    command = [str(container.programs / "allocbench"), kind, str(TURNS)]
    rounds = [
        [_number(container, command, capped) for capped in (False, True)] for _ in range(ROUNDS)
    ]
    bare, capped = (min(values) for values in zip(*rounds, strict=True))
    return Figure(f"{kind}: allocation and free", "ns", bare, capped, MOST_ADDED_NS)


def _start(container: Container, name: str, program: list[str]) -> Figure:
    """Startbench itself runs without the library; its children have it."""

    def milliseconds(preload: str) -> float:
        command = [str(container.programs / "startbench"), str(STARTS), preload, *program]
        return float(
            subprocess.run(
                command,
                env=container.environment | {"LD_PRELOAD": ""},
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )

    rounds = [
        [milliseconds(preload) for preload in ("", str(container.library))] for _ in range(ROUNDS)
    ]
    bare, capped = (min(values) for values in zip(*rounds, strict=True))
    return Figure(f"start: {name}", "ms", bare, capped, MOST_ADDED_MS)


@contextmanager
def _beside(container: Container, others: int) -> Iterator[None]:
    """Processes of the container that have a context each, and nothing else."""
    idle = container.probe_command("linked", "alloc", 0, "hold")
    started = [container.start(idle) for _ in range(others)]
    try:
        for each in started:
            assert each.stdout and each.stdout.readline()
        yield
    finally:
        for each in started:
            each.kill()
            each.communicate()


def _crowds(container: Container) -> list[Figure]:
    """An allocation beside others, and after very many."""
    found = []
    for others in BESIDE:
        with _beside(container, others):
            figure = _allocation(container, "small")
            refused = _allocation(container, "refused")
            context = container.probe_command("linked", "alloc", 1, "context")
            start = _start(container, f"a context beside {others} processes", context)
        found += [
            replace(figure, name=f"small, beside {others} processes"),
            replace(
                refused,
                name=f"refused, beside {others} processes",
                most_added=MOST_REFUSED_NS,
            ),
            replace(start, most_added=MOST_BESIDE_MS),
        ]
    crowd = [str(container.programs / "crowd"), "1000", "512"]
    for _ in range(GONE // 1000):
        container.run(crowd)
    return [*found, replace(_allocation(container, "small"), name=f"small, after {GONE:,} more")]


def reset_milliseconds() -> float:
    """In a process of the container: a context with very many allocations is reset."""
    cuda, pointer = Cuda(context=False), Number()
    cuda.ok("cuInit", 0)
    cuda.ok("cuCtxSetCurrent", cuda.get("cuDevicePrimaryCtxRetain", 0))
    for _ in range(RESET):
        cuda.ok("cuMemAlloc_v2", pointer, 512)
    began = time.perf_counter()
    cuda.ok("cuDevicePrimaryCtxReset_v2", 0)
    return (time.perf_counter() - began) * 1000


def _reset(container: Container) -> Figure:
    bare, capped = (
        min(float(run("tests.perf.bench_gpucap:reset_milliseconds")) for _ in range(2))  # type: ignore[arg-type]
        for run in (container.gpu.call, container.call)
    )
    return Figure(f"reset of {RESET:,} allocations", "ms", bare, capped, MOST_RESET_MS)


def figures() -> list[Figure]:
    """Measure all; a minute."""
    native = build()
    build_programs(native)
    with tempfile.TemporaryDirectory() as folder:
        gpu = FakeGPU(Path(folder) / "gpu", native)
        container = Container(gpu, Path(folder) / "container", cap_mib=8192)
        # An eighth of this cap is less than a context may take, so that the process measures it.
        unmeasured = Container(gpu, Path(folder) / "unmeasured", cap_mib=2048, context_mib=None)
        probe = container.probe_command("linked", "alloc", 1, "context")
        crowded = FakeGPU(Path(folder) / "crowded", native)
        crowded.configure(context_mib=0)  # a device has no room for a thousand real ones
        return [
            *(_allocation(container, kind) for kind in ("small", "large", "async")),
            _start(container, "/bin/true", ["/bin/true"]),
            _start(container, "a program with a context", probe),
            _start(unmeasured, "a program with a context that nobody measured", probe),
            _start(container, "Python", [sys.executable, "-S", "-c", ""]),
            *_crowds(Container(crowded, Path(folder) / "crowd", cap_mib=8192)),
            _reset(container),
        ]


def measure() -> dict[str, Any]:
    """The figures by name, for the report of the benchmarks."""
    return {
        figure.name: {
            "unit": figure.unit,
            "bare": figure.bare,
            "capped": figure.capped,
            "ratio": round(figure.capped / figure.bare, 3),
            "added": round(figure.added, 3),
            "bound": figure.most_added,
            "ok": figure.ok,
        }
        for figure in figures()
    }


def table(results: dict[str, Any]) -> str:
    """For people."""
    rows = [f"{'':52}{'bare':>10}{'capped':>10}{'added':>10}{'bound':>10}"]
    for name, of in results.items():
        numbers = "".join(f"{of[key]:>10.3f}" for key in ("bare", "capped", "added", "bound"))
        rows.append(f"{name:52}{numbers} {of['unit']} {'' if of['ok'] else 'OVER'}".rstrip())
    return "\n".join(rows)


if __name__ == "__main__":
    sys.stdout.write(table(measure()) + "\n")
