"""Real clients of the driver in an environment of their own, made once per user and machine.

``python -m tests.native.clients`` runs each in a capped container beside a neighbour, and prints
the table of what it got and saw.
"""

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.native.build import build
from tests.native.client_cases import CLIENTS
from tests.native.container import Container, build_programs
from tests.native.fake_gpu import FakeGPU

import python_environment

ROOT = Path(__file__).parents[2]
PIECE_MIB, CAP_MIB, NEIGHBOURS_MIB = 128, 1024, 2048


@dataclass(frozen=True, slots=True)
class Row:
    """What one client got and saw.

    Attributes:
        pieces: until it was refused; 1 of a client that only looks.
        total_mib, free_mib: as it was told.
        own: it saw itself.
        others: processes of others that it saw; None: it does not look for any.
        peak_mib: the most that the device held by then, the neighbour and contexts included.
    """

    client: str
    pieces: int
    total_mib: float
    free_mib: float
    own: bool
    others: int | None
    peak_mib: int


def interpreter() -> Path:
    """A Python with the clients' packages, pinned by hash.

    Raises:
        CalledProcessError: they cannot be had.
    """
    return python_environment.ensure("clients", "the real clients of the driver")


@contextmanager
def neighbour(gpu: FakeGPU, folder: Path) -> Iterator[None]:
    """Another container on the device, in namespaces of its own, that holds what it may."""
    box = Container(gpu, folder, cap_mib=NEIGHBOURS_MIB)
    holder = box.start([*in_sandbox(), *box.probe_command("linked", "alloc", PIECE_MIB, "hold")])
    try:
        line = holder.stdout.readline() if holder.stdout else ""
        assert line.startswith(f"{NEIGHBOURS_MIB // PIECE_MIB} "), line
        yield
    finally:
        holder.communicate("")


def in_sandbox() -> list[str]:
    """The first process of a PID namespace, as a container's is."""
    return ["unshare", "-pf" if os.geteuid() == 0 else "-rpf", "--mount-proc"]


def look(box: Container, python: Path, client: str) -> Row:
    """Run a client to its end.

    Raises:
        AssertionError: it failed, with its words.
    """
    script = str(ROOT / "tests/native/client_cases.py")
    done = box.run([*in_sandbox(), str(python), script, client, str(PIECE_MIB)])
    assert (done.returncode, done.stderr) == (0, ""), f"{client}: {done.stderr[-2000:]}"
    seen = json.loads(done.stdout.splitlines()[-1])
    listed = seen.get("processes")
    return Row(
        client,
        seen["pieces"],
        seen["total_mib"],
        seen["free_mib"],
        own=listed is not None and seen["pid"] in listed,
        others=None if listed is None else sum(pid != seen["pid"] for pid in listed),
        peak_mib=box.gpu.peak_mib(),
    )


def table(rows: list[Row]) -> str:
    """Markdown."""
    lines = [
        f"| client, cap {CAP_MIB} MiB, by {PIECE_MIB} | got MiB | told: total, free | lists |",
        "| --- | ---: | ---: | --- |",
    ]
    for row in rows:
        lists = "–" if row.others is None else f"itself, {row.others} of others"
        got = row.pieces * PIECE_MIB
        told = f"{row.total_mib:.0f}, {row.free_mib:.0f}"
        lines.append(f"| {row.client} | {got} | {told} | {lists} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    native, python = build(), interpreter()
    build_programs(native)
    with tempfile.TemporaryDirectory() as folder:
        gpu = FakeGPU(Path(folder) / "gpu", native)
        with neighbour(gpu, Path(folder) / "neighbour"):
            rows = [look(Container(gpu, Path(folder) / name), python, name) for name in CLIENTS]
    sys.stdout.write(table(rows) + "\n")


if __name__ == "__main__":
    main()
