"""From a pod as the API server returned it to what it needs of a node.

A pod's effective requests are those of Kubernetes: containers and sidecars together, or the
largest init container with the sidecars started before it, whichever is more, plus overhead;
pod-level requests win where they are set. Source: k8s.io/component-helpers, resource package.
Amounts saturate (``core.model.quantity``): a pod that asks for the most there is fits on no node.
"""

from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import replace

import msgspec

from gpu_scheduler.api.names import CAP_CONTAINER
from gpu_scheduler.core.model.fit import NODE_NAME
from gpu_scheduler.core.model.quantity import MOST, MOST_CPU_MILLI, asked, asked_cpu_milli
from gpu_scheduler.core.model.request import (
    DeviceRequest,
    NodeFilter,
    NodeSelectorTerm,
    PodShape,
)
from gpu_scheduler.core.model.requirement import Requirement
from gpu_scheduler.core.model.resources import NOTHING, NodeResources, Scalars, scalars_of
from gpu_scheduler.kube.objects import Container, ContainerResources, Pod, PodStatus
from gpu_scheduler.state.pods.scalars import INDEXED, is_scalar

MOST_SCALARS = 64  # kinds that a pod may ask for
TOO_MANY = f"kinds of resources beyond {MOST_SCALARS}"
_STATUS = msgspec.json.Decoder(ContainerResources)


def pod_resources(pod: Pod) -> NodeResources:
    """What the pod occupies on its node beside GPUs.

    Where it was resized in place, the largest counts of what it asks for, was allocated, and has:
    the kubelet goes by the same.
    """
    spec, status = pod.spec, pod.status
    never = any(
        c.type == "PodResizePending" and c.reason == "Infeasible" for c in status.conditions
    )
    there = _there((*status.container_statuses, *status.init_container_statuses))

    def need(container: Container) -> NodeResources:  # an init container cannot be resized
        # The API server sets requests to limits where only these are given.
        asked = container.resources.requests
        return _larger(asked, there.get(container.name, ()), never) if there else _need(asked)

    running = NOTHING  # containers and every sidecar
    starting = NOTHING  # the most that any init container needs at its turn
    sidecars = NOTHING
    for container in spec.init_containers:
        if container.restart_policy == "Always":
            sidecars += need(container)
            starting = starting.at_least(sidecars)
        else:
            starting = starting.at_least(_need(container.resources.requests) + sidecars)
    for container in spec.containers:
        running += need(container)
    total = (running + sidecars).at_least(starting)
    if spec.resources is not None:
        asked = spec.resources.requests
        total = _pod_level(asked, _larger(asked, _told(status), never), total)
    return _saturated(total + _need(spec.overhead) if spec.overhead else total)


def pod_shape_of(
    pod: Pod,
    requests: tuple[DeviceRequest, ...],
    models: tuple[str, ...],
    min_compute: tuple[int, int],
    elsewhere: Set[str] = frozenset(),
) -> PodShape:
    """What the planner sees of a waiting pod; requests, models and compute are its job's.

    ``elsewhere``: resources that somebody else counts for this pod.
    """
    need = pod_resources(pod)
    scalars = need.scalars
    if elsewhere:
        scalars = tuple(each for each in scalars if each[0] not in elsewhere)
    return PodShape(
        requests,
        models,
        min_compute,
        need.cpu_milli,
        need.memory_bytes,
        need.ephemeral_bytes,
        node_filter(pod),
        scalars,
        _isolation(pod),
    )


def _isolation(pod: Pod) -> str:
    """What is to hold the pod's memory caps: the library, where our init container brings it."""
    first = pod.spec.init_containers[:1]
    return "interposer" if any(each.name == CAP_CONTAINER for each in first) else ""


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


def _there(raw: Iterable[msgspec.Raw]) -> dict[str, list[Mapping[str, str]]]:
    """Requests of containers as their node says them, by name."""
    found: dict[str, list[Mapping[str, str]]] = {}
    for each in raw:
        with suppress(msgspec.DecodeError):
            said = _STATUS.decode(each)
            found[said.name] = _told(said)
    return found


def _told(said: ContainerResources | PodStatus) -> list[Mapping[str, str]]:
    """Requests that were allocated, and those in force."""
    in_force = said.resources.requests if said.resources is not None else {}
    return [each for each in (said.allocated_resources, in_force) if each]


def _larger(
    asked: Mapping[str, str], there: Iterable[Mapping[str, str]], never: bool
) -> NodeResources:
    """The most of each; ``never``: it will not get what it asks for.

    Source: determineEffectiveRequests, k8s.io/component-helpers, resource package.
    """
    others = [each for each in there if each != asked]
    need = NOTHING if others and never else _need(asked)
    for each in others:
        need = need.at_least(_need(each))
    return need


def _need(quantities: Mapping[str, str]) -> NodeResources:
    scalars: Scalars = ()
    if not quantities.keys() <= INDEXED:
        scalars = _scalars(quantities)
    return NodeResources(
        asked_cpu_milli(quantities.get("cpu", "0")),
        asked(quantities.get("memory", "0")),
        asked(quantities.get("ephemeral-storage", "0")),
        scalars,
    )


def _scalars(quantities: Mapping[str, str]) -> Scalars:
    named = {name: text for name, text in quantities.items() if is_scalar(name)}
    if len(named) > MOST_SCALARS:
        return ((TOO_MANY, MOST),)
    return scalars_of({name: asked(quantity) for name, quantity in named.items()})


def _pod_level(
    names: Mapping[str, str], level: NodeResources, total: NodeResources
) -> NodeResources:
    """What stands for the pod as a whole goes before the sum of its containers."""
    return NodeResources(
        level.cpu_milli if "cpu" in names else total.cpu_milli,
        level.memory_bytes if "memory" in names else total.memory_bytes,
        total.ephemeral_bytes,
        scalars_of({**dict(total.scalars), **dict(level.scalars)}),
    )


def _saturated(need: NodeResources) -> NodeResources:
    return NodeResources(
        min(need.cpu_milli, MOST_CPU_MILLI),
        min(need.memory_bytes, MOST),
        min(need.ephemeral_bytes, MOST),
        tuple((name, min(amount, MOST)) for name, amount in need.scalars),
    )
