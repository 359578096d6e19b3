"""Which namespaces the reader of a page may see."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Visible:
    """``namespaces`` None: all. Two readers with equal ones are shown the same."""

    namespaces: frozenset[str] | None = None

    def sees(self, namespace: str) -> bool:
        """Whether what is in it may be named to the reader."""
        return self.namespaces is None or namespace in self.namespaces


ALL = Visible()
