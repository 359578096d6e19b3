"""Which project a namespace belongs to, and who claims it in vain.

The oldest GPUProject that lists a namespace owns it (then the first by name); every later claim is
a conflict that its status reports. Read by the planner's snapshot and by the status writer.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from gpu_scheduler.api.gpuproject import START_TIMEOUT_SECONDS
from gpu_scheduler.core.model.request import Project, ProjectName


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


@dataclass(frozen=True, slots=True)
class Claim:
    """A namespace that a project lists but another one owns."""

    namespace: str
    owner: ProjectName


class ProjectBook:
    """All projects and the ownership that follows from them."""

    def __init__(self) -> None:
        """Start empty."""
        self.records: dict[ProjectName, ProjectRecord] = {}
        self._owner: dict[str, ProjectName] = {}

    def put(self, record: ProjectRecord) -> bool:
        """Add or replace a project; False when nothing changed."""
        name = record.project.name
        if self.records.get(name) == record:
            return False
        self.records[name] = record
        self._settle()
        return True

    def drop(self, name: ProjectName) -> bool:
        """Remove a project; its namespaces go to the next claimant, if any."""
        if self.records.pop(name, None) is None:
            return False
        self._settle()
        return True

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

    def owner(self, namespace: str) -> ProjectName | None:
        """The project that a namespace belongs to."""
        return self._owner.get(namespace)

    def namespaces(self, name: ProjectName) -> tuple[str, ...]:
        """The namespaces that the project really owns."""
        record = self.records.get(name)
        if record is None:
            return ()
        return tuple(ns for ns in record.namespaces if self._owner.get(ns) == name)

    def conflicts(self, name: ProjectName) -> tuple[Claim, ...]:
        """Namespaces that the project lists in vain."""
        record = self.records.get(name)
        if record is None:
            return ()
        owners = ((ns, self._owner[ns]) for ns in record.namespaces)
        return tuple(Claim(ns, owner) for ns, owner in owners if owner != name)

    def _settle(self) -> None:
        self._owner = {}
        for name, record in sorted(
            self.records.items(), key=lambda item: (item[1].created, item[0])
        ):
            for namespace in record.namespaces:
                self._owner.setdefault(namespace, name)
