"""Hands over to kubectl: what it does with a pod's streams, ports and logins is done best there.

This process becomes kubectl, so signals, terminals and exit codes are its own. Nothing of ours may
be open by then: temporary files with credentials would stay.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from typing import NoReturn

from gpu_scheduler.cli.ending import Failed
from gpu_scheduler.cli.where import ClusterOptions


def hand_over(where: ClusterOptions, arguments: Sequence[str]) -> NoReturn:
    """Become kubectl, on the same cluster.

    Raises:
        Failed: there is no kubectl.
    """
    program = _program(where, arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvp(program, ["kubectl", *where.kubectl(), *arguments])
    except OSError as error:
        raise Failed(f"{program} cannot be run: {error.strerror}") from None


def output_of(where: ClusterOptions, arguments: Sequence[str]) -> bytes:
    """What kubectl prints.

    Raises:
        Failed: there is no kubectl, or it fails.
    """
    import subprocess

    program = _program(where, arguments)
    done = subprocess.run([program, *where.kubectl(), *arguments], capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["no word of it"]
        raise Failed(f"kubectl exec: {said[-1]}")
    return done.stdout


def line_of(where: ClusterOptions, arguments: Sequence[str]) -> list[str]:
    """What to run for this, on the same cluster.

    Raises:
        Failed: there is no kubectl.
    """
    return [_program(where, arguments), *where.kubectl(), *arguments]


def _program(where: ClusterOptions, arguments: Sequence[str]) -> str:
    program = shutil.which("kubectl")
    if program is None:
        raise Failed(f"kubectl is not in $PATH; it would do: {_line(where, arguments)}")
    return program


def _line(where: ClusterOptions, arguments: Sequence[str]) -> str:
    import shlex

    return shlex.join(["kubectl", *where.kubectl(), *arguments])
