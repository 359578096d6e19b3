"""Clusters as bad luck makes them: cordoned and lost nodes, silent agents, devices given twice."""

from dataclasses import dataclass
from random import Random

from msgspec.structs import replace
from tests.unit.state.builders import half, make_node, make_pod

from gpu_scheduler.runtime.usage.seen import SeenUse
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.usage.answer import AgentUsage, ShareUse


@dataclass(frozen=True)
class RandomCluster:
    """``gpus``: how many there are."""

    state: ClusterState
    seen: SeenUse
    gpus: int


def random_cluster(random: Random, idle_seconds: int) -> RandomCluster:
    """One to five nodes whose pods are busy, idle, unknown, or several on one device."""
    state = ClusterState("gpu-system")
    seen = SeenUse(state.pods.known)
    gpus = 0
    for number in range(random.randint(1, 5)):
        name, count = f"n{number}", random.randint(1, 4)
        gpus += count
        state.nodes.changed(
            make_node(name, count, cordoned=random.random() < 0.2, ready=random.random() < 0.9)
        )
        shares = []
        for pod_number in range(random.randint(0, 6)):
            milli = random.choice((100, 300, 500, 1000))
            pod = make_pod(
                f"p-{number}-{pod_number}",
                node=name,
                devices=half(str(random.randrange(count)), milli),
                phase="Running",
            )
            record = state.pod_changed(pod)
            assert record is not None and record.allocation is not None
            share = ShareUse(
                device=record.allocation.devices[0].device,
                pod_uid=record.uid,
                container="main",
                busy=random.choice((None, 0.0, 0.4, 1.0)),
                idle_seconds=random.choice((None, 0, idle_seconds)),
            )
            shares += [share, replace(share, container="side")][: random.randint(0, 2)]
        if random.random() < 0.9:  # else its agent has never answered
            seen.take(name, AgentUsage(look=1, shares=tuple(shares)), 0.0)
    return RandomCluster(state, seen, gpus)
