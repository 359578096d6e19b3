"""``python -m tests.native.caps_programs --count 5000``: plays them, says what was wrong.

A program that fails is made as short as it can be and still fail; it is printed, and with --keep
written to a folder. ``--play FILE`` plays one again. Every fourth program by its seed runs in a
container where nobody has told what a context takes.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.native.build import build
from tests.native.caps_programs import program as programs
from tests.native.caps_programs.generator import program
from tests.native.caps_programs.minimise import minimised
from tests.native.caps_programs.program import Program
from tests.native.caps_programs.stage import Stage

CAPS_MIB = (200, 333, 512, 1024)
AT_A_TIME = 50  # programs in one container, one after the other
UNMEASURED = 4  # every so many programs
MOST_FAILURES = 10


def cap_of(seed: int) -> int:
    """The cap that the program of a seed has."""
    return CAPS_MIB[seed // AT_A_TIME % len(CAPS_MIB)]


def is_measured(seed: int) -> bool:
    """Whether the program of a seed runs where it is known what a context takes."""
    return seed % UNMEASURED != 0


def fails(folder: Path, tried: Program, cap_mib: int, *, measured: bool) -> str:
    """What is wrong with a program in a container of its own; empty: nothing."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        stage = Stage(Path(own), build(), cap_mib, measured=measured)
        try:
            return str(stage.play(tried) or "")
        finally:
            stage.close()


def play(seeds: range) -> list[tuple[int, str]]:
    """Seeds of programs that failed, and with which words."""
    found: list[tuple[int, str]] = []
    with tempfile.TemporaryDirectory(prefix="caps-") as folder:
        for measured in (True, False):
            todo = [seed for seed in seeds if is_measured(seed) is measured]
            found += _play(Path(folder), todo, cap_of(seeds.start), measured=measured)
    return found


def _play(folder: Path, todo: list[int], cap_mib: int, *, measured: bool) -> list[tuple[int, str]]:
    found = []
    while todo:
        stage = Stage(folder / str(todo[0]), build(), cap_mib, measured=measured)
        try:
            while todo:
                seed = todo.pop(0)
                if fault := stage.play(program(seed)):
                    found.append((seed, str(fault)))
                    break  # the next one begins anew
        finally:
            stage.close()
    return found


def _parts(first: int, count: int) -> Iterator[range]:
    for begin in range(first, first + count, AT_A_TIME):
        yield range(begin, min(begin + AT_A_TIME, first + count))


def main() -> int:
    """0: nothing was wrong."""
    options = argparse.ArgumentParser(
        prog="python -m tests.native.caps_programs", description=__doc__
    )
    options.add_argument("--count", type=int, default=5000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--keep", type=Path, help="a folder for what failed")
    options.add_argument("--play", type=Path, help="a file with one program")
    options.add_argument("--cap", type=int, default=512, help="of --play, MiB")
    options.add_argument("--unmeasured", action="store_true", help="of --play: as every fourth")
    options.add_argument("--workers", type=int, default=os.cpu_count())
    chosen = options.parse_args()
    build()
    if chosen.play:
        tried = programs.read(chosen.play.read_text().splitlines())
        with tempfile.TemporaryDirectory(prefix="caps-") as folder:
            said = fails(Path(folder), tried, chosen.cap, measured=not chosen.unmeasured)
        sys.stdout.write(f"{said or 'nothing is wrong'}\n")
        return 1 if said else 0
    began, found = time.monotonic(), list[tuple[int, str]]()
    with ProcessPoolExecutor(chosen.workers) as pool:
        for failed in pool.map(play, _parts(chosen.seed, chosen.count)):
            found += failed
    seconds = time.monotonic() - began
    sys.stdout.write(f"{chosen.count} programs in {seconds:.0f} s, {len(found)} failed\n")
    for seed, words in found[:MOST_FAILURES]:
        _report(seed, words, chosen.keep)
    return 1 if found else 0


def _report(seed: int, words: str, keep: Path | None) -> None:
    cap, measured = cap_of(seed - (seed - 1) % AT_A_TIME), is_measured(seed)
    contexts = "" if measured else ", contexts unmeasured"
    sys.stdout.write(f"\nseed {seed}, cap {cap} MiB{contexts}: {words}\n")
    with tempfile.TemporaryDirectory(prefix="caps-") as folder:
        short = minimised(
            program(seed),
            lambda tried: bool(fails(Path(folder), tried, cap, measured=measured)),
        )
    if short is None:
        sys.stdout.write("it does not fail again by itself\n")
        return
    sys.stdout.write("".join(f"  {', '.join(map(str, step))}\n" for step in short))
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{seed}-{cap}{'' if measured else '-unmeasured'}.json").write_text(
            programs.written(short)
        )


if __name__ == "__main__":
    sys.exit(main())
