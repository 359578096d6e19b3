"""What pods take of a node beside GPUs, and what of it there is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeResources:
    """What a node has beside GPUs."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    ephemeral_bytes: int = 0

    def __add__(self, other: "NodeResources") -> "NodeResources":
        """Both."""
        return NodeResources(
            self.cpu_milli + other.cpu_milli,
            self.memory_bytes + other.memory_bytes,
            self.ephemeral_bytes + other.ephemeral_bytes,
        )

    def __sub__(self, other: "NodeResources") -> "NodeResources":
        """The rest."""
        return NodeResources(
            self.cpu_milli - other.cpu_milli,
            self.memory_bytes - other.memory_bytes,
            self.ephemeral_bytes - other.ephemeral_bytes,
        )

    def at_most(self, other: "NodeResources") -> "NodeResources":
        """The smaller of each."""
        return NodeResources(
            min(self.cpu_milli, other.cpu_milli),
            min(self.memory_bytes, other.memory_bytes),
            min(self.ephemeral_bytes, other.ephemeral_bytes),
        )
