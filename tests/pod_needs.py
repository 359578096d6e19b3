"""What a pod needs of its node, counted by the kubelet's rules and by none of the operator's code.

Containers and sidecars together, or the largest init container at its turn with the sidecars before
it; the pod's own request in place of that sum; then overhead.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

Amounts = Mapping[str, int]


def need_of(
    kinds: Iterable[str],
    inits: Sequence[tuple[Amounts, bool]],
    mains: Sequence[Amounts],
    *,
    overhead: Amounts,
    level: Amounts,
) -> Counter[str]:
    """By kind of resource.

    Args:
        kinds: those that are counted.
        inits: what each init container asks for, in order, and whether it is a sidecar.
        mains: what each container asks for.
        overhead: of its RuntimeClass.
        level: what the pod asks for as a whole.
    """
    need = Counter[str]()
    for kind in kinds:
        sidecars, starting = 0, 0
        for asked, sidecar in inits:
            starting = max(starting, sidecars + asked.get(kind, 0))
            if sidecar:
                sidecars += asked.get(kind, 0)
        running = sidecars + sum(asked.get(kind, 0) for asked in mains)
        total = level[kind] if kind in level else max(running, starting)
        need[kind] = total + overhead.get(kind, 0)
    return need
