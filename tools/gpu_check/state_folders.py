"""State folders that no ledger can be kept in: nothing is given out, and a word is said of it.

Each is made by mounts that only the processes of one box see, in a user namespace where this is not
root. Where the machine allows no such mounts the line is skipped.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from gpu_check import findings
from gpu_check.boxes import Box
from gpu_check.findings import Finding, SkippedError
from gpu_check.probes import OUT_OF_MEMORY, PIECES_MIB, Bench

CHECK = "no ledger"
PROCESSES = 2  # each would have the whole cap
WORDS = "memory is refused"
OF_CONTAINER = Path("/opt/gpu-scheduler/state")
HEADER_BYTES, LEDGER_BYTES = 4096, 659456  # native/libgpucap/src/ledger.h
# A container's limit file in /etc, which is otherwise as it was, and no state folder.
ABSENT = 'mount --rbind /etc "$1/real" && mount --bind "$1/etc" /etc && shift && exec "$@"'
READ_ONLY = 'mount -t tmpfs -o ro none "$1" && shift && exec "$@"'
# Pages of the ledger are holes, and there is no room for them.
FULL = """mount -t tmpfs -o size=64k,mode=1777 none "$1" &&
cp --sparse=always "$2" "$1/ledger" && ! dd if=/dev/zero of="$1/full" 2>/dev/null &&
shift 2 && exec "$@\""""


class StateFolderCheck(Bench):
    """Makes the folders and tries."""

    def findings(self) -> Iterator[Finding]:
        """All of them."""
        ways: dict[str, Callable[[Box], Box]] = {
            "no state folder": self._absent,
            "read-only": self._read_only,
            "full disk": self._full,
        }
        return findings.each((CHECK, how, partial(self._try, way)) for how, way in ways.items())

    def _absent(self, box: Box) -> Box:
        if OF_CONTAINER.exists():
            raise SkippedError(f"this machine has {OF_CONTAINER}")
        real, etc = box.folder / "real", box.folder / "etc"
        real.mkdir()
        (etc / "gpu-scheduler").mkdir(parents=True)
        for name in os.listdir("/etc"):
            if name != "gpu-scheduler":
                (etc / name).symlink_to(real / name)
        (etc / "gpu-scheduler" / "memory-limit-mib").write_text(f"{self.cap_mib}\n")
        return self._mounted(box, ABSENT, box.folder)

    def _read_only(self, box: Box) -> Box:
        return self._mounted(*self._with_state(box, READ_ONLY))

    def _full(self, box: Box) -> Box:
        with self.start(box):
            pass  # who makes the ledger; without the library there is none
        ledger, holes = box.folder / "ledger", box.folder / "holes"
        header = ledger.read_bytes()[:HEADER_BYTES] if ledger.exists() else b""
        with holes.open("wb") as file:
            file.write(header)
            file.truncate(LEDGER_BYTES)
        return self._mounted(*self._with_state(box, FULL), holes)

    def _with_state(self, box: Box, script: str) -> tuple[Box, str, Path]:
        """A state folder apart from the box's own, which stays as it is."""
        state = box.folder / "state"
        state.mkdir()
        environment = {**box.environment, "GPUCAP_STATE_DIR": str(state)}
        return replace(box, environment=environment), script, state

    def _mounted(self, box: Box, script: str, *paths: Path) -> Box:
        """The box whose processes have these mounts."""
        if not shutil.which("unshare"):
            raise SkippedError("there is no unshare (util-linux) to make mounts with")
        own = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
        wrapper = (*own, "sh", "-c", script, "sh", *map(str, paths))
        tried = subprocess.run(
            [*wrapper, "true"], env=box.environment, capture_output=True, text=True, timeout=60
        )
        if tried.returncode:
            said = findings.last_line(tried.stderr)
            raise SkippedError(f"no mounts of one's own here: {said}")
        return replace(box, wrapper=wrapper)

    def _try(self, prepare: Callable[[Box], Box], check: str, how: str) -> Finding:
        box, got, wrong = prepare(self.make_box(self.cap_mib)), 0.0, set[str]()
        with ExitStack() as stack:
            probes = [stack.enter_context(self.start(box, context=False)) for _ in range(PROCESSES)]
            for probe in probes:
                (answer,) = probe.ask("context")
                if not answer:
                    got += probe.fill("alloc", self.cap_mib + 2 * PIECES_MIB[0]).mib
                elif answer != OUT_OF_MEMORY:
                    wrong.add(f"refused with CUresult {answer:.0f}, not with out-of-memory (2)")
                elif WORDS not in probe.complaints.read_text(errors="replace"):
                    wrong.add("refused without a word on stderr")
        if got:
            wrong.add(f"got {got:g} MiB that nobody counts")
        return findings.judged(check, how, findings.said(*sorted(wrong)), self.cap_mib, got)
