"""Whom a pod or a gang may have evicted in this cycle, in the order of victims, and on which terms.

Of other projects: what they hold above their fair share, or above their quota. Of its own: pods of
a lower priority. Who was chosen once in a cycle is not chosen again. Called by ``reclaim``.
"""

from collections.abc import Iterable, Mapping

from gpu_scheduler.core import quota
from gpu_scheduler.core.balance import Balance
from gpu_scheduler.core.departures import Locator
from gpu_scheduler.core.eviction import Ranked, Terms
from gpu_scheduler.core.occupants import Occupant, Occupants
from gpu_scheduler.core.pools import Purse
from gpu_scheduler.core.request import PodUID, Project, ProjectName
from gpu_scheduler.core.victims import Parties, interactive_spare_milli


class Preemptible:
    """Pods that may still be evicted."""

    def __init__(
        self,
        occupants: Occupants,
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

    def of_others(self, name: ProjectName, balance: Balance) -> Ranked:
        """Victims in projects from which something can be taken."""
        order = {other: i for i, other in enumerate(balance.most_over()) if other != name}
        return [
            (self._parties.rank(pod, i), pod)
            for other, i in order.items()
            for pod in self._of(other)
        ]

    def lower(self, name: ProjectName, priority: int) -> Ranked:
        """Victims of a lower priority in a project."""
        return [(self._parties.rank(p), p) for p in self._of(name) if p.priority < priority]

    def guarded(self, ranked: Ranked) -> Ranked:
        """Those of some victims whose going leaves every project its quota of each model."""
        return self._balance.outside_model_quota(ranked, self._parties.of, self._locator.picks)

    def for_share(self, balance: Balance, room_milli: int, purse: Purse | None = None) -> Terms:
        """The terms between projects: what victims give adds nothing to what may be taken."""
        return Terms(balance.spare_milli, self._interactive_milli, lambda given: room_milli, purse)

    def for_priority(self, room_milli: int, purse: Purse | None = None) -> Terms:
        """The terms inside a project: what victims give may be taken."""
        return Terms(
            lambda name: quota.UNBOUNDED,
            self._interactive_milli,
            lambda given: room_milli + given,
            purse,
        )

    def _of(self, name: ProjectName) -> list[Occupant]:
        """Those of a project's pods that may still be evicted."""
        if name not in self._known:
            self._known[name] = self._parties.preemptible(self._occupants.of(name))
        return [pod for pod in self._known[name] if pod.uid not in self._chosen]

    def _interactive_milli(self, name: ProjectName) -> int:
        left = (pod for pod in self._occupants.of(name) if pod.uid not in self._chosen)
        return interactive_spare_milli(self._projects[name], left)
