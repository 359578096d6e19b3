"""Which nodes a pod accepts, as flags over all of them; kept as long as the nodes stay.

Topology spread counts only such nodes.
"""

from collections.abc import Callable, Sequence

import numpy as np

from gpu_scheduler.core.model import fit
from gpu_scheduler.core.model.arrays import Flags
from gpu_scheduler.core.model.cluster import NodeInfo
from gpu_scheduler.core.model.request import NodeFilter, Toleration

_MOST_KNOWN = 1_000


class NodeMasks:
    """Flags of one list of nodes."""

    def __init__(self, nodes: Sequence[NodeInfo]) -> None:
        self._nodes = nodes
        self._known: dict[object, Flags] = {}

    def accepting(self, where: NodeFilter) -> Flags:
        """[nodes] Whether node selector and required node affinity accept them."""
        return self._of(
            (where.selector, where.terms),
            lambda node: fit.selector_holds(where, node) and fit.affinity_holds(where, node),
        )

    def tolerating(self, tolerations: tuple[Toleration, ...]) -> Flags:
        """[nodes] Whether they have no taint that keeps the pod away."""
        where = NodeFilter(tolerations=tolerations)
        return self._of(
            tolerations, lambda node: not node.tainted and fit.untolerated(where, node) is None
        )

    def _of(self, key: object, holds: Callable[[NodeInfo], bool]) -> Flags:
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found = self._known[key] = np.fromiter(
                map(holds, self._nodes), dtype=np.bool_, count=len(self._nodes)
            )
        return found
