"""A port of this machine that leads to the dashboard, by kubectl, for as long as it is wanted."""

import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from gpu_scheduler.cli.ending import Failed

_SAID = re.compile(r"^Forwarding from 127\.0\.0\.1:(\d+) ")


@contextmanager
def forwarded(command: Sequence[str]) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """Kubectl with these arguments, and its port here; it ends with the context.

    Raises:
        Failed: it ends before it forwards anything.
    """
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            found = _SAID.match(process.stdout.readline())
            if found is None:
                process.terminate()
                said = process.stderr.read().strip().splitlines()
                raise Failed(f"kubectl port-forward: {said[-1] if said else 'no word of it'}")
            yield process, int(found[1])
        finally:
            process.terminate()
