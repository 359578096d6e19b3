"""What prospective pods ask for, once for each template that jobs share: it goes with the last."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from gpu_scheduler.core.model.request import JobKey, PodShape
from gpu_scheduler.kube.objects import PodSpec


@dataclass(slots=True)
class _SharedShape:
    spec: PodSpec  # holding it keeps its id its own
    asked: Hashable
    shape: PodShape
    users: set[JobKey] = field(default_factory=set)


class TemplateShapes:
    """By the id of a template's spec."""

    def __init__(self) -> None:
        """None is known."""
        self._known: dict[int, _SharedShape] = {}
        self._of: dict[JobKey, set[int]] = {}

    def of(
        self, key: JobKey, spec: PodSpec, asked: Hashable, make: Callable[[], PodShape]
    ) -> PodShape:
        """The shape of a job's pods of a template; ``asked``: what else it depends on."""
        known = self._known.get(id(spec))
        if known is None or known.asked != asked:
            users = known.users if known is not None else set()
            known = self._known[id(spec)] = _SharedShape(spec, asked, make(), users)
        known.users.add(key)
        self._of.setdefault(key, set()).add(id(spec))
        return known.shape

    def forget(self, key: JobKey) -> None:
        """Templates of a job may be others: those that no other job has are let go."""
        for each in self._of.pop(key, ()):
            users = self._known[each].users
            users.discard(key)
            if not users:
                del self._known[each]
