"""What hears of objects: our own kinds first, then those whose watches tell all other parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpu_scheduler.api.names import COMPONENT_AGENT, LABEL_COMPONENT, LABEL_JOB
from gpu_scheduler.kube.objects import (
    DeviceClass,
    Job,
    Lease,
    Namespace,
    Node,
    Pod,
    ResourceQuota,
)
from gpu_scheduler.kube.paths import (
    DEVICE_CLASSES,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_QUOTAS,
    lease,
)
from gpu_scheduler.kube.reflector import EventHandler, Reflector, WatchOptions
from gpu_scheduler.runtime.common.build import CommonParts, Loop
from gpu_scheduler.runtime.informers.changed_nodes import ChangedNodes
from gpu_scheduler.runtime.informers.custom_resources import CustomResources, DevicesChanged
from gpu_scheduler.runtime.informers.event_handlers import DeviceClassHandler, NodeHandler
from gpu_scheduler.runtime.informers.first_look import FirstLook
from gpu_scheduler.runtime.informers.heartbeats import Heartbeats
from gpu_scheduler.runtime.informers.our_lists import OPTIONAL, PATHS, OurLists
from gpu_scheduler.runtime.informers.pod_groups import PodGroups

_LEASE_SILENCE_SECONDS = 30.0  # a dead watch must not make agents look dead


@dataclass(frozen=True, slots=True)
class InformerParts:
    """Our own kinds, and what is known of agents."""

    custom_resources: CustomResources
    lists: OurLists
    heartbeats: Heartbeats
    changed_nodes: ChangedNodes
    leases: Reflector[Lease]

    @property
    def loops(self) -> Sequence[Loop]:
        """Leases are not waited for: until one has been seen for its term, its agent is alive."""
        return (self.leases.run, self.heartbeats.run)


@dataclass(frozen=True, slots=True)
class WatchParts:
    """All other kinds. ``first_look`` runs the reflectors of what has to be known first."""

    first_look: FirstLook
    namespaces: Reflector[Namespace]
    quotas: Reflector[ResourceQuota]
    device_classes: Reflector[DeviceClass]
    pod_groups: PodGroups

    @property
    def loops(self) -> Sequence[Loop]:
        """Namespaces, quotas, DeviceClasses and PodGroups are not waited for.

        Without them the API server refuses what cannot be made any more, and what it refused is
        tried again later; what a DeviceClass serves seems to be nowhere for a moment; and pods that
        name a PodGroup wait for it.
        """
        more = self.namespaces.run, self.quotas.run, self.device_classes.run, self.pod_groups.run
        return (*more, self.first_look.run)


def build(common: CommonParts, devices_changed: DevicesChanged) -> InformerParts:
    """Make what hears of our own kinds; ``devices_changed``: told of the devices of a GPUNode."""
    state, client, queue = common.state, common.client, common.queue
    client.watches.need([*PATHS.values(), NODES, JOBS, PODS], [OPTIONAL], state.changes.replan)
    changed_nodes = ChangedNodes()
    custom_resources = CustomResources(
        state,
        changed=queue.add,
        look=queue.ask,
        devices_changed=devices_changed,
        node_changed=changed_nodes.add,
        read_again=lambda: lists.ask(),
    )
    lists = OurLists(client, custom_resources)
    heartbeats = Heartbeats(state, changed_nodes, clock=common.clock.monotonic)
    leases = Reflector(
        client,
        lease(common.settings.lease_namespace),
        Lease,
        heartbeats,
        WatchOptions(
            label_selector=f"{LABEL_COMPONENT}={COMPONENT_AGENT}",
            inactivity_seconds=_LEASE_SILENCE_SECONDS,
        ),
    )
    return InformerParts(custom_resources, lists, heartbeats, changed_nodes, leases)


def watch(
    common: CommonParts,
    lists: OurLists,
    jobs: EventHandler[Job],
    pods: EventHandler[Pod],
    namespaces: EventHandler[Namespace],
    quotas: EventHandler[ResourceQuota],
) -> WatchParts:
    """Make what hears of the kinds of Kubernetes; who is told of each says its handler."""
    client = common.client
    reflectors: list[Reflector[Any]] = [
        Reflector(client, NODES, Node, NodeHandler(common.state)),
        Reflector(client, JOBS, Job, jobs, WatchOptions(label_selector=LABEL_JOB)),
        Reflector(client, PODS, Pod, pods),
    ]
    return WatchParts(
        FirstLook(lists, reflectors, common.settings.resync_seconds),
        Reflector(client, NAMESPACES, Namespace, namespaces),
        Reflector(client, RESOURCE_QUOTAS, ResourceQuota, quotas),
        Reflector(
            client,
            DEVICE_CLASSES,
            DeviceClass,
            DeviceClassHandler(common.state, common.queue.add),
        ),
        PodGroups(client, common.state),
    )
