"""Other programs, run to their end; the words of one that fails are told."""

import subprocess
from collections.abc import Sequence
from typing import Any

from cluster.errors import ClusterError

Done = subprocess.CompletedProcess[str]


def run(command: Sequence[object], what: str = "", *, check: bool = True, **more: Any) -> Done:
    """What came of a command.

    Args:
        command: the program and its arguments.
        what: begins the message; by default the command does.
        check: whether a failure is an error.
        **more: as for ``subprocess.run``.

    Raises:
        ClusterError: it failed; with its words.
    """
    words = list(map(str, command))
    done = subprocess.run(words, capture_output=True, text=True, check=False, **more)
    if check and done.returncode:
        raise ClusterError(f"{what or ' '.join(words)}: {done.stderr.strip()}")
    return done
