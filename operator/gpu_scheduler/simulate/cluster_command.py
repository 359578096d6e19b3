"""``kubectl gpu simulate``: reads it, applies the what-ifs, plans, reports.

Nothing is written to the cluster. Kept apart from the command line so that another program can
call it with objects of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from gpu_scheduler.core.model.preemption_policy import FAIR, PreemptionPolicy
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.kube.command_client import CommandClient
from gpu_scheduler.kube.times import timestamp
from gpu_scheduler.simulate import what_if
from gpu_scheduler.simulate.cluster_cycles import plan_until_stable
from gpu_scheduler.simulate.cluster_objects import Objects
from gpu_scheduler.simulate.cluster_read import read
from gpu_scheduler.simulate.cluster_report import ClusterReport, allocated, report
from gpu_scheduler.simulate.operator_rules import OPERATOR_NAMESPACE, OperatorRules
from gpu_scheduler.simulate.simulated_cluster import scene_of


@dataclass(frozen=True, slots=True)
class ClusterRequest:
    """What is to be simulated.

    Attributes:
        packing: how nodes and devices are chosen.
        add: YAML files of objects that are added, in this order.
        remove: objects that are taken away before, as KIND/NAME.
        operator_namespace: where the operator runs; its own pods there are known as such.
        preemption_policy: when the operator evicts somebody.
        consolidation: whether the operator moves pods together.
    """

    packing: Packing = Packing.FRAGMENTATION
    add: Sequence[Path] = ()
    remove: Sequence[str] = ()
    operator_namespace: str = OPERATOR_NAMESPACE
    preemption_policy: PreemptionPolicy = FAIR
    consolidation: bool = False


def simulate(request: ClusterRequest, client: CommandClient, namespace: str) -> ClusterReport:
    """Simulate on a cluster; ``namespace`` is that of what-ifs that name none.

    Raises:
        SimulationError: a what-if cannot be used.
        errors.ApiError: the cluster may not be read, or does not answer.
    """
    server = client.connection.server
    return simulate_objects(request, read(client), server, namespace, datetime.now(UTC))


def simulate_objects(
    request: ClusterRequest, objects: Objects, server: str, namespace: str, at: datetime
) -> ClusterReport:
    """Simulate on these objects; ``namespace`` is that of what-ifs that name none.

    Raises:
        SimulationError: a what-if cannot be used.
    """
    now = timestamp(at)
    before = allocated(scene_of(objects, request.operator_namespace, now).state.snapshot())
    for what in request.remove:
        what_if.remove(objects, what, namespace)
    for path in request.add:
        what_if.add(objects, path, namespace, now)
    rules = OperatorRules(request.preemption_policy, request.packing, request.consolidation)
    moves = rules.consolidation
    simulated = scene_of(objects, request.operator_namespace, now, consolidation=moves)
    outcome = plan_until_stable(simulated, rules, now)
    return report(simulated, outcome, server, objects, before)
