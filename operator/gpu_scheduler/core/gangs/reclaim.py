"""Ways for gangs: reclaiming from projects above their share, preempting lower priorities.

The terms are those of single pods, with the sum of all members; of models every project keeps its
quota, and the gang stays within its own. Called by ``core.reclaim``.
"""

from gpu_scheduler.core.balance import Balance
from gpu_scheduler.core.gangs.making_room import GangSearch, GangWay
from gpu_scheduler.core.gangs.placing import Flags
from gpu_scheduler.core.gangs.request import GangRequest
from gpu_scheduler.core.preemptible import Preemptible
from gpu_scheduler.core.request import Project


class GangReclaim:
    """Ways for gangs in one cycle; decides nothing."""

    def __init__(self, search: GangSearch, preemptible: Preemptible, balance: Balance) -> None:
        self._search, self._preemptible, self._balance = search, preemptible, balance

    def reclaim(
        self,
        project: Project,
        request: GangRequest,
        room_milli: int,
        balance: Balance,
        barred: Flags | None = None,
    ) -> GangWay | None:
        """A way at the cost of projects from which the balance lets something be taken."""
        room = min(room_milli, balance.missing_milli(project.name))
        if request.least_milli > room:
            return None
        purse = balance.beyond.purse(project)
        way = self._search.without(request, room, barred, purse)
        if way is not None:
            return way
        others = self._preemptible.of_others(project.name, balance)
        victims = self._preemptible.guarded(others)
        terms = self._preemptible.for_share(balance, room, purse)
        return self._search.best(request, victims, terms, barred)

    def preempt(self, project: Project, request: GangRequest) -> GangWay | None:
        """A way at the cost of pods of the same project with a lower priority."""
        room = self._balance.growth_milli(project)
        purse = self._balance.beyond.purse(project)
        way = self._search.without(request, room, None, purse)
        if way is not None:
            return way
        victims = self._preemptible.lower(project.name, request.job.priority)
        terms = self._preemptible.for_priority(room, purse)
        return self._search.best(request, victims, terms, None, anywhere=True)
