"""Moving fractional pods together, so that a pod or gang that needs several GPUs can start.

Off by default. Only for what is inside its project's quota and nothing else could start; only
training pods with parts of GPUs move, of projects inside their quota, none more than once an hour.
All of them must have another place in the same plan, in whatever order they come back, and
therefore few move at once.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import permutations

from gpu_scheduler.core.eviction.solver import Scope, Solver
from gpu_scheduler.core.fairness.budget import Budget, ModelBudget
from gpu_scheduler.core.fit.placement import PodGroupAssignment
from gpu_scheduler.core.model import wording
from gpu_scheduler.core.model.decision import Evict, EvictReason, ReservationReason
from gpu_scheduler.core.model.devices import NodeAllocation
from gpu_scheduler.core.model.request import JobKey, Project
from gpu_scheduler.core.model.running_pods import MOST_SKEW_SECONDS, RunningPod
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.queue.pod_group import PodGroup, Signature
from gpu_scheduler.core.queue.queues import Queue
from gpu_scheduler.core.reservation.active import ActiveReservations

REST_SECONDS = 3600.0  # between two moves of the same pod
MOST_HELPED = 4  # groups per cycle
MOST_ASKED = 4  # of one project
MOST_NODES = 64  # looked at for one of them
MOST_MOVED = 4  # for one of them: they are tried in all orders

Move = tuple[RunningPod, int, NodeAllocation]  # who, and where it would go


class Consolidation:
    """One cycle's moves; ``evicts`` is what it decided."""

    def __init__(
        self, solver: Solver, active: ActiveReservations, nominal: Budget, now: float
    ) -> None:
        """``nominal``: what projects may take inside their quota; ``now``: epoch seconds."""
        self.evicts: list[Evict] = []
        self.looks: dict[JobKey, None] = {}
        """Jobs for which pods would have moved, had they been looked at."""
        self.again_at: float | None = None
        """When a pod that stays only because it moved lately may move again, epoch seconds."""
        self._solver = solver
        self._placer = solver.placer
        self._releasing = solver.releasing
        self._active = active
        self._nominal = nominal
        self._now = now
        self._snapshot = solver.placer.snapshot
        self._projects: dict[str, Project] = {}

    def run(self, projects: Iterable[Project], queues: Sequence[Queue]) -> None:
        """Decide."""
        self._projects = {project.name: project for project in projects}
        helped = 0
        for queue in queues:
            for group in self._deserving(queue):
                if helped == MOST_HELPED:
                    return
                helped += self._help(group)

    def _deserving(self, queue: Queue) -> Iterator[PodGroup]:
        """The first few that need several GPUs and wait, in order; one of a job."""
        asked, last = 0, ""
        passed: set[Signature] = set()
        for group in queue.groups(passed):
            if asked == MOST_ASKED:
                return
            if not group.deserving or group.needs.devices <= 1:
                passed.add(group.signature)
            elif group.job.key != last and not self._active.freed_for(group):
                last = group.job.key
                asked += 1
                yield group

    def _help(self, group: PodGroup) -> bool:
        lifted = self._active.of_group(group)
        for reserved in lifted:
            self._active.release(reserved)
        project = group.project
        held = self._snapshot.allocated_milli(project.name) - self._releasing.milli[project.name]
        room, model_budget = (
            self._nominal.room_milli(project, held),
            self._nominal.model_budget(project),
        )
        for pods, scope in self._attempts(group) if group.needs.least_milli <= room else ():
            found = self._attempt(group, scope, pods, room, model_budget)
            if found is not None and group.job.unseen:
                self.looks[group.job.key] = None
                break
            if found is not None:
                self._decide(group, *found)
                return True
        self._active.restore(lifted)
        return False

    def _attempts(self, group: PodGroup) -> Iterator[tuple[list[RunningPod], Scope]]:
        """Pods that might move: of one node for a single pod, of whole domains for a gang."""
        free = self._snapshot.node_free_milli
        usable = {n for pod_request in group.needs.counts for n in pod_request.usable}
        nodes = nlargest(MOST_NODES, usable, key=lambda n: (free[n], -n))
        on = {n: pods for n in nodes if (pods := self._movable(n, group))}
        order = sorted(on, key=lambda n: (sum(pod.milli for pod in on[n]), n))
        for scope in self._solver.scopes(group, order, None):
            yield [pod for n in order if scope.has(n) for pod in on[n]], scope

    def _movable(self, node: int, group: PodGroup) -> list[RunningPod]:
        pods = self._releasing.staying_on(node)
        found = [pod for pod in pods if pod.job != group.job.key and self._may_move(pod)]
        return sorted(found, key=lambda pod: (pod.milli, pod.uid))

    def _may_move(self, pod: RunningPod) -> bool:
        project = self._projects.get(pod.project)
        return (
            bool(pod.devices)
            and all(allocated.milli < DEVICE_MILLI for allocated in pod.devices)
            and not (pod.interactive or pod.gang or pod.leaving or pod.spared)
            and (self._placer.affinity is None or not self._placer.affinity.concerns(pod.uid))
            and pod.pod_shape is not None
            and project is not None
            and self._snapshot.allocated_milli(pod.project) <= project.quota_milli
            and self._has_rested(pod)
        )

    def _has_rested(self, pod: RunningPod) -> bool:
        until, now = pod.moved + REST_SECONDS, self._now
        if not pod.moved or until <= now or pod.moved > now + MOST_SKEW_SECONDS:
            return True  # a move of the future is none, as with checkpoints
        self.again_at = until if self.again_at is None else min(self.again_at, until)
        return False

    def _attempt(
        self,
        group: PodGroup,
        scope: Scope,
        pods: list[RunningPod],
        room_milli: int,
        model_budget: ModelBudget | None,
    ) -> tuple[PodGroupAssignment, list[Move]] | None:
        """Places for those who wait and for all that would move, with as few moves as needed."""
        candidates = [(pod,) for pod in pods]
        fewest = self._solver.fewest(
            group, scope, candidates, lambda given: room_milli, model_budget
        )
        if fewest is None or not fewest[0]:
            return None
        mark = self._snapshot.mark()
        self._releasing.release_all()
        found = self._rehome(group, pods[: fewest[0]], fewest[1], room_milli, model_budget)
        self._snapshot.rollback(mark)
        return found

    def _rehome(
        self,
        group: PodGroup,
        pods: list[RunningPod],
        placement: PodGroupAssignment,
        room_milli: int,
        model_budget: ModelBudget | None,
    ) -> tuple[PodGroupAssignment, list[Move]] | None:
        """Who has to go and where to; None when they are many or one has no other place."""
        snapshot = self._snapshot
        mark = snapshot.mark()
        self._release(pods)
        self._start(group, placement)
        homeless = [pod for pod in reversed(pods) if not self._back(pod)]
        snapshot.rollback(mark)
        if not 0 < len(homeless) <= MOST_MOVED:
            return None
        # Those who wait get their places node by node once all have gone: see ``reservations``.
        self._release(homeless)
        nodes = {member[0].uid: node for member, node, _ in placement}
        final = self._placer.place_at(group, room_milli, nodes, model_budget)
        if final is None:
            return None
        self._start(group, final)
        moves = [self._places(order) for order in permutations(homeless)]
        first = moves[0]
        return None if first is None or None in moves else (final, first)

    def _start(self, group: PodGroup, placement: PodGroupAssignment) -> None:
        for member, node, choice in placement:
            self._snapshot.take(node, member[0].pod_shape, choice.picks, group.job.project)

    def _back(self, pod: RunningPod) -> bool:
        """Leave a pod where it was, if its place is still free."""
        fits = self._snapshot.fits_back(pod)
        if fits:
            self._snapshot.put_back(pod)
        return fits

    def _places(self, order: Sequence[RunningPod]) -> list[Move] | None:
        """Where pods go that come back in this order."""
        snapshot = self._snapshot
        mark = snapshot.mark()
        moves: list[Move] = []
        for pod in order:
            assert pod.pod_shape is not None  # others do not move
            model_budget = self._nominal.model_budget(self._projects[pod.project])
            found = self._placer.place_one(pod.pod_shape, pod.milli, model_budget)
            if found is None:
                break
            snapshot.take(found[0], pod.pod_shape, found[1].picks, pod.project)
            moves.append((pod, *found))
        snapshot.rollback(mark)
        return moves if len(moves) == len(order) else None

    def _decide(self, group: PodGroup, placement: PodGroupAssignment, moves: list[Move]) -> None:
        job, nodes = group.job, self._snapshot.cluster.nodes
        name = self._snapshot.cluster.name_of(job.key)
        needs = f"{wording.gpus(group.needs.least_milli)} in {wording.pods(len(group.members))}"
        for pod, node, _ in moves:
            where = nodes[node].name if nodes[node].name != pod.node else "another GPU there"
            fits = f"{pod.name} moves from {pod.node} and fits on {where}"
            message = f"{fits}: {name} needs {needs}"
            self.evicts.append(Evict(pod.uid, pod.job, job.key, EvictReason.CONSOLIDATE, message))
        for pod, _, _ in moves:
            self._releasing.add(pod)
        self._active.keep(group, placement, ReservationReason.FREED)

    def _release(self, pods: Iterable[RunningPod]) -> None:
        for pod in pods:
            self._snapshot.release_pod(pod)
