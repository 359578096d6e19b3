"""Our own decisions, charged before they are written: the pod no longer waits, it holds devices.

A decision is about a pod that exists, or about an unmade one, which is awaited from then on. It
stays charged until the watch shows the pod on its node, the pod takes the place of an awaited one,
or it is taken back.
"""

from dataclasses import replace

from gpu_scheduler.core.model.decision import Assignment
from gpu_scheduler.core.model.fit import matches
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.state.affinity.placed_pods import PlacedPodStore
from gpu_scheduler.state.jobs.job import GPUJobRecord
from gpu_scheduler.state.nodes.ledger import Charge, Ledger
from gpu_scheduler.state.queue.nominated import NominatedPod, NominatedPods
from gpu_scheduler.state.queue.waiting import PendingPods


class Decisions:
    """Those under way. What returns a bool says whether rules about other pods are concerned."""

    def __init__(self, ledger: Ledger, placed_pods: PlacedPodStore, waiting: PendingPods) -> None:
        """Nothing was decided yet."""
        self._ledger = ledger
        self._placed_pods = placed_pods
        self._waiting = waiting
        self.assumed: dict[PodUID, Assignment] = {}
        self.nominated = NominatedPods()

    def assume(self, place: Assignment, job: GPUJobRecord | None) -> bool:
        """Charge a decision; ``job``: its GPUJob, if that is known."""
        entry, prospective = self._waiting.entry(place.pod), self._waiting.prospective(place.pod)
        if prospective is not None and job is not None:
            parallelism = 1 + max(
                prospective.expected_pods,
                self.nominated.untold_parallelism(place.job, prospective.role),
            )
            kind = self._waiting.kind(place.pod, job)
            self.nominated.put(
                NominatedPod(place, prospective.role, prospective.index, parallelism, kind)
            )
        need = self._waiting.resources(place.pod)
        self.assumed[place.pod] = place
        held = Charge(place.node, entry.namespace, *need, place.grants, entry.name)
        self._ledger.charge_pod(place.pod, held)
        asked = self._placed_pods.put(place.pod, entry.affinity, place.node, ending=False)
        self._waiting.drop(place.pod)
        return asked

    def take_back(self, uid: PodUID) -> bool:
        """A decision is none any more: nothing is charged for it."""
        place = self.assumed.pop(uid, None)
        if place is not None:
            self.nominated.drop(place.job, uid)
        self._ledger.release_pod(uid)
        return self._placed_pods.drop(uid)

    def take_place(
        self, nominated: NominatedPod, pod: PodUID, job: GPUJobRecord
    ) -> Assignment | None:
        """A pod that waits takes the place of an awaited one; None where it does not fit there.

        The place is nobody's then: the pod waits like any other.
        """
        self._waiting.learn(job.namespace, nominated.pod_shape, self._waiting.kind(pod, job))
        self.take_back(nominated.uid)
        place, known = replace(nominated.place, pod=pod), self._ledger.node(nominated.place.node)
        kind = self._waiting.kind(pod, job)
        need = self._waiting.resources(pod)
        if known is None or known[0].unschedulable or not matches(kind.where, known[0]):
            return None
        if not self._ledger.has_room(place.node, need, place.grants):
            return None
        self.assume(place, job)
        return place

    def of(self, key: JobKey) -> list[PodUID]:
        """The awaited pods of a GPUJob, by the uids under which they are charged."""
        return [each.uid for each in self.nominated.of(key)]
