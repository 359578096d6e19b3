"""Whom a pod or a gang may have evicted in this cycle, in the order of victims, and on which terms.

Of other projects: what they hold above their fair share, or above their quota. Of its own: pods of
a lower priority. Who was chosen once in a cycle is not chosen again. Called by ``reclaim``.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

from gpu_scheduler.core import quota
from gpu_scheduler.core.balance import Balance
from gpu_scheduler.core.demand import Demand
from gpu_scheduler.core.departures import Locator
from gpu_scheduler.core.eviction import Ranked, Terms
from gpu_scheduler.core.occupants import Occupant
from gpu_scheduler.core.pools import Purse
from gpu_scheduler.core.request import PodUID, Project, ProjectName, WaitingJob
from gpu_scheduler.core.started import Started
from gpu_scheduler.core.victims import Parties, interactive_spare_milli


class Preemptible:
    """Pods that may still be evicted."""

    def __init__(
        self,
        occupants: Started,
        parties: Parties,
        balance: Balance,
        locator: Locator,
        projects: Mapping[ProjectName, Project],
    ) -> None:
        self._occupants, self._parties, self._balance = occupants, parties, balance
        self._locator, self._projects = locator, projects
        self._known: dict[ProjectName, list[Occupant]] = {}
        self._chosen: set[PodUID] = set()

    def choose(self, victim: Occupant) -> Iterable[Occupant]:
        """Take one off the list, with all who go with it; those are the answer."""
        party = self._parties.of(victim)
        self._chosen.update(pod.uid for pod in party)
        return party

    def of_others(self, job: WaitingJob, balance: Balance) -> Ranked:
        """Victims in projects from which something can be taken, and who starts before its turn."""
        order = {o: i for i, o in enumerate(balance.most_over()) if o != job.project}
        early = [(self._parties.rank(pod), pod) for pod in self._occupants.started_after(job)]
        return early + [
            (self._parties.rank(pod, i), pod)
            for other, i in order.items()
            for pod in self._of(other)
        ]

    def lower(self, job: WaitingJob) -> Ranked:
        """Victims of a lower priority in a job's project, that come after it in its queue, too."""
        return [
            (self._parties.rank(pod), pod)
            for pod in self._of(job.project)
            if pod.priority < job.priority and (job.interactive or not pod.interactive)
        ]

    def guarded(self, ranked: Ranked) -> Ranked:
        """Those of some victims whose going leaves every project its quota of each model."""
        return self._balance.outside_model_quota(ranked, self._parties.of, self._locator.picks)

    def for_share(
        self, job: WaitingJob, balance: Balance, room_milli: int, purse: Purse | None = None
    ) -> Terms:
        """The terms between projects: what victims give adds nothing to what may be taken."""

        def anything(of: Callable[[ProjectName], int]) -> Callable[[ProjectName], int]:
            return lambda name: quota.UNBOUNDED if name == job.project else of(name)

        spare, interactive = anything(balance.spare_milli), anything(self._interactive_milli)
        return Terms(spare, interactive, lambda given: room_milli, purse)

    def for_priority(
        self,
        most_milli: int,
        growth_milli: int,
        claimed: Collection[int],
        purse: Purse | None = None,
    ) -> Terms:
        """The terms inside a project: what victims give may be taken.

        Args:
            most_milli: what the project may take beside, by its limit.
            growth_milli: the same where pods inside their quota wait for the room.
            claimed: the nodes where they do.
            purse: see ``Terms``.
        """

        def fair(given: int, cost: int, nodes: Iterable[int]) -> bool:
            return cost <= growth_milli + given or not any(node in claimed for node in nodes)

        return Terms(
            lambda name: quota.UNBOUNDED,
            self._interactive_milli,
            lambda given: most_milli + given,
            purse,
            fair,
        )

    def for_room(
        self, demand: Demand, victims: Ranked, terms: Terms
    ) -> tuple[int, tuple[Occupant, ...]]:
        """The fewest that make room in their project for a pod, and what they give."""
        given, gone, interactive = 0, list[Occupant](), 0
        milli = self._parties.milli
        for _, pod in sorted(victims, key=lambda each: each[0]):
            if terms.room_milli(given) >= demand.least_milli:
                break
            if pod.interactive:
                if interactive + milli(pod) > terms.interactive_milli(pod.project):
                    continue
                interactive += milli(pod)
            given += milli(pod)
            gone.append(pod)
        for pod in gone[::-1]:
            if terms.room_milli(given - milli(pod)) >= demand.least_milli:
                given -= milli(pod)
                gone.remove(pod)
        return given, tuple(gone)

    def _of(self, name: ProjectName) -> list[Occupant]:
        """Those of a project's pods that may still be evicted."""
        if name not in self._known:
            self._known[name] = self._parties.preemptible(self._occupants.of(name))
        return [pod for pod in self._known[name] if pod.uid not in self._chosen]

    def _interactive_milli(self, name: ProjectName) -> int:
        left = (pod for pod in self._occupants.of(name) if pod.uid not in self._chosen)
        return interactive_spare_milli(self._projects[name], left)
