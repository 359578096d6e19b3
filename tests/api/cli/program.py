"""Calls the command line with a kubeconfig: as people do, the program itself, or in this process.

A program costs a second of imports. It is called where the process is the point: once for each way
to a cluster, for what ends it and in which encoding it writes, and where it becomes kubectl.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml
from click.testing import CliRunner

from gpu_scheduler.main import app

ROOT = Path(__file__).parents[3]
Done = subprocess.CompletedProcess[str]


def gpu(kubeconfig: Path | str, *arguments: str, **environment: str) -> Done:
    """What ``kubectl gpu ARGUMENTS`` prints, and how it ends."""
    return subprocess.run(
        [sys.executable, "-m", "gpu_scheduler.main", *arguments],
        env={
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "PYTHONPATH": str(ROOT / "operator"),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def gpu_here(kubeconfig: Path | str, *arguments: str, **environment: str) -> Done:
    """The same in this process, which an error that no command expects leaves as an exception.

    Not for commands that become kubectl: this process would.
    """
    runner = CliRunner(env={"KUBECONFIG": str(kubeconfig), **environment})
    with patch("os.execvp", side_effect=AssertionError("call the program itself")):
        found = runner.invoke(app, arguments, prog_name="gpu-scheduler", catch_exceptions=False)
    return Done(arguments, found.exit_code, found.stdout, found.stderr)


def refused(done: Done) -> str:
    """The one line in which a command has ended that the cluster, or the way to it, refused."""
    assert (done.returncode, done.stdout) == (1, ""), done
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("gpu-scheduler: "), done.stderr
    return done.stderr.removeprefix("gpu-scheduler: ")


def write_kubeconfig(path: Path, user: dict[str, Any], **cluster: Any) -> Path:
    """A kubeconfig of one context."""
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(document))
    return path
