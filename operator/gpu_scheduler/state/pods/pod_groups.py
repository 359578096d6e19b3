"""Kubernetes' own gangs: PodGroups, which pods name in ``spec.schedulingGroup``.

A PodGroup's policy says with how many pods it starts at least (``gang.minCount``), or that they
start one by one (``basic``). Nobody asks for PodGroups before a pod of ours names one.
"""

from collections.abc import Callable

from gpu_scheduler.api.rules import MAX_GANG_PODS
from gpu_scheduler.kube.objects import PodGroup

FIELD = "spec.schedulingGroup"  # how every sentence of these begins


class PodGroupStore:
    """With how many pods each of them starts; 0: one by one."""

    def __init__(self) -> None:
        """None is known."""
        self._least: dict[tuple[str, str], int] = {}
        self.want: Callable[[], None] = lambda: None
        """Called when one is asked for."""

    def put(self, found: PodGroup) -> bool:
        """Take over one; whether it says something else now."""
        key, gang = (
            (found.metadata.namespace, found.metadata.name),
            found.spec.scheduling_policy.gang,
        )
        least = max(1, gang.min_count) if gang is not None else 0
        before, self._least[key] = self._least.get(key), least
        return before != least

    def drop(self, namespace: str, name: str) -> bool:
        """Forget one; whether it was known."""
        return self._least.pop((namespace, name), None) is not None

    def least(self, namespace: str, name: str) -> tuple[int, str]:
        """With how many pods one starts, and why that cannot be done or is not known."""
        self.want()
        least = self._least.get((namespace, name))
        if least is None:
            return 1, (
                f"{FIELD}: no PodGroup {name} is known in this namespace; with how many pods it "
                "starts is read there, once it is made"
            )
        if least > MAX_GANG_PODS:
            return 1, (
                f"{FIELD}: PodGroup {name} starts with {least} pods; at most {MAX_GANG_PODS} can "
                "start together: make spec.schedulingPolicy.gang.minCount smaller"
            )
        return least, ""
