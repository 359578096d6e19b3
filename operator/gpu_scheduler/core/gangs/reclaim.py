"""Ways for gangs: reclaiming from projects above their share, preempting lower priorities.

The terms are those of single pods, with the sum of all members; of models every project keeps its
quota, and the gang stays within its own. Called by ``core.reclaim``.
"""

from collections.abc import Collection

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
        if barred is not None and self._search.without(request, room, None, purse) is not None:
            return None  # there is room that is only kept from those who borrow
        others = self._preemptible.of_others(request.job, balance)
        victims = self._preemptible.guarded(others)
        terms = self._preemptible.for_share(request.job, balance, room, purse)
        return self._search.best(request, victims, terms, barred)

    def preempt(
        self, project: Project, request: GangRequest, claimed: Collection[int]
    ) -> GangWay | None:
        """A way at the cost of pods of the same project with a lower priority."""
        room = self._balance.growth_milli(project)
        purse = self._balance.beyond.purse(project)
        way = self._search.without(request, room, None, purse)
        most = self._balance.ceiling_milli(project)
        if way is not None or self._search.without(request, most, None, purse) is not None:
            return way  # none where there is room that is only kept from those who borrow
        victims = self._preemptible.lower(request.job)
        terms = self._preemptible.for_priority(most, room, claimed, purse)
        return self._search.best(request, victims, terms, None, anywhere=True)
