"""What the reader of a page may see."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Visible:
    """Two readers with equal ones are shown the same.

    Attributes:
        namespaces: whose work may be named; None: that of all.
        inventory: whether nodes and projects may be seen, by the right to list GPUNodes and
            GPUProjects: then with sums of work that may not be named.
    """

    namespaces: frozenset[str] | None = None
    inventory: bool = True

    @property
    def all(self) -> bool:
        """Whether nothing is hidden."""
        return self.namespaces is None

    def sees(self, namespace: str) -> bool:
        """Whether what is in it may be named to the reader."""
        return self.namespaces is None or namespace in self.namespaces


ALL = Visible()
