"""What a dump holds, as tables: its GPUs with who holds them, and what waits.

All that one needs to see beside a plan to say why it is so; which plan that is, a report says.
"""

from collections.abc import Iterator

from gpu_scheduler.core.model import wording
from gpu_scheduler.core.model.cluster import Cluster, NodeInfo
from gpu_scheduler.core.model.request import WaitingJob
from gpu_scheduler.core.model.units import gpu_from_milli
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.simulate.cluster_table import MOST_ROWS, columns, more, section, wrapped

_Device = tuple[str, str]  # node and id
_ALL_IN = "the file"


def tables(given: PlanInput) -> str:
    """GPUs and waiting jobs, as they were when the dump was made."""
    parts = [section("As of the dump", len(given.cluster.dev_id), "GPU", _devices(given))]
    if given.jobs:
        parts.append(section("Its queue", len(given.jobs), "job", _jobs(given)))
    return "\n\n".join(parts)


def _devices(given: PlanInput) -> Iterator[str]:
    """A row for the devices of a node of which the same is to be said."""
    cluster, held = given.cluster, _held(given)
    rows: dict[tuple[str, ...], list[str]] = {}
    for number, node in enumerate(cluster.nodes):
        for device in range(cluster.first[number], cluster.first[number + 1]):
            said = held.get((node.name, cluster.dev_id[device]), [])
            row = (
                node.name,
                cluster.dev_model[device].removeprefix("NVIDIA-"),
                gpu_from_milli(cluster.free_milli[device]),
                str(cluster.free_mib[device]),
                "; ".join([*_trouble(cluster, node, device), *said]) or "-",
            )
            rows.setdefault(row, []).append(str(device - cluster.first[number]))
    cells = [(row[0], ",".join(numbers), *row[1:]) for row, numbers in rows.items()]
    yield from columns(("NODE", "GPUS", "MODEL", "FREE", "MIB FREE", "HELD BY"), cells, _ALL_IN)


def _held(given: PlanInput) -> dict[_Device, list[str]]:
    """Who holds what of each device, and for whom it is kept."""
    called, held = given.cluster.name_of, dict[_Device, list[str]]()
    for pod in given.running_pods.all():
        for allocated in pod.devices:
            ends = ", ending" if pod.leaving else ""
            said = f"{called(pod.job)} ({gpu_from_milli(allocated.milli)}{ends})"
            held.setdefault((pod.node, allocated.device), []).append(said)
    for each in given.reservations:
        for allocated in each.devices:
            said = f"kept for {called(each.job)}: {each.reason}"
            held.setdefault((each.node, allocated.device), []).append(said)
    return held


def _trouble(cluster: Cluster, node: NodeInfo, device: int) -> Iterator[str]:
    if node.unschedulable:
        yield f"the node {node.unschedulable}"
    for level in node.failed_isolation:
        yield f"the node failed the self-test of isolation: {level}"
    for taint in node.taints:
        yield f"taint {taint.key}={taint.value}"
    if not cluster.dev_healthy[device]:
        yield cluster.dev_trouble.get(device, "takes no new pods")


def _jobs(given: PlanInput) -> Iterator[str]:
    """A sentence for each, in the order of the dump."""
    for job in given.jobs[:MOST_ROWS]:
        since = min((pod.since for pod in job.pods), default=job.created)
        words = (
            f"{given.cluster.name_of(job.key)}: priority {job.priority}, waits since "
            f"{wording.at(since)}, {wording.pods(len(job.pods))}{_gang(job)}"
        )
        yield from wrapped(words, "  ", "    ")
    yield from more(len(given.jobs), _ALL_IN)


def _gang(job: WaitingJob) -> str:
    if job.gang is None:
        return ""
    one, nodes = job.gang.topology, sorted(job.gang.nodes)
    where = f", in one {one.key}" if one is not None and one.required else ""
    others = f"; the others run on {wording.names(nodes)}" if nodes else ""
    return f"; {job.gang.missing} of a gang of {job.gang.size} is missing{where}{others}"
