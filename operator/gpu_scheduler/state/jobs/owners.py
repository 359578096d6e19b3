"""Who owns a name that several objects claim, and who claims it in vain.

Namespaces are claimed by GPUProjects, shapes by GPUClasses. The oldest object that claims a name
owns it (then the first by name); every later claim is a conflict that its status reports. Statuses
are kept beside the objects, so that news of them are no news of what is claimed. The base of
``ProjectStore`` and ``ClassStore``.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Name = TypeVar("Name", bound=str)
Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class Claim:
    """A name that one object claims but another one owns."""

    name: str
    owner: str


class OwnerStore(ABC, Generic[Name, Record]):
    """All objects of a kind, by name, and the ownership that follows from them."""

    def __init__(self) -> None:
        """Start empty."""
        self.records: dict[Name, Record] = {}
        self.statuses: dict[Name, Mapping[str, Any]] = {}  # as the API server last showed them
        self.touched: set[Name] = set()  # whose status may be another one
        self.owners: Mapping[str, Name] = {}
        """Whose each name is; another object as soon as one is another's."""

    def put(self, record: Record) -> bool:
        """Add or replace an object; False when nothing changed."""
        _, name, _ = self._claims(record)
        if self.records.get(name) == record:
            return False
        self.records[name] = record
        self._settle()
        return True

    def drop(self, name: Name) -> bool:
        """Remove an object; what it owned goes to the next claimant, if any."""
        self.statuses.pop(name, None)
        if self.records.pop(name, None) is None:
            return False
        self._settle()
        return True

    def told(self, name: Name, status: Mapping[str, Any]) -> None:
        """The API server shows this status; one that is news may be an old one that came late."""
        if self.statuses.get(name) != status:
            self.touched.add(name)
        self.statuses[name] = status

    def written(self, name: Name, before: Mapping[str, Any], status: Mapping[str, Any]) -> None:
        """The API server has taken this status; ``before``: what it showed when that was sent.

        What it has shown since then may be older, or an earlier write that arrived later.
        """
        if name not in self.records:
            return
        shown = self.statuses.get(name, before)
        if shown is before:
            self.statuses[name] = status
        elif shown != status:
            self.touched.add(name)

    def take_touched(self) -> Set[Name]:
        """The objects whose status may be another one, each once."""
        taken, self.touched = self.touched, set()
        return taken

    def owner(self, claimed: str) -> Name | None:
        """Whose a name is."""
        return self.owners.get(claimed)

    def conflicts(self, name: Name) -> tuple[Claim, ...]:
        """What the object claims in vain."""
        record = self.records.get(name)
        claimed = () if record is None else self._claims(record)[2]
        owners = ((each, self.owners[each]) for each in claimed)
        return tuple(Claim(each, owner) for each, owner in owners if owner != name)

    def in_order(self) -> list[Record]:
        """The oldest first."""
        return sorted(self.records.values(), key=lambda record: self._claims(record)[:2])

    def _settle(self) -> None:
        owners: dict[str, Name] = {}
        for _, name, claimed in map(self._claims, self.in_order()):
            for each in claimed:
                owners.setdefault(each, name)
        if owners != self.owners:
            self.owners = owners

    @abstractmethod
    def _claims(self, record: Record) -> tuple[str, Name, Iterable[str]]:
        """When an object was created, as text, its name, and the names that it claims."""
