"""Which namespaces there are, as far as they have been told."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class NamespaceStore:
    """Names alone.

    Attributes:
        existing: that are there.
        terminating: of these: nothing can be made there.
    """

    existing: set[str] = field(default_factory=set)
    terminating: set[str] = field(default_factory=set)
