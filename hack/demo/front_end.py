"""The dashboard's front end, built beside everything else, which goes first."""

import os
import subprocess
from concurrent.futures import Future, wait
from pathlib import Path

ROOT = Path(__file__).parents[2]
# What it takes to see that nothing of it has changed; who waits for images waits so long for it.
CHECK_SECONDS = 5.0


def build() -> str:
    """Build dashboard/dist where that is due; why there is none, empty when there is one."""
    done = subprocess.run(
        ["nice", "-n", "19", "hack/dashboard.sh", "build"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return "" if done.returncode == 0 else last_words(done.stdout)


def last_words(output: str) -> str:
    """The last line of what the build said, without who says it."""
    lines = output.strip().splitlines() or ["its build ended without a word"]
    return lines[-1].removeprefix("dashboard: ")


def is_there(built: "Future[str]") -> bool:
    """Whether it is built already, or as good as."""
    if not (ROOT / "dashboard" / "dist").is_dir():
        return False
    ready, _ = wait([built], timeout=CHECK_SECONDS)
    return bool(ready) and not built.result()


def give_way() -> None:
    """This thread, and the processes that it starts, take what others leave."""
    os.setpriority(os.PRIO_PROCESS, 0, 19)  # of a thread, as Linux has it
