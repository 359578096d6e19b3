"""Which of many selectors select a pod, and which of many pods, without asking each of them.

Both are found by namespace and a label; only selectors that name no label by its value, or very
many, are compared with all. Used by ``counts`` and ``state.affinity.placed_pods``.
"""

from collections.abc import Iterator
from itertools import product
from typing import Generic, TypeVar

from gpu_scheduler.core.model.affinity import AffinityInfo, Selectors

T = TypeVar("T")
_Handle = tuple[str | None, str, str]  # namespace (None = any), label, value
_MOST_HANDLES = 64  # of one selector
_ANY_LABEL = ""


class SelectorIndex(Generic[T]):
    """Things by the selectors that choose their pods."""

    def __init__(self) -> None:
        """Start empty."""
        self._found: dict[_Handle, dict[Selectors, T]] = {}

    def add(self, selectors: Selectors, thing: T) -> None:
        """One thing for each conjunction of selectors."""
        for handle in _handles(selectors):
            self._found.setdefault(handle, {})[selectors] = thing

    def discard(self, selectors: Selectors) -> None:
        """Forget what was added."""
        for handle in _handles(selectors):
            there = self._found.get(handle)
            if there is not None:
                there.pop(selectors, None)
                if not there:
                    del self._found[handle]

    def matching(self, pod: AffinityInfo) -> Iterator[T]:
        """The things whose selectors all select the pod."""
        if not self._found:
            return
        for handle in _handles_of(pod):
            there = self._found.get(handle)
            if there is not None:
                for selectors, thing in there.items():
                    if pod.is_one_of(selectors):
                        yield thing


class PodIndex:
    """Sorts of pods by what selectors ask for."""

    def __init__(self) -> None:
        """Start empty."""
        self._found: dict[_Handle, dict[AffinityInfo, None]] = {}

    def add(self, pods: AffinityInfo) -> None:
        """One more signature."""
        for handle in _handles_of(pods):
            self._found.setdefault(handle, {})[pods] = None

    def matching(self, selectors: Selectors) -> Iterator[AffinityInfo]:
        """The signatures that all of these select."""
        for handle in _handles(selectors):
            for pods in self._found.get(handle, ()):
                if pods.is_one_of(selectors):
                    yield pods


def _handles_of(pod: AffinityInfo) -> Iterator[_Handle]:
    """Under what selectors stand that may select it; it looks everywhere just once."""
    for namespace in (pod.namespace, None):
        for key, value in pod.labels:
            yield namespace, key, value
        yield namespace, _ANY_LABEL, ""


def _handles(selectors: Selectors) -> list[_Handle]:
    """Under what a pod that they select is sure to look, just once."""
    if not selectors or any(each.labels is None for each in selectors):
        return []
    first = selectors[0]
    namespaces = first.namespaces if first.namespaces is not None else (None,)
    for requirement in first.labels or ():
        if requirement.operator == "In":
            several = len(set(namespaces)) * len(set(requirement.values))
            if several <= _MOST_HANDLES:
                pairs = product(dict.fromkeys(namespaces), dict.fromkeys(requirement.values))
                return [(namespace, requirement.key, value) for namespace, value in pairs]
    if len(namespaces) <= _MOST_HANDLES:
        return [(namespace, _ANY_LABEL, "") for namespace in dict.fromkeys(namespaces)]
    return [(None, _ANY_LABEL, "")]
