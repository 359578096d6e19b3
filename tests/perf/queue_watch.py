"""What the queue looks like from outside: GPUJobs, Jobs and pods, by watches of the harness's own.

Only names, states and nodes are decoded, so that 50,000 jobs can be followed beside what is
measured. Times are those at which an event is read, in monotonic seconds. Jobs are counted by the
part of their name before the first dash. Called by the scenes of ``queues``.
"""

import time
from collections import Counter
from dataclasses import dataclass, field

import msgspec

from gpu_scheduler.kube.objects import Meta

JOB_NAME = "batch.kubernetes.io/job-name"
ON_ITS_WAY = frozenset({"", "CreatingJob", "CreatingPods", "WaitingForPlan"})
"""Values of status.reason that say nothing yet of whether and why a job waits."""
_ENDED = frozenset({"Succeeded", "Failed"})


class _Status(msgspec.Struct, frozen=True, rename="camel", gc=False):
    phase: str = ""
    reason: str = ""
    completion_time: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    node_name: str = ""


class Stated(msgspec.Struct, frozen=True, gc=False):
    """A GPUJob or a Job."""

    metadata: Meta = Meta()
    status: _Status = _Status()


class Placed(msgspec.Struct, frozen=True, gc=False):
    """A pod."""

    metadata: Meta = Meta()
    spec: _Spec = _Spec()
    status: _Status = _Status()


@dataclass(slots=True)
class Span:
    """A pod: itself, the group of its job, and when it was bound and ended."""

    name: str
    group: str
    bound: float | None = None
    ended: float | None = None


def group_of(job: str) -> str:
    """The part of a job's name by which jobs are counted."""
    return job.partition("-")[0]


@dataclass(slots=True)
class JobEyes:
    """GPUJobs or Jobs: when each got a verdict and when it succeeded."""

    present: Counter[str] = field(default_factory=Counter)  # by group
    reasons: dict[str, str] = field(default_factory=dict)
    spoken: dict[str, float] = field(default_factory=dict)  # first reason of any kind
    judged: dict[str, float] = field(default_factory=dict)  # first verdict
    succeeded: dict[str, float] = field(default_factory=dict)

    def changed(self, obj: Stated) -> None:
        """See ``EventHandler``."""
        now, name, status = time.monotonic(), obj.metadata.name, obj.status
        if name not in self.reasons:
            self.present[group_of(name)] += 1
        self.reasons[name] = status.reason
        if status.reason:
            self.spoken.setdefault(name, now)
        if status.reason not in ON_ITS_WAY:
            self.judged.setdefault(name, now)
        if status.phase == "Succeeded" or status.completion_time:
            self.succeeded.setdefault(name, now)

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """See ``EventHandler``."""
        self.present[group_of(name)] -= 1
        del self.reasons[name]

    def by_reason(self, group: str) -> dict[str, int]:
        """How many jobs of a group say what at present."""
        found = Counter(text for name, text in self.reasons.items() if group_of(name) == group)
        return dict(found.most_common())


@dataclass(slots=True)
class PodEyes:
    """Pods: when each was bound and ended."""

    spans: dict[str, Span] = field(default_factory=dict)  # by uid
    made: Counter[str] = field(default_factory=Counter)  # by group, as the others
    bound: Counter[str] = field(default_factory=Counter)
    unbound: Counter[str] = field(default_factory=Counter)  # those that are there

    def changed(self, obj: Placed) -> None:
        """See ``EventHandler``."""
        now, meta = time.monotonic(), obj.metadata
        span = self.spans.get(meta.uid)
        if span is None:
            group = group_of(meta.labels.get(JOB_NAME, ""))
            span = self.spans[meta.uid] = Span(meta.name, group)
            self.made[group] += 1
            self.unbound[group] += 1
        if obj.spec.node_name and span.bound is None:
            span.bound = now
            self.bound[span.group] += 1
            self.unbound[span.group] -= 1
        if obj.status.phase in _ENDED and span.ended is None:
            span.ended = now

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """See ``EventHandler``."""
        span = self.spans[uid]
        if span.bound is None:
            self.unbound[span.group] -= 1
        if span.ended is None:
            span.ended = time.monotonic()

    def bound_at(self, group: str, since: float = 0.0) -> list[float]:
        """When the pods of a group were bound, in order."""
        times = (each.bound for each in self.spans.values() if each.group == group)
        return sorted(bound for bound in times if bound is not None and bound >= since)


@dataclass(slots=True)
class QueueEyes:
    """All three."""

    gpujobs: JobEyes = field(default_factory=JobEyes)
    jobs: JobEyes = field(default_factory=JobEyes)
    pods: PodEyes = field(default_factory=PodEyes)
