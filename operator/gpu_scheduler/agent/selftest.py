"""Tries every layer that could hold a container to its cap, and says which one did.

Each layer is tried by a process of its own (``probe``) that wants more than a small cap. A layer
passes if the process got some memory, none above the cap, and was told that it is out of memory.
Run by the init container of the agent's pod, which gets libgpucap in the way a job gets it, and on
demand by ``gpu-scheduler agent self-test``. A verdict is a value; it never fails a pod. Imports the
standard library only: ``make gpu-check`` runs it where nothing is installed.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpu_scheduler.api.gpunode import Tier

LIMIT_MIB = 256
MARGIN_MIB = 64
TIMEOUT_SECONDS = 60.0
SETTLE_SECONDS = 600.0
"""For so long a layer that failed and passes again is not relied on: it may be a flap."""
LIBRARY = Path("/opt/gpucap/libgpucap.so")
PRELOAD = Path("/etc/ld.so.preload")

ProbeRunner = Callable[[str, Mapping[str, str]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Layer:
    """What came of one layer: ``passed``, ``failed`` or ``untested``."""

    name: "Tier"
    result: str
    detail: str


@dataclass(frozen=True, slots=True)
class SelftestVerdict:
    """The best layer that passed, and all of them, best first."""

    isolation: "Tier"
    layers: tuple[Layer, ...]

    @property
    def failed(self) -> "tuple[Tier, ...]":
        """Layers that did not hold, and no better one did."""
        better = takewhile(lambda each: each.result != "passed", self.layers)
        return tuple(each.name for each in better if each.result == "failed")

    @property
    def sentence(self) -> str:
        """For people."""
        return "; ".join(f"{each.name} {each.result}: {each.detail}" for each in self.layers)

    def to_json(self) -> str:
        """As one JSON object, sentence included."""
        return json.dumps({**asdict(self), "sentence": self.sentence})


def verdict(*layers: Layer) -> SelftestVerdict:
    """The verdict over the layers, given best first."""
    best: Tier = next((each.name for each in layers if each.result == "passed"), "none")
    return SelftestVerdict(best, layers)


def doubted(found: SelftestVerdict, before: Collection[str], *, settled: bool) -> SelftestVerdict:
    """The verdict that counts after layers had failed: a pass that has settled ends a failure.

    Args:
        found: by the last self-test.
        before: layers that had failed by what the node's agent reported before it started.
        settled: what was found stands for ``SETTLE_SECONDS``.
    """
    return verdict(
        *(_doubted(each, settled) if each.name in before else each for each in found.layers)
    )


def _doubted(layer: Layer, settled: bool) -> Layer:
    if layer.result == "untested" and layer.name != "kernel":
        why = "failed before, and could not be tried again"
    elif layer.result == "passed" and not settled:
        why = f"failed before; that it passes now counts after {SETTLE_SECONDS / 60:g} min"
    else:
        return layer
    return replace(layer, result="failed", detail=f"{why} ({layer.detail})")


def parse(text: str) -> SelftestVerdict:
    """A verdict from JSON.

    Raises:
        ValueError: it is not one.
    """
    try:
        found = json.loads(text)
        return verdict(*(Layer(**each) for each in found["layers"]))
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a verdict: {error!r}") from None


def judge(name: "Tier", answer: Mapping[str, Any], limit_mib: int = LIMIT_MIB) -> Layer:
    """What a probe's answer says of a layer."""
    if "error" in answer:
        return Layer(name, "untested", str(answer["error"])[:200])
    got: dict[str, int] = answer["got_mib"]
    words = ", ".join(f"{mib} MiB by {way}" for way, mib in sorted(got.items()))
    total = answer.get("total_mib")
    shown = f", total shown {total} MiB" if total is not None else ""
    detail = f"cap {limit_mib} MiB, got {words}{shown}"
    if any(mib > limit_mib for mib in got.values()):
        return Layer(name, "failed", detail)
    if not got or not all(got.values()):
        # Nothing at all: the device is full, which proves nothing about the cap.
        return Layer(name, "untested", f"the device has no memory to try with ({detail})")
    return Layer(name, "passed", detail)


def interposer(run: ProbeRunner, *, library: Path = LIBRARY, preload: Path = PRELOAD) -> Layer:
    """Try libgpucap, as installed in this container or else by LD_PRELOAD."""
    installed = preload.is_file() and "libgpucap" in preload.read_text()
    if not installed and not library.is_file():
        return Layer("interposer", "untested", f"{library} does not exist")
    with tempfile.TemporaryDirectory(prefix="gpu-self-test-") as state:
        # The cap is less than a context of many GPUs, and what one takes is not what is tried.
        env = {"GPU_MEMORY_LIMIT_MIB": str(LIMIT_MIB), "GPUCAP_CONTEXT_MIB": "0"}
        if not installed:
            env |= {
                "LD_PRELOAD": str(library),
                "GPUCAP_STATE_DIR": state,
                "GPUCAP_LIMIT_FILE": f"{state}/memory-limit-mib",
            }
        return judge("interposer", run("driver", env))


def framework(run: ProbeRunner) -> Layer:
    """Try CuPy's own limit, where CuPy is installed."""
    if find_spec("cupy") is None:
        return Layer("framework", "untested", "CuPy is not in this image")
    limit = str(LIMIT_MIB * 1024 * 1024)
    return judge("framework", run("cupy", {"CUPY_GPU_MEMORY_LIMIT": limit}))


def run_probe(how: str, extra: Mapping[str, str]) -> dict[str, Any]:
    """Start a probe and read its answer."""
    command = [sys.executable, "-m", "gpu_scheduler.agent.probe", how]
    try:
        done = subprocess.run(
            [*command, str(LIMIT_MIB), str(MARGIN_MIB)],
            env={**os.environ, **extra},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no answer within {TIMEOUT_SECONDS:g} s"}
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        said = (done.stderr or done.stdout).strip()[-150:]
        return {"error": f"the probe ended with {done.returncode}: {said}"}
    return answer


def self_test(run: ProbeRunner = run_probe) -> SelftestVerdict:
    """Try the layers that need no rights; the driver's own is the agent's to try."""
    kernel = Layer("kernel", "untested", "tried by the agent itself")
    return verdict(kernel, interposer(run), framework(run))
