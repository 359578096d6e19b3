"""Our own decisions, charged before they are written: the pod no longer waits, it holds devices.

A decision is about a pod that exists, or about a prospective one, which is nominated from then on.
It stays charged until the watch shows the pod on its node, the pod takes the place of a nominated
one, or it is taken back. Beside them: of which GPUJobs no prospective pod is planned, and how
narrow or wide Jobs are to become.
"""

from collections.abc import Mapping
from dataclasses import replace

from gpu_scheduler.core.model.decision import Assignment
from gpu_scheduler.core.model.fit import matches
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.state.affinity.placed_pods import PlacedPodStore
from gpu_scheduler.state.changes import Changes
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord
from gpu_scheduler.state.nodes.ledger import Charge, Ledger
from gpu_scheduler.state.queue.nominated import NominatedPod, NominatedPods
from gpu_scheduler.state.queue.waiting import PendingPods


class Decisions:
    """Those under way."""

    def __init__(
        self,
        ledger: Ledger,
        placed_pods: PlacedPodStore,
        waiting: PendingPods,
        changes: Changes,
        gpujobs: Mapping[JobKey, GPUJobRecord],
    ) -> None:
        """Nothing was decided yet."""
        self._ledger = ledger
        self._placed_pods = placed_pods
        self._waiting = waiting
        self._changes = changes
        self._gpujobs = gpujobs
        self.assumed: dict[PodUID, Assignment] = {}
        self.nominated = NominatedPods()
        self.inadmissible: dict[JobKey, frozenset[str]] = {}  # none of these is planned: why
        self.narrowed: dict[str, int] = {}  # by uid: Jobs that are to become as narrow as this
        self.widening: dict[
            str, int
        ] = {}  # by uid: Jobs of which this parallelism is being written

    def assume(self, place: Assignment) -> None:
        """Charge a decision before its write; the pod no longer waits."""
        self._changes.replan(self._charge(place))
        self._changes.members_changed(place.job)

    def take_place(self, nominated: NominatedPod, pod: PodUID) -> Assignment | None:
        """A pod that waits takes the place of a nominated one; None where it does not fit there.

        The place is nobody's then: the pod waits like any other.
        """
        key = nominated.place.job
        place = self._moved(nominated, pod, self._gpujobs[key])
        self._changes.replan()
        self._changes.members_changed(key)
        return place

    def give_back(self, key: JobKey) -> bool:
        """Give the places of a GPUJob's nominated pods back; False when it had none."""
        nominated = self.nominated.of(key)
        for each in nominated:
            self.take_back(each.uid)
        if nominated:
            self._changes.members_changed(key)
            self._changes.replan()
        return bool(nominated)

    def take_back(self, uid: PodUID) -> None:
        """A decision is none any more: nothing is charged for it."""
        place = self.assumed.pop(uid, None)
        if place is not None:
            self.nominated.drop(place.job, uid)
        self._ledger.release_pod(uid)
        self._placed_pods.drop(uid)

    def set_inadmissible(self, key: JobKey, why: str, inadmissible: bool) -> None:
        """Plan no pod of a GPUJob before it exists, as long as there is a reason not to.

        ``why``: who says so; what is nominated is given back.
        """
        reasons = self.inadmissible.get(key, frozenset())
        after = reasons | {why} if inadmissible else reasons - {why}
        if after == reasons:
            return
        if after:
            self.inadmissible[key] = after
        else:
            del self.inadmissible[key]
        self.give_back(key)
        self._changes.members_changed(key)
        self._changes.replan()

    def narrow(self, job: JobRecord, parallelism: int) -> None:
        """Make a Job as narrow as this, once that is safe; what is nominated is given back."""
        self.narrowed[job.uid] = parallelism
        self.give_back(job.owner)
        self._changes.replan()

    def let_be(self, job_uid: str) -> None:
        """A Job has become as narrow as it was to be, or need not."""
        if self.narrowed.pop(job_uid, None) is not None:
            self._changes.replan()

    def _charge(self, place: Assignment) -> bool:
        """Charge a decision; True when rules about other pods are concerned."""
        job = self._gpujobs.get(place.job)
        entry, prospective = self._waiting.entry(place.pod), self._waiting.prospective(place.pod)
        if prospective is not None and job is not None:
            parallelism = 1 + max(
                prospective.expected_pods,
                self.nominated.untold_parallelism(place.job, prospective.role),
            )
            shape = self._waiting.shape(place.pod, job)
            self.nominated.put(
                NominatedPod(place, prospective.role, prospective.index, parallelism, shape)
            )
        need = self._waiting.resources(place.pod)
        self.assumed[place.pod] = place
        held = Charge(place.node, entry.namespace, need, place.devices, entry.name)
        self._ledger.charge_pod(place.pod, held)
        asked = self._placed_pods.put(place.pod, entry.affinity, place.node, ending=False)
        self._waiting.drop(place.pod)
        return asked

    def _moved(self, nominated: NominatedPod, pod: PodUID, job: GPUJobRecord) -> Assignment | None:
        self._waiting.learn(job.namespace, nominated.pod_shape, self._waiting.shape(pod, job))
        self.take_back(nominated.uid)
        place, known = replace(nominated.place, pod=pod), self._ledger.node(nominated.place.node)
        shape = self._waiting.shape(pod, job)
        need = self._waiting.resources(pod)
        if known is None or known[0].closed_to(shape) or not matches(shape.where, known[0]):
            return None
        if not self._ledger.has_room(place.node, need, place.devices):
            return None
        self._charge(place)
        return place
