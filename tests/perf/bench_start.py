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
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.perf.machine import machine
from tests.perf.settings import ROOT

from cluster import fetch_pins, mirror
from cluster.fetch_offers import VARIABLE

FIRST_SECONDS, SECOND_SECONDS = 180, 45
PICTURE, WAY = "Who holds what", "from source, since"
FAULTS = ("none", "cut", "changed", "missing", "stalled", "refused")
_STALL_SECONDS = 60.0
# Where `make down` must leave nothing; what others write there all the time is left out.
_PLACES = ("/etc", "/opt", "/run", "/usr/local", "/var/lib", "/home", "/root", "/sys/fs/cgroup")
_RESTLESS = ("/root/.cache", "/var/lib/apt", "/var/lib/dpkg", "/sys/fs/cgroup/system.slice")


class _Handler(SimpleHTTPRequestHandler):
    """A mirror that may be wrong about one program."""

    def __init__(self, *arguments: object, fault: str, **more: object) -> None:
        self._fault = fault
        super().__init__(*arguments, **more)  # type: ignore[arg-type]

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """The file, or what the fault makes of it."""
        if not self.path.endswith("/certs") or self._fault == "none":
            super().do_GET()
            return
        data = Path(self.translate_path(self.path)).read_bytes()
        if self._fault == "missing":
            self.send_error(404)
            return
        if self._fault == "changed":
            data = data[:-1] + bytes([data[-1] ^ 1])
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self._fault == "changed":
            self.wfile.write(data)
            return
        self.wfile.write(data[: len(data) // 2])
        if self._fault == "stalled":
            time.sleep(_STALL_SECONDS)
        self.close_connection = True


@contextmanager
def _served(folder: Path, fault: str) -> Iterator[str]:
    """The URL of a mirror; with the fault `refused` nobody listens there."""
    handler = partial(_Handler, directory=str(folder), fault=fault)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads, server.block_on_close = True, False
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        if fault == "refused":
            server.server_close()
            yield url
            return
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield url
        server.shutdown()


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


def measure(folder: Path, fault: str, *, mirrored: bool, once: bool) -> dict[str, object]:
    """One newcomer, in an empty folder."""
    clone, caches = folder / "clone", folder / "c"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    left_out = mirror.fill(folder / "mirror", fetch_pins.read()) if mirrored else []
    before = _there()
    with _served(folder / "mirror", fault) as url:
        environment = {
            **{k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MAKEFLAGS")},
            "XDG_CACHE_HOME": str(caches),  # of this project, and of uv, pip and Go
            "GOCACHE": str(caches / "go-build"),
            "PYTHONDONTWRITEBYTECODE": "",
            VARIABLE: url if mirrored else "off",
        }
        environment.pop("GPU_SCHEDULER_CACHE", None)
        first = _demo(clone, environment)
        down = ["make", "down"]
        subprocess.run(down, cwd=clone, env=environment, check=True, stdout=sys.stderr)
        second = None if once else _demo(clone, environment)
        subprocess.run(down, cwd=clone, env=environment, check=True, stdout=sys.stderr)
    return {
        "fault": fault if mirrored else "no mirror",
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
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="gpus-"))
    try:
        mirrored = options.mirror == "on"
        found = measure(folder, options.fault, mirrored=mirrored, once=options.once)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.write(json.dumps({"machine": machine(), **found}, indent=2) + "\n")
    goals = options.fault == "none" and mirrored
    missed = goals and (
        float(str(found["seconds to the picture"])) > FIRST_SECONDS
        or float(str(found["second run: in all"] or 0)) > SECOND_SECONDS
    )
    return int(bool(missed or found["left by make down"]))


if __name__ == "__main__":
    sys.exit(main())
