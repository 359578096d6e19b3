"""Which project a namespace belongs to, and who claims it in vain.

See ``owners``.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpu_scheduler.api.gpuproject import START_TIMEOUT_SECONDS
from gpu_scheduler.core.model.request import Project, ProjectName
from gpu_scheduler.state.jobs.owners import OwnerStore


@dataclass(frozen=True, slots=True)
class ProjectRecord:
    """A GPUProject as last seen. ``created``: its creationTimestamp as text."""

    project: Project
    namespaces: tuple[str, ...]
    created: str
    generation: int
    uid: str
    problem: str = ""  # why its spec cannot be used
    over_cap_policy: str = ""  # warn, kill or evict; empty = not said
    start_timeout_seconds: int = START_TIMEOUT_SECONDS  # 0 = none


class ProjectStore(OwnerStore[ProjectName, ProjectRecord]):
    """All projects and the ownership of namespaces that follows from them."""

    def touch(self, namespace: str) -> None:
        """The status of a namespace's project may be another one."""
        owner = self.owner(namespace)
        if owner is not None:
            self.touched.add(owner)

    def holdings(self, by_namespace: Mapping[str, int]) -> dict[ProjectName, int]:
        """What namespaces hold, by project; those without one are left out."""
        held: dict[ProjectName, int] = {}
        for namespace, milli in by_namespace.items():
            owner = self.owner(namespace)
            if owner is not None:
                held[owner] = held.get(owner, 0) + milli
        return held

    def holdings_by_model(
        self, held: Mapping[tuple[str, str], int]
    ) -> dict[tuple[ProjectName, str], int]:
        """What namespaces hold of each product, by project; those without one are left out."""
        by_model: Counter[tuple[ProjectName, str]] = Counter()
        for (namespace, product), milli in held.items():
            owner = self.owner(namespace)
            if owner is not None and milli:
                by_model[owner, product] += milli
        return by_model

    def _claims(self, record: ProjectRecord) -> tuple[str, ProjectName, Iterable[str]]:
        return record.created, record.project.name, record.namespaces


def no_project(namespace: str) -> str:
    """What is wrong with a GPUJob whose namespace no project lists.

    It names no project: whoever reads it may not be one to see them.
    """
    return (
        f"metadata.namespace: namespace {namespace} belongs to no project. An administrator adds "
        f"it to spec.namespaces of a GPUProject (kubectl edit gpuproject NAME) or creates one that "
        f"lists it"
    )
