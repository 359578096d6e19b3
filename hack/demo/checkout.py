"""Which checkout a running demo is of: its operator, its chart and its `kubectl gpu`.

There is one demo on a machine. Another checkout would change all three below whoever looks at it,
so it is refused; one whose folder is gone has no say any more.
"""

from pathlib import Path

from cluster import ClusterError, Running
from cluster.progress import say

ROOT = Path(__file__).parents[2]
_FILE = "checkout"


def refuse_another(running: Running | None, checkout: Path = ROOT) -> None:
    """Do nothing where this checkout may go on with what runs; None: nothing does.

    Raises:
        ClusterError: it is the demo of another checkout, with both ways out.
    """
    if running is None or not running.is_healthy():
        return
    other = _of(running)
    if other is None or other == checkout:
        return
    if not other.is_dir():
        say(f"demo: that of {other} runs, which is gone; it is that of {checkout} from now on")
        return
    raise ClusterError(
        f"the demo of another checkout runs: {other}; `make demo` there goes on with it, "
        "`make down` there or here ends it"
    )


def keep(running: Running, checkout: Path = ROOT) -> None:
    """From now on it is that of this checkout."""
    (running.folder / _FILE).write_text(str(checkout))


def _of(running: Running) -> Path | None:
    """None: nobody has said it."""
    try:
        return Path((running.folder / _FILE).read_text())
    except OSError:
        return None
