"""How long a newcomer waits for the picture: ``python -m tests.perf.bench_start``.

A clone of the last commit, with empty caches of every tool, runs `make demo` twice and `make down`
after each. Programs come from a mirror of this machine's cache on loopback, with ``--mirror off``
from source. ``--fault`` makes the mirror wrong about one program (certs, the quickest to build),
which is then built. Says how long it took until the picture, and in all, and what `make down` left;
ends with 1 when a goal is missed or something was left. Needs root for the real node.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.perf.machine import machine
from tests.perf.settings import ROOT
from tests.unit.hack.file_server import Answer, Server, right, says_length, stalled, status

from cluster import fetch_pins, mirror
from cluster.fetch_offers import VARIABLE

FIRST_SECONDS, SECOND_SECONDS = 180, 45
PICTURE, WAY = "Who holds what", "from source, since"
FAULTS = ("none", "cut", "changed", "missing", "stalled", "refused")
# Where `make down` must leave nothing; what others write there all the time is left out.
_PLACES = (
    "/etc",
    "/opt",
    "/run",
    "/usr/local",
    "/var/lib",
    "/home",
    str(Path.home()),
    "/sys/fs/cgroup",
)
_RESTLESS = (
    str(Path.home() / ".cache"),
    str(Path.home() / ".config/go/telemetry"),  # Go counts its own runs there
    str(Path.home() / "go/pkg/mod"),
    "/var/lib/apt",
    "/var/lib/dpkg",
    "/sys/fs/cgroup/system.slice",
)


def _from(file: Path) -> Answer:
    """The file as it is when it is asked for."""
    return lambda handler: right(file.read_bytes())(handler)


def _wrong(content: bytes, fault: str) -> Answer:
    """What a mirror with the fault sends instead."""
    half, length = content[: len(content) // 2], len(content)
    return {
        "cut": says_length(half, length),
        "changed": right(content[:-1] + bytes([content[-1] ^ 1])),
        "missing": status(404),
        "stalled": stalled(half, length),
    }[fault]


@contextmanager
def _served(folder: Path, fault: str) -> Iterator[str]:
    """The URL of a mirror; with the fault `refused` nobody listens there."""
    with Server() as server:
        for file in folder.rglob("*"):
            if file.is_file():
                wrong = file.name == "certs" and fault not in ("none", "refused")
                path = f"/{file.relative_to(folder)}"
                server.answers[path] = _wrong(file.read_bytes(), fault) if wrong else _from(file)
        if fault != "refused":
            yield server.url
    if fault == "refused":
        yield server.url


def _demo(clone: Path, environment: dict[str, str]) -> tuple[float, float, list[str]]:
    """Seconds to the picture and in all, and the lines that say why something was built."""
    began, picture, why = time.monotonic(), 0.0, []
    process = subprocess.Popen(
        ["make", "demo"], cwd=clone, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        sys.stderr.write(f"{time.monotonic() - began:7.1f}  {line}")
        if line.startswith(PICTURE):
            picture = time.monotonic() - began
        if WAY in line:
            why.append(line.strip())
    if process.wait() or not picture:
        raise SystemExit("make demo failed; its last lines are above")
    return picture, time.monotonic() - began, why


def _there() -> set[str]:
    """Mounts, network links, and paths, of which a demo may have made some."""
    found = {line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()}
    found |= {f"link {name}" for name in os.listdir("/sys/class/net")}
    for place in _PLACES:
        for folder, folders, files in os.walk(place):
            folders[:] = [f for f in folders if not f"{folder}/{f}".startswith(_RESTLESS)]
            found.update(f"{folder}/{name}" for name in (*folders, *files))
    return found


def _processes(folder: Path) -> list[str]:
    """Those whose environment or command line names a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) == os.getpid():
            continue
        try:
            texts = [(process / name).read_bytes() for name in ("cmdline", "environ")]
        except OSError:
            continue
        if any(str(folder).encode() in text for text in texts):
            found.append(texts[0].replace(b"\0", b" ").decode(errors="replace")[:120])
    return found


def measure(
    folder: Path, fault: str, *, mirrored: bool, once: bool, warm_go: bool
) -> dict[str, object]:
    """One newcomer, in an empty folder."""
    clone, caches = folder / "clone", folder / "c"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    left_out = mirror.fill(folder / "mirror", fetch_pins.read()) if mirrored else []
    before = _there()
    with _served(folder / "mirror", fault) as url:
        environment = {
            **{k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MAKEFLAGS")},
            "XDG_CACHE_HOME": str(caches),  # of this project, and of uv, pip and Go
            "PYTHONDONTWRITEBYTECODE": "",
            VARIABLE: url if mirrored else "off",
        }
        environment.pop("GPU_SCHEDULER_CACHE", None)
        compiled = os.environ.get("GOCACHE") or str(Path.home() / ".cache" / "go-build")
        environment["GOCACHE"] = compiled if warm_go else str(caches / "go-build")
        first = _demo(clone, environment)
        down = ["make", "down"]
        subprocess.run(down, cwd=clone, env=environment, check=True, stdout=sys.stderr)
        second = None if once else _demo(clone, environment)
        subprocess.run(down, cwd=clone, env=environment, check=True, stdout=sys.stderr)
    return {
        "fault": fault if mirrored else "no mirror",
        "Go's cache": "warm" if warm_go else "empty",
        "not in the mirror": left_out,
        "seconds to the picture": round(first[0], 1),
        "seconds in all": round(first[1], 1),
        "built, and why": first[2],
        "second run: to the picture": second and round(second[0], 1),
        "second run: in all": second and round(second[1], 1),
        "left by make down": sorted(_there() - before)[:20] + _processes(caches),
    }


def main() -> int:
    """Measure, print JSON; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.perf.bench_start", description=__doc__)
    parser.add_argument("--fault", choices=FAULTS, default="none", help="of the mirror")
    parser.add_argument("--mirror", choices=("on", "off"), default="on")
    parser.add_argument("--once", action="store_true", help="no second run")
    parser.add_argument("--warm-go", action="store_true", help="with what Go has compiled before")
    options = parser.parse_args()
    about, folder = machine(), Path(tempfile.mkdtemp(prefix="gpus-"))
    try:
        mirrored = options.mirror == "on"
        found = measure(
            folder, options.fault, mirrored=mirrored, once=options.once, warm_go=options.warm_go
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.write(json.dumps({"machine": about, **found}, indent=2) + "\n")
    goals = options.fault == "none" and mirrored
    missed = goals and (
        float(str(found["seconds to the picture"])) > FIRST_SECONDS
        or float(str(found["second run: in all"] or 0)) > SECOND_SECONDS
    )
    return int(bool(missed or found["left by make down"]))


if __name__ == "__main__":
    sys.exit(main())
