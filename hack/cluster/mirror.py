"""Fills a folder that serves as a mirror, from the programs in the cache.

Any web server over the folder will do; so does its path. Only pinned files go into it,
since nobody would accept others.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path

from cluster.build import path_of
from cluster.errors import ClusterError
from cluster.fetch_offers import path_in_mirror
from cluster.fetch_pins import Pins, this_platform
from cluster.files import sha256_of, write_whole
from cluster.programs import PROGRAMS, Program, key, version
from cluster.progress import say

SUMS = "SHA256SUMS"


def fill(folder: Path, pins: Pins, programs: Iterable[Program] = PROGRAMS) -> list[str]:
    """Puts what is in the cache, and pinned, into `folder`; says what was left out, and why.

    A file appears there only when it is whole; what the folder has besides stays.

    Raises:
        ClusterError: the folder cannot be written.
    """
    machine = this_platform()
    left_out: list[str] = []
    sums: dict[str, str] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for program in programs:
            source = path_of(program)
            if not source.exists():
                left_out.append(f"{program.name} is not in the cache: `python -m cluster build`")
                continue
            sha256 = sha256_of(source)
            if not is_pinned(program, pins, machine, sha256):
                left_out.append(
                    f"{program.name} in the cache is no pinned file (sha256 {sha256[:12]}…), "
                    "so nobody would accept it: `python -m cluster pin` pins it"
                )
                continue
            path = path_in_mirror(machine, program.module, key(program), program.name)
            _put(source, folder / path)
            sums[path] = sha256
        _write_sums(folder, sums)
    except OSError as error:
        raise ClusterError(f"{folder} cannot be written ({error.strerror})") from None
    size = sum((folder / path).stat().st_size for path in sums)
    say(f"{len(sums)} programs ({size / 1_000_000:.0f} MB) are in {folder}, digests in {SUMS}")
    return left_out


def is_pinned(program: Program, pins: Pins, machine: str, sha256: str) -> bool:
    """Whether a machine of this kind would accept the file for `program`."""
    digests = [
        built.digest
        for built in pins.built.get(program.name, ())
        if built.platform == machine and built.key == key(program)
    ]
    published = pins.published_of(program.name, version(program))
    digests += published.program(machine) if published is not None else ()
    return sha256 in {digest.sha256 for digest in digests}


def _put(source: Path, target: Path) -> None:
    """A copy, not a link: whoever edits the mirror must not edit the cache."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    shutil.copyfile(source, partial)
    partial.chmod(0o755)
    partial.replace(target)


def _write_sums(folder: Path, new: dict[str, str]) -> None:
    """SHA256SUMS for `sha256sum -c`; lines of other files that are still there stay."""
    path = folder / SUMS
    sums: dict[str, str] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            sha256, _, name = line.partition("  ")
            if name and (folder / name).exists():
                sums[name] = sha256
    sums |= new
    write_whole(path, "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(sums.items())))
