"""Why a pod that could run finds no place now: no GPU, only pieces of GPUs, or no CPU beside them.

Speaks of the node that comes closest, with numbers from the end of the cycle: as long as nothing
changes, the sentence does not either.
"""

from collections.abc import Iterable
from typing import NamedTuple

from gpu_scheduler.core.explain.resource_words import resources
from gpu_scheduler.core.model import wording
from gpu_scheduler.core.model.cluster import NodeInfo
from gpu_scheduler.core.model.decision import Reason, Verdict
from gpu_scheduler.core.model.pod_request import PodRequest
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.model.units import DEVICE_MILLI, gpu_from_milli


class Stock(NamedTuple):
    """What is free for a pod shape on one node; the larger, the closer it comes."""

    fitting: int  # devices that would serve a lone request
    largest: int  # milli, or MiB when the request is a lone one in MiB
    total: int
    order: int  # minus the node's number


def shortage(pod_request: PodRequest, avoid: frozenset[str], snapshot: Snapshot) -> Verdict:
    """The reason and the sentence for a pod that finds no place."""
    nodes, pod_shape = snapshot.cluster.nodes, pod_request.pod_shape
    needs = f"needs {wording.needs(pod_shape)}"
    usable = [n for n in pod_request.usable if nodes[n].name not in avoid]
    gpus_fit = [n for n in usable if pod_request.chooser.choose(n) is not None]
    if open_now := [n for n in gpus_fit if snapshot.has_room(n, pod_shape)]:
        # It came free only after pods had been tried: what was reserved there was given up.
        return Reason.WAITING_FOR_GPU, f"{needs}; {_tried_next(open_now, snapshot)}"
    if gpus_fit:
        return Reason.WAITING_FOR_RESOURCES, f"{needs}; {_lacking(pod_request, gpus_fit, snapshot)}"
    stocks = _stocks(pod_request, usable, snapshot)
    total = sum(stock.total for stock in stocks)
    wanted = pod_shape.devices[0].count * pod_shape.devices[0].mib if _in_mib(pod_request) else 0
    if pod_shape.devices and total >= (wanted or pod_request.least_milli):
        return Reason.FRAGMENTED, f"{needs}; {_best(pod_request, max(stocks), snapshot)}"
    shut = sorted(set(pod_request.could).difference(usable))
    known = (n for n in shut if not (pod_shape.devices and nodes[n].foreign))
    gpus_fit = [n for n in known if pod_request.chooser.choose(n) is not None]
    if gpus_fit:
        free = "they are free" if pod_shape.devices else "there is room"
        where = _shut(pod_request, gpus_fit, snapshot)
        return (
            Reason.WAITING_FOR_RESOURCES,
            f"{needs}; {free} only where pods cannot start now: {where}",
        )
    text = _taken(pod_request, stocks, snapshot)
    if shut:
        text += f"; {_shut(pod_request, shut, snapshot)}"
    return Reason.WAITING_FOR_GPU, f"{needs}; {text}{_unhealthy(pod_request, snapshot)}"


def _tried_next(numbers: list[int], snapshot: Snapshot) -> str:
    names = wording.names([snapshot.cluster.nodes[n].name for n in numbers])
    return f"room has just come free on {names} and is tried in the next cycle"


def _in_mib(pod_request: PodRequest) -> bool:
    devices = pod_request.pod_shape.devices
    return len(devices) == 1 and devices[0].mib > 0


def _stocks(pod_request: PodRequest, nodes: list[int], snapshot: Snapshot) -> list[Stock]:
    """Worked out once for all nodes in the same state."""
    cluster, shapes, first = snapshot.cluster, snapshot.node_shape, snapshot.cluster.first
    known: dict[tuple[int, ...], Stock] = {}
    found = []
    for n in nodes:
        a, b = first[n], first[n + 1]
        state = (shapes[n], *cluster.free_milli[a:b], *cluster.free_mib[a:b])
        stock = known.get(state)
        if stock is None:
            stock = known[state] = _stock(pod_request, n, snapshot)
        found.append(Stock(stock.fitting, stock.largest, stock.total, -n))
    return found


def _stock(pod_request: PodRequest, node: int, snapshot: Snapshot) -> Stock:
    cluster, requests = snapshot.cluster, pod_request.pod_shape.devices
    base = cluster.first[node]
    free = cluster.free_mib if _in_mib(pod_request) else cluster.free_milli
    amounts = [
        free[base + offset] for offset in pod_request.chooser.eligible(snapshot.node_shape[node])
    ]
    fitting = 0
    if len(requests) == 1 and amounts and (requests[0].mib or max(amounts) >= requests[0].milli):
        for offset, _, milli, mib, _ in pod_request.chooser.seats(snapshot.node_shape[node]):
            device = base + offset
            fitting += milli <= cluster.free_milli[device] and mib <= cluster.free_mib[device]
    return Stock(fitting, max(amounts, default=0), sum(amounts), -node)


