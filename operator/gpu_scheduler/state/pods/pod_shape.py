"""From a pod as the API server returned it to what it needs of a node.

A pod's effective requests are those of Kubernetes: containers and sidecars together, or the
largest init container with the sidecars started before it, whichever is more, plus overhead;
pod-level requests win where they are set. Source: k8s.io/component-helpers, resource package.
Amounts saturate (``core.model.quantity``): a pod that asks for the most there is fits on no node.
"""

from collections.abc import Mapping
from dataclasses import replace

from gpu_scheduler.core.model.fit import NODE_NAME
from gpu_scheduler.core.model.quantity import MOST, MOST_CPU_MILLI, asked, asked_cpu_milli
from gpu_scheduler.core.model.request import (
    DeviceRequest,
    NodeFilter,
    NodeSelectorTerm,
    PodShape,
)
from gpu_scheduler.core.model.requirement import Requirement
from gpu_scheduler.kube.objects import Container, Pod

Need = tuple[int, int, int]  # milli-CPU, memory in bytes, ephemeral storage in bytes
_ZERO: Need = (0, 0, 0)


def pod_resources(pod: Pod) -> Need:
    """Milli-CPU, memory and ephemeral storage in bytes that the pod occupies on its node."""
    spec = pod.spec
    running = _ZERO  # containers and every sidecar
    starting = _ZERO  # the most that any init container needs at its turn
    sidecars = _ZERO
    for container in spec.init_containers:
        need = _container(container)
        if container.restart_policy == "Always":
            sidecars = _sum(sidecars, need)
            starting = _most(starting, sidecars)
        else:
            starting = _most(starting, _sum(need, sidecars))
    for container in spec.containers:
        running = _sum(running, _container(container))
    total = _most(_sum(running, sidecars), starting)
    if spec.resources is not None:
        total = _pod_level(spec.resources.requests, total)
    return _sum(total, _need(spec.overhead)) if spec.overhead else total


def pod_shape_of(
    pod: Pod,
    requests: tuple[DeviceRequest, ...],
    models: tuple[str, ...],
    min_compute: tuple[int, int],
) -> PodShape:
    """What the planner sees of a waiting pod; requests, models and compute are its job's."""
    cpu, memory, ephemeral = pod_resources(pod)
    return PodShape(requests, models, min_compute, cpu, memory, ephemeral, node_filter(pod))


def node_filter(pod: Pod) -> NodeFilter:
    """Which nodes the pod accepts."""
    spec, required, terms = pod.spec, pod.spec.required_nodes, None
    if required is not None:
        found = required.node_selector_terms
        terms = tuple(NodeSelectorTerm(each.match_expressions, each.match_fields) for each in found)
    return NodeFilter(
        selector=tuple(sorted(spec.node_selector.items())),
        terms=terms,
        tolerations=spec.tolerations,
    )


def unpinned(where: NodeFilter, node: str) -> NodeFilter:
    """Which nodes a pod accepted before the gate path pinned it to one (``jobs.gate``).

    The pin is the last field of each term. A pin by hostname looks like a selector of the user's
    and stays: such a pod seems to accept its own node only.
    """
    pin = Requirement(NODE_NAME, "In", (node,))
    if where.terms is None:
        return where
    terms = tuple(
        replace(term, fields=term.fields[:-1]) if term.fields[-1:] == (pin,) else term
        for term in where.terms
    )
    return replace(where, terms=None if terms == (NodeSelectorTerm(),) != where.terms else terms)


def _container(container: Container) -> Need:
    # The API server sets requests to limits where only these are given.
    return _need(container.resources.requests)


def _need(quantities: Mapping[str, str]) -> Need:
    return (
        asked_cpu_milli(quantities.get("cpu", "0")),
        asked(quantities.get("memory", "0")),
        asked(quantities.get("ephemeral-storage", "0")),
    )


def _pod_level(requests: Mapping[str, str], total: Need) -> Need:
    return (
        asked_cpu_milli(requests["cpu"]) if "cpu" in requests else total[0],
        asked(requests["memory"]) if "memory" in requests else total[1],
        total[2],
    )


def _sum(a: Need, b: Need) -> Need:
    return (min(a[0] + b[0], MOST_CPU_MILLI), min(a[1] + b[1], MOST), min(a[2] + b[2], MOST))


def _most(a: Need, b: Need) -> Need:
    return (max(a[0], b[0]), max(a[1], b[1]), max(a[2], b[2]))
