"""Extended resources that DRA drivers serve: a DeviceClass says so, and no node has any of them.

A pod asks for one as for a device plugin's. On a node whose plugin has none of it kube-scheduler
makes a claim for the pod and allocates devices; nobody else can, so such pods go through it (the
gate path), and there the amount is its to count. A kubelet that gets one from somebody else drops
what its node does not have, and runs the pod without. Source: Kubernetes' DRAExtendedResource,
plugin dynamicresources of kube-scheduler.
"""

from collections.abc import Callable

from gpu_scheduler.kube.objects import DeviceClass, Pod
from gpu_scheduler.state.pods.plugin import is_gpu

BEYOND_US = "resources of containers: no node has"
IMPLICIT = "deviceclass.resource.kubernetes.io/"  # before the name of any class


class DeviceClassStore:
    """The resources of the classes that are known."""

    def __init__(self) -> None:
        """None is known."""
        self._names: dict[str, str] = {}  # of a class, and what it calls its devices
        self.changes = 0  # so far

    def put(self, found: DeviceClass) -> frozenset[str]:
        """Take over a class; the resources that are served now, or no more."""
        return self._changed(found.metadata.name, found.spec.extended_resource_name)

    def drop(self, name: str) -> frozenset[str]:
        """Forget a class; the resources that are served no more."""
        return self._changed(name, None)

    def class_of(self, resource: str) -> str:
        """A class whose devices are given for the resource; empty where there is none."""
        if resource.startswith(IMPLICIT):
            name = resource.removeprefix(IMPLICIT)
            return name if name in self._names else ""
        return min((name for name, its in self._names.items() if its == resource), default="")

    def of(self, pod: Pod) -> frozenset[str]:
        """What the pod asks for that some class serves."""
        if not self._names:
            return frozenset()
        return frozenset(filter(self.class_of, asked(pod)))

    def _changed(self, name: str, resource: str | None) -> frozenset[str]:
        before = self._all()
        if resource is None:
            self._names.pop(name, None)
        else:
            self._names[name] = resource
        found = before ^ self._all()
        self.changes += bool(found)
        return found

    def _all(self) -> frozenset[str]:
        implicit = (f"{IMPLICIT}{name}" for name in self._names)
        return frozenset((*filter(None, self._names.values()), *implicit))


def asked(pod: Pod) -> set[str]:
    """Every resource that some container of the pod asks for."""
    return {
        resource
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for resource in container.resources.requests
    }


def beyond_us(pod: Pod, classes: DeviceClassStore, advertised: Callable[[str], bool]) -> str:
    """What a pod that we bind asks for, and kube-scheduler alone could give it; empty: nothing.

    ``advertised``: whether some node has any of a resource by a device plugin.
    """
    served = frozenset[str]() if pod.spec.scheduling_gates else classes.of(pod)
    for resource in sorted(served):
        if not advertised(resource):
            return (
                f"{BEYOND_US} {resource}, whose devices are those of DeviceClass "
                f"{classes.class_of(resource)}: kube-scheduler alone gives them, and a pod of a "
                "controller does not pass through it; ask for them in spec.resourceClaims"
            )
    return ""


def gpus_by_claim(pod: Pod) -> bool:
    """Whether kube-scheduler gave the pod GPUs so: which of its node's, is not known here."""
    told = pod.status.extended_resource_claim_status
    return told is not None and any(is_gpu(each.resource_name) for each in told.request_mappings)