def _best(pod_request: PodRequest, stock: Stock, snapshot: Snapshot) -> str:
    name = snapshot.cluster.nodes[-stock.order].name
    requests = pod_request.pod_shape.devices
    if _in_mib(pod_request):
        largest, total = f"{stock.largest} MiB", f"{stock.total} MiB"
    else:
        largest, total = gpu_from_milli(stock.largest), gpu_from_milli(stock.total)
    if len(requests) == 1 and requests[0].milli == DEVICE_MILLI:
        has = f"{wording.gpu_count(stock.fitting)} fully free, {total} free in all"
    elif len(requests) == 1 and requests[0].count > 1:
        has = f"that much on {wording.gpu_count(stock.fitting)}, {total} free in all"
    else:
        has = f"{largest} free on one GPU, {total} in all"
    return f"best node {name} has {has}"


def _taken(pod_request: PodRequest, stocks: list[Stock], snapshot: Snapshot) -> str:
    if not stocks:
        return f"{wording.nodes(len(pod_request.could))} could hold it, none takes pods now"
    total = sum(stock.total for stock in stocks)
    where = f"on the {wording.nodes(len(stocks))} that it may use"
    if total == 0:
        return f"no GPU is free {where}"
    amount = (
        f"{total} MiB are"
        if _in_mib(pod_request)
        else f"{wording.gpus(total)} {'is' if total == DEVICE_MILLI else 'are'}"
    )
    return f"{amount} free {where}, {_best(pod_request, max(stocks), snapshot)}"


def _shut(pod_request: PodRequest, numbers: list[int], snapshot: Snapshot) -> str:
    """Nodes by what closes them; those where a self-test failed together, with the way out."""
    nodes, shape = [snapshot.cluster.nodes[n] for n in numbers], pod_request.pod_shape
    failed = "is left out for a while, a pod of the job just failed there"
    shut = [
        f"{node.name} {node.unschedulable or failed}"
        for node in nodes
        if node.unschedulable or not node.closed_to(shape)
    ]
    said = [wording.names(shut)] if shut else []
    return ", ".join([*said, *untrusted(pod_request, nodes)])


def untrusted(pod_request: PodRequest, nodes: Iterable[NodeInfo]) -> list[str]:
    """Of nodes those where its level of isolation did not hold, with the way out; or nothing."""
    shape = pod_request.pod_shape
    names = [node.name for node in nodes if not node.unschedulable and node.closed_to(shape)]
    if not names:
        return []
    return [
        f"{wording.nodes(len(names))} ({wording.names(names)}) failed the self-test of isolation: "
        f"{shape.isolation} (kubectl gpu check shows what the test saw); isolation: framework, or "
        "whole GPUs, do without"
    ]


def _unhealthy(pod_request: PodRequest, snapshot: Snapshot) -> str:
    """Devices that would do if they took pods, and why they do not."""
    cluster = snapshot.cluster
    sick = [
        (n, device)
        for n in pod_request.could
        for offset in pod_request.chooser.eligible(snapshot.node_shape[n])
        if not cluster.dev_healthy[device := cluster.first[n] + offset]
    ]
    if not sick:
        return ""
    told = [
        f"{cluster.dev_id[device]} of {cluster.nodes[n].name} {cluster.dev_trouble[device]}"
        for n, device in sick
        if device in cluster.dev_trouble
    ]
    count = wording.gpu_count(len(sick))
    return f"; {count} out of use: {wording.names(told)}" if told else f"; {count} unhealthy"


def _lacking(pod_request: PodRequest, numbers: list[int], snapshot: Snapshot) -> str:
    """The node that lacks the fewest things, and what it lacks."""
    _, node, missing = min(lacks(pod_request, n, snapshot) for n in numbers)
    name = snapshot.cluster.nodes[node].name
    free = (
        "has the GPUs free but lacks"
        if pod_request.pod_shape.devices
        else "is the closest but lacks"
    )
    return f"{name} {free} {' and '.join(missing)}"


def lacks(
    pod_request: PodRequest, node: int, snapshot: Snapshot
) -> tuple[tuple[int, int, int], int, tuple[str, ...]]:
    """What a node lacks beside GPUs: how much, as a sort key, the node again, and in words."""
    cluster, pod_shape = snapshot.cluster, pod_request.pod_shape
    free_on = snapshot.free_on(node, pod_shape.scalars)
    found = []
    for each in resources(pod_shape):
        need, free = each.amount(pod_shape), each.amount(free_on)
        if free < need:
            found.append(f"{each.name} (needs {each.needed(need)}, {each.there(free)} free)")
    if cluster.free_pods[node] <= 0:
        found.append(f"a pod slot (all {cluster.nodes[node].pods} are taken)")
    cpu = max(0, pod_shape.cpu_milli - free_on.cpu_milli)
    gap = cpu, max(0, pod_shape.memory_bytes - free_on.memory_bytes)
    return (len(found), *gap), node, tuple(found)
