"""Eyes on a sweep: every version of its GPUJob, every pod of its trials, and what is stored.

A trial's values are kept as one number each, so that a hundred thousand trials can be watched.
Sizes are those of spec and status as the API server sends them. Called by ``bench_sweeps``.
"""

import json
from collections import Counter
from dataclasses import dataclass, field

import msgspec
from tests.perf.workload import NAMESPACE

from gpu_scheduler.api.allocation import parse
from gpu_scheduler.api.names import (
    ALLOCATION,
    HPARAMS,
    LABEL_JOB,
    RESULTS_KEY,
    TRIAL,
    results_name,
)
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.objects import Meta, Pod
from gpu_scheduler.kube.paths import core
from gpu_scheduler.sweeps.core.outcome import Outcome
from gpu_scheduler.sweeps.core.rows import decode


class Sized(msgspec.Struct, frozen=True):
    """A GPUJob: its parts stay JSON, to be weighed."""

    metadata: Meta = Meta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")


class Ended(msgspec.Struct, frozen=True):
    """The status of a GPUJob, as far as it is waited for."""

    phase: str = ""
    sweep: dict[str, object] = {}


@dataclass(slots=True)
class JobEyes:
    """A sink for GPUJobs: the largest version of each, and the latest status."""

    bytes_at_most: Counter[str] = field(default_factory=Counter)
    versions: Counter[str] = field(default_factory=Counter)
    status: dict[str, Ended] = field(default_factory=dict)

    def changed(self, obj: Sized) -> None:
        """A version of a GPUJob."""
        name = obj.metadata.name
        self.versions[name] += 1
        size = len(bytes(obj.spec)) + len(bytes(obj.status))
        self.bytes_at_most[name] = max(self.bytes_at_most[name], size)
        self.status[name] = msgspec.json.decode(obj.status, type=Ended)

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """It was deleted."""

    def replaced(self) -> None:
        """A list is complete."""

    def ended(self, name: str) -> int:
        """Trials of a sweep that have ended."""
        counts = self.status.get(name, Ended()).sweep.get("counts") or {}
        assert isinstance(counts, dict)
        return sum(int(n) for state, n in counts.items() if state != "running")


@dataclass(slots=True)
class TrialEyes:
    """A sink for pods: what each trial of each sweep was given, and in how many pods it ran."""

    values: dict[tuple[str, int], int] = field(default_factory=dict)  # hashes
    pods: Counter[tuple[str, int]] = field(default_factory=Counter)
    different: list[str] = field(default_factory=list)  # what must not be: trials with two values
    now: set[str] = field(default_factory=set)  # pods that hold devices
    at_once: int = 0
    _seen: set[str] = field(default_factory=set)

    def changed(self, obj: Pod) -> None:
        """A version of a pod."""
        meta, notes = obj.metadata, obj.metadata.annotations
        if obj.status.phase in ("Succeeded", "Failed"):
            self.now.discard(meta.uid)
        elif ALLOCATION in notes:
            self.now.add(meta.uid)
            self.at_once = max(self.at_once, len(self.now))
        if TRIAL not in notes or meta.uid in self._seen:
            return
        self._seen.add(meta.uid)
        parse(notes[ALLOCATION])  # whoever has parameters has devices: they came in one write
        key = (meta.labels[LABEL_JOB], int(notes[TRIAL]))
        self.pods[key] += 1
        given = hash(notes[HPARAMS])
        if self.values.setdefault(key, given) != given:
            self.different.append(f"{key[0]} trial {key[1]}: {notes[HPARAMS]}")

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """A pod is gone."""
        self.now.discard(uid)

    def replaced(self) -> None:
        """A list is complete."""

    def of(self, job: str) -> dict[int, int]:
        """In how many pods each trial ran."""
        return {trial: n for (name, trial), n in self.pods.items() if name == job}


async def stored(client: Client, job: str) -> tuple[dict[int, Outcome], int]:
    """All rows of a sweep, and the size of its largest ConfigMap in bytes."""
    found: dict[int, Outcome] = {}
    largest, number = 0, 0
    while True:
        try:
            raw = await client.request(
                "GET", core("configmaps", NAMESPACE, results_name(job, number))
            )
        except errors.NotFound:
            return found, largest
        largest = max(largest, len(raw))
        _, outcomes = decode(json.loads(raw)["data"][RESULTS_KEY])
        found |= {outcome.trial: outcome for outcome in outcomes}
        number += 1
