"""The processes that answer what-ifs just now, as the kernel sees them."""

from pathlib import Path

from tests.perf.procfs import memory

from gpu_scheduler.web.dashboard.what_if import PROGRAM


def peaks_mib(parent: int) -> dict[int, float]:
    """The most memory that each of a process's own has held so far, by pid, MiB.

    Not what ``wait`` says of an ended one: there its parent's memory counts, up to ``exec``.
    """
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            ours = f"\nPPid:\t{parent}\n" in (folder / "status").read_text()
            if ours and PROGRAM.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                found[int(folder.name)] = memory(int(folder.name)).peak_rss_mib
        except (OSError, KeyError):
            continue  # it has just ended
    return found
