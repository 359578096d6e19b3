"""Which members of a gang are missing, and where the others are.

Worked out from the pods themselves, never remembered: a new leader that finds a gang half placed
sees the same as the one that placed it. A pod that is being deleted or has failed is missing; its
Job makes another one.
"""

from collections.abc import Iterable, Set

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.parts import is_gang
from gpu_scheduler.api.roles import TopologyMode
from gpu_scheduler.core.model.request import Gang, PodUID, Topology
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord
from gpu_scheduler.state.nodes.ledger import Ledger
from gpu_scheduler.state.pods.pod import PodRecord, Stage


def gang_of(
    work: GPUJobRecord,
    jobs: Iterable[JobRecord],
    pods: Iterable[PodRecord],
    assumed: Set[PodUID],
    leaving: Set[PodUID],
    ledger: Ledger,
) -> Gang | None:
    """The gang that a GPUJob is; None when its pods start one by one.

    Args:
        work: the GPUJob, or the group of pods without one.
        jobs: its Jobs.
        pods: its pods.
        assumed: pods whose placement was decided and is not seen yet.
        leaving: pods whose eviction was decided and may not be seen yet.
        ledger: who holds what.
    """
    spec = work.spec
    if spec is None or not is_gang(spec):
        return None
    done = {(job.uid, index) for job in jobs for index in job.completed}
    placed, waiting = [], 0
    for pod in pods:
        if pod.stage is Stage.ENDED:
            if pod.phase == "Succeeded":  # pods without a GPUJob have no indexes
                done.add((pod.job_uid, pod.index) if pod.share is None else (pod.uid, 0))
        elif pod.uid in leaving:
            continue
        elif pod.uid in assumed or holds(pod):
            placed.append(pod.uid)
        elif pod.stage is Stage.WAITING:
            waiting += 1
    charges = [ledger.charges[uid] for uid in placed if uid in ledger.charges]
    held = (g for charge in charges for g in ledger.resolved(charge.node, charge.devices))
    size = spec.total_pods
    # Whose size is the least starts with that, and then with each that comes.
    more = min(waiting, 1) if work.elastic else waiting
    return Gang(
        missing=max(size - len(done) - len(placed), more),
        size=size,
        distinct=spec.distinct_gpus is not False,
        topology=_topology(spec),
        nodes=frozenset(charge.node for charge in charges),
        devices=frozenset(allocated.device for allocated in held),
    )


def holds(pod: PodRecord) -> bool:
    """Whether a pod has a place that it is going to keep."""
    return pod.stage in (Stage.PLACED, Stage.RUNNING) and not pod.deleting


def _topology(spec: GPUJobSpec) -> Topology | None:
    if spec.topology is None:
        return None
    return Topology(spec.topology.key, spec.topology.mode is TopologyMode.REQUIRED)
