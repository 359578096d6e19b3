"""What consolidation has to know of pods that run: what they ask for, and when they last moved.

Nothing of it is lost with the leader. What a pod asks for is read off the pod, less the pin to its
node, and its GPUJob; moves stand on the Jobs (``api.moved``). What was decided here counts at once.
Kept by ``running_pods``, and only where consolidation is on.
"""

from dataclasses import replace

from gpu_scheduler.api.moved import Mark
from gpu_scheduler.api.names import SCHEDULER_NAME
from gpu_scheduler.core.actions.consolidation import REST_SECONDS
from gpu_scheduler.core.model.request import PodShape, PodUID
from gpu_scheduler.core.model.running_pods import RunningPod
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord
from gpu_scheduler.state.jobs.role_requests import RoleRequest
from gpu_scheduler.state.pods.pod import PodRecord, Stage
from gpu_scheduler.state.pods.pod_shape import pod_shape_of, unpinned

_MOST_SHAPES = 10_000
Index = tuple[str, int]  # uid of the Job, and the pod's index in it


class Moves:
    """Pod shapes by pod, and moves by Job and index."""

    def __init__(self, *, on: bool) -> None:
        """Start knowing nothing; without ``on`` nothing is kept."""
        self._on = on
        self._own: dict[PodUID, PodShape] = {}  # what a pod itself says: no devices
        self._decided: dict[Index, Mark] = {}
        self._interned: dict[PodShape, PodShape] = {}

    def see(self, record: PodRecord, pod: Pod) -> None:
        """Take over what a pod asks for: as it waits, or else less the pin that placed it."""
        if not self._on or record.uid in self._own or not record.job_uid:
            return
        own = pod_shape_of(pod, (), (), (0, 0))
        if record.stage is not Stage.WAITING and pod.spec.scheduler_name != SCHEDULER_NAME:
            own = replace(own, where=unpinned(own.where, record.node))
        self._own[record.uid] = self._intern(own)

    def forget(self, uid: PodUID) -> None:
        """A pod is gone."""
        self._own.pop(uid, None)

    def decided(self, pod: PodRecord, now: float) -> None:
        """A pod has to move; ``now``: epoch seconds."""
        if self._on:
            self._decided = {i: m for i, m in self._decided.items() if m.at + REST_SECONDS > now}
            self._decided[pod.job_uid, pod.index] = Mark(now, pod.uid)

    def complete(
        self, running_pod: RunningPod, pod: PodRecord, own: JobRecord, job: GPUJobRecord
    ) -> RunningPod:
        """The same running pod with what is known here of the pod; ``own``: its Job."""
        if not self._on:
            return running_pod
        marks = (self._decided.get((own.uid, pod.index)), own.moves.get(pod.index))
        moved = max((m.at for m in marks if m is not None and m.pod != pod.uid), default=0.0)
        return replace(
            running_pod,
            pod_shape=self._pod_shape(pod, job.requests.get(own.role), job),
            moved=moved,
        )

    def _pod_shape(
        self, pod: PodRecord, request: RoleRequest | None, job: GPUJobRecord
    ) -> PodShape | None:
        """What the pod would ask for if it came again."""
        own = self._own.get(pod.uid)
        if own is None or request is None:
            return None
        asked = {
            "devices": request.devices,
            "models": request.models,
            "min_compute": job.min_compute,
        }
        return self._intern(replace(own, **asked))  # type: ignore[arg-type]

    def _intern(self, pod_shape: PodShape) -> PodShape:
        if len(self._interned) > _MOST_SHAPES:
            self._interned.clear()  # only costs memory
        return self._interned.setdefault(pod_shape, pod_shape)
