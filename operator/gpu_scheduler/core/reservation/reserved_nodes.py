"""The nodes that those who borrow leave alone, because pods inside their quota wait for them.

Made between the two rounds of a cycle; read by the second, and by ``preemption``.
"""

import numpy as np

from gpu_scheduler.core.model.arrays import Flags


class ReservedNodes:
    """Claimed nodes of one cycle."""

    def __init__(self, nodes: int) -> None:
        self._flags: Flags = np.zeros(nodes, dtype=np.bool_)
        self._any = False

    def add(self, nodes: Flags) -> None:
        """Keep borrowers away from these, too."""
        self._flags |= nodes
        self._any = self._any or bool(nodes.any())

    @property
    def barred(self) -> Flags | None:
        """[nodes] All of them, as of now; None = none."""
        return self._flags if self._any else None

    def __contains__(self, node: int) -> bool:
        """Whether a node is among them."""
        return bool(self._flags[node])
