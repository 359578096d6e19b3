"""What the figures were measured on: machine, versions, state of the repository."""

import os
import platform
import re
import subprocess
from pathlib import Path

from tests.perf.settings import ROOT

from cluster.programs import KUBERNETES_VERSION, TOOLS_FOLDER
from gpu_scheduler import __version__


def machine() -> dict[str, object]:
    """The machine, its kernel and the versions of what runs on it."""
    kib = int(_field("/proc/meminfo", "MemTotal").split()[0])
    return {
        "cpu": _field("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "memory_gib": round(kib / (1 << 20), 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "kubernetes": KUBERNETES_VERSION,
        "etcd": _required("etcd", "go.etcd.io/etcd/server/v3"),
        "kwok": _required("kwok", "sigs.k8s.io/kwok"),
        "gpu_scheduler": __version__,
        "commit": _git("rev-parse", "--short=12", "HEAD"),
        "changed": bool(_git("status", "--porcelain", "--", "operator", "hack", "tests/perf")),
        "load_at_start": round(os.getloadavg()[0], 2),
    }


def _field(path: str, name: str) -> str:
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return "0"


def _required(tool: str, module: str) -> str:
    text = (TOOLS_FOLDER / tool / "go.mod").read_text()
    found = re.search(rf"{re.escape(module)} v(\S+)", text)
    return found[1] if found else "?"


def _git(*arguments: str) -> str:
    answer = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return answer.stdout.strip()
