"""The demo's commands: `python -m demo up | show | dashboard | down`."""

import argparse
import shutil
import sys

from cluster import ClusterError, connect, down
from cluster.progress import say
from demo import dashboard, story
from demo.environment import NAME
from demo.jobs import RESULTS


def main() -> int:
    """Runs one command and returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument(
        "command", choices=("up", "show", "dashboard", "down"), nargs="?", default="up",
        help="up: run it all (default); show: the GPUs and jobs as they are; "
        "dashboard: look at it in a browser, with options of kubectl gpu dashboard; "
        "down: remove it",
    )  # fmt: skip
    parsed, more = parser.parse_known_args()
    command = parsed.command
    if more and command != "dashboard":
        parser.error(f"{command} takes no options: {' '.join(more)}")
    try:
        if command == "down":
            print(f"cluster {NAME}: " + ("stopped, and cleaned up" if down(NAME) else "not there"))
            shutil.rmtree(RESULTS, ignore_errors=True)
        elif command in ("show", "dashboard"):
            running = connect(NAME)
            if running is None:
                raise ClusterError("the demo does not run; `make demo` starts it")
            if command == "show":
                story.show(running)
            else:
                dashboard.look(running, more)
        else:
            story.tell()
    except ClusterError as error:
        say(f"demo: {error}")
        return 1
    except KeyboardInterrupt:
        say("\ndemo: interrupted; `make demo` goes on from here, `make down` cleans up")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
