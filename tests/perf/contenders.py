"""Whose queue is measured: a checkout of this repository, or the stock scheduler.

The latter is the common measure, where others cannot be run. A checkout gives the operator that
runs, the chart and the CRDs; the harness is always the one that was called, and talks to the API
server alone. So an older commit and this one are measured by the same code. Called by ``queues``
and by the command line.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.perf.settings import ROOT
from tests.perf.workload import IMAGE, NAMESPACE

from gpu_scheduler.api.names import API_VERSION, GROUP, VERSION
from gpu_scheduler.kube.paths import job, of_group

MILLI = "bench.example.org/gpu-milli"
"""A resource of the fake nodes by which stock pods ask for a part of a GPU, as ours do."""
_RUN_SECONDS = "kwok.x-k8s.io/run-seconds"


@dataclass(frozen=True, slots=True)
class Contender:
    """One to be measured.

    Attributes:
        name: for tables and files.
        root: its checkout; None: the stock scheduler, with plain Jobs.
    """

    name: str
    root: Path | None

    @property
    def kind(self) -> str:
        """Plural of what is applied."""
        return "jobs" if self.root is None else "gpujobs"

    def job(
        self, name: str, *, milli: int, pods: int = 1, run_seconds: int | None = None
    ) -> tuple[str, Any]:
        """Path and body of a job; without ``run_seconds`` its pods run until they are ended."""
        notes = {} if run_seconds is None else {_RUN_SECONDS: str(run_seconds)}
        if self.root is None:
            return _plain(name, milli, pods, notes)
        spec: dict[str, Any] = {"gpu": milli / 1000, "parallelism": pods}
        if notes:
            containers = [{"name": "main", "image": IMAGE}]
            spec["template"] = {
                "metadata": {"annotations": notes},
                "spec": {"containers": containers},
            }
        else:
            spec["image"] = IMAGE
        body = {
            "apiVersion": API_VERSION,
            "kind": "GPUJob",
            "metadata": {"name": name},
            "spec": spec,
        }
        return of_group(GROUP, VERSION, "gpujobs", NAMESPACE), body

    def described(self) -> dict[str, str]:
        """Which commit it is."""
        if self.root is None:
            return {"commit": "stock kube-scheduler"}
        changed = _git(self.root, "status", "--porcelain", "--", "operator", "charts")
        commit = _git(self.root, "rev-parse", "--short=12", "HEAD")
        return {"commit": commit + (" with changes" if changed else "")}


STOCK = Contender("stock", None)
END_NOW = {"metadata": {"annotations": {_RUN_SECONDS: "1"}}}
"""A patch of a pod that has run for a second or more: it succeeds."""


def parse(text: str) -> Contender:
    """``PATH`` or ``NAME=PATH``, as on the command line.

    Raises:
        ValueError: there is no operator and no chart below that path.
    """
    name, equals, path = text.rpartition("=")
    root = Path(path).expanduser().resolve()
    for part in ("operator/gpu_scheduler", "charts/gpu-scheduler"):
        if not (root / part).is_dir():
            raise ValueError(f"{text}: there is no folder {part} below {root}")
    if not equals:
        name = "this" if root == ROOT else root.name
    if not name or name == STOCK.name:
        raise ValueError(f"{text}: NAME must be there, and another one than {STOCK.name}")
    return Contender(name, root)


def _plain(name: str, milli: int, pods: int, notes: dict[str, str]) -> tuple[str, Any]:
    container = {
        "name": "main",
        "image": IMAGE,
        "resources": {"limits": {MILLI: str(milli)}},
    }
    template = {
        "metadata": {"annotations": notes},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    spec = {
        "completionMode": "Indexed",
        "parallelism": pods,
        "completions": pods,
        "template": template,
    }
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
    return job(NAMESPACE), body


def _git(root: Path, *arguments: str) -> str:
    answer = subprocess.run(
        ["git", *arguments], cwd=root, capture_output=True, text=True, check=False
    )
    return answer.stdout.strip()
