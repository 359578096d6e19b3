"""``make dashboard-real``: the pages in a browser, on a real operator and control plane.

Options go on to Playwright, such as the name of a spec; ends as Playwright does. ``--stay`` runs no
test: it says where the pages are until Ctrl-C, for who wants to look.
"""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Event

from tests.api.replica import ROOT
from tests.dashboard.stand import stand


def main(arguments: Sequence[str]) -> int:
    """Playwright's exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.dashboard", description=__doc__)
    parser.add_argument("--stay", action="store_true", help="no tests; until Ctrl-C")
    chosen, more = parser.parse_known_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up as after Ctrl-C
    subprocess.run(["hack/dashboard.sh", "ready"], cwd=ROOT, check=True)
    with stand() as handed:
        if chosen.stay:
            return _stay(handed)
        command = ["npm", "--prefix", "dashboard", "run", "--silent", "real", "--", *more]
        environment = {**os.environ, "DASHBOARD_STAND": str(handed)}
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def _stay(handed: Path) -> int:
    print(f"{handed} says where, and has the tokens; Ctrl-C ends it", flush=True)  # noqa: T201
    try:
        Event().wait()
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
