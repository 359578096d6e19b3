"""Calls the command line as people do: the program itself, with a kubeconfig."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

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
