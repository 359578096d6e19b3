"""The gangs of one planning cycle: what each asks for, whether it may be tried, and where it fits.

One per cycle; whatever deals with a gang asks here, so its request is worked out once. Called by
``plan`` and handed to every step of it.
"""

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from gpu_scheduler.core.decision import Place
from gpu_scheduler.core.demand import Demand
from gpu_scheduler.core.departures import Locator
from gpu_scheduler.core.gangs.placing import Placement, Placer
from gpu_scheduler.core.gangs.request import GangRequest, Requests
from gpu_scheduler.core.occupants import Occupant
from gpu_scheduler.core.placed import placed
from gpu_scheduler.core.request import WaitingJob, WaitingPod
from gpu_scheduler.core.scores import Candidates
from gpu_scheduler.core.session import Session

Flags = npt.NDArray[np.bool_]
Barred = Callable[[], Flags | None]  # the nodes that a step leaves alone, as of now


class Gangs:
    """Requests by job, and one placer."""

    def __init__(self, session: Session, locator: Locator) -> None:
        self.placer = Placer(session, locator)
        self.peers = session.peers
        self._session, self._locator = session, locator
        self._requests = Requests(session.demands)

    def of(self, job: WaitingJob) -> GangRequest:
        """What a gang asks for."""
        assert job.gang is not None
        return self._requests.of(job, job.gang)

    def lone(self, job: WaitingJob, pod: WaitingPod) -> GangRequest:
        """A single pod, treated as a gang of one."""
        return self._requests.lone(job, pod)

    def fits_alone(self, pod: WaitingPod, demand: Demand) -> bool:
        """Whether a member would find a place now if it were not one."""
        table = Candidates(demand, self._session.snapshot, self._session.table)
        return table.best(pod.avoid, forbidden=self.forbidden(pod, demand)) is not None

    def forbidden(self, pod: WaitingPod, demand: Demand) -> Flags | None:
        """[nodes] Where a pod, of a gang or not, may not go because of others; None = nowhere."""
        return None if self.peers is None else self.peers.forbidden(pod, demand)

    def may(self, pod: WaitingPod, demand: Demand, node: int) -> bool:
        """Whether other pods let it go to a node."""
        return self.peers is None or self.peers.allows(pod, demand, node)

    def nowhere(self, pod: WaitingPod, demand: Demand) -> bool:
        """Whether there is no node to which a pod of this shape may go, full or not."""
        return not demand.usable if self.peers is None else self.peers.nowhere(pod, demand)

    def may_after(self, placement: Placement, gone: Iterable[Occupant]) -> bool:
        """Whether pods may go to their places once these are gone, on whom they may depend."""
        if self.peers is None:
            return True
        find = self._locator.node
        places = [(pod, demand, node) for (pod, demand), node, _ in placement]
        return self.peers.would_hold(places, [(pod.uid, find(pod.node)) for pod in gone])

    def refusal(self, request: GangRequest) -> str:
        """Why the gang can never start on these nodes; empty when it may."""
        topology = request.topology
        if topology is None or not request.gang.nodes:
            return self._session.possible.refusal(request)
        division = self._session.domains.by(topology.key)
        allowed = self.placer.allowed(request, division)
        domains = [d for d in range(len(division.names)) if d in allowed]
        return self._session.possible.refusal(request, domains)

    def startable(self, request: GangRequest) -> bool:
        """Whether all members exist and a domain may hold them."""
        return (
            request.complete
            and all(demand.usable for demand in request.counts)
            and not self.refusal(request)
        )

    def start(self, request: GangRequest, placement: Placement) -> list[Place]:
        """Put all members on the snapshot; the decisions, in the order of the pods."""
        found = {
            member[0].uid: placed(
                self._session.snapshot, self.peers, request.job, member[0], node, choice
            )
            for member, node, choice in placement
        }
        return [found[pod.uid] for pod in request.job.pods if pod.uid in found]
