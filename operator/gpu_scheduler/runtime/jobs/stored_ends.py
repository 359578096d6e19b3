"""Whether the end that stands in a GPUJob's status is one of ours: ADR 0057.

While we lead we know what we said, whatever anybody writes there. What was found at first is an
earlier leader's, unless the GPUJob's Jobs say otherwise: we say that a GPUJob has ended when they
have, or one has failed, and suspend those that have not.
"""

import logging

from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord

log = logging.getLogger(__name__)

_OF_AN_END = ("phase", "reason", "message")
_ENDS = ("Complete", "Failed")  # conditions


def judge(state: ClusterState, job: GPUJobRecord) -> None:
    """Believe what was found in a status, but for an end that is none."""
    if not job.stored:
        return
    job.stored = False
    if not job.finished or (going := _going_on(state, job)) is None:
        return
    phase = job.status["phase"]
    log.warning(
        "%s: its status says %s, and Job %s has not ended: it goes on", job.key, phase, going.name
    )
    kept = {name: told for name, told in job.status.items() if name not in _OF_AN_END}
    conditions = [c for c in kept.get("conditions") or () if c.get("type") not in _ENDS]
    job.status = {**kept, "conditions": conditions}
    state.changes.touch(job.key)
    state.changes.replan()


def _going_on(state: ClusterState, job: GPUJobRecord) -> JobRecord | None:
    """A Job that contradicts the end of its GPUJob."""
    own = job.own(state.workloads.jobs(job.key))
    if job.spec is None or any(each.failure for each in own):
        return None
    suspended_by_us = not job.spec.suspend
    going = (each for each in own if not each.ended and not (each.suspend and suspended_by_us))
    return next(going, None)
