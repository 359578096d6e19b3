"""Which policy holds for containers above their cap: that of the project that owns the namespace.

The pod's label is not asked: whoever may edit pods can change it, while a namespace belongs to the
project that lists it. Fed by a reflector of GPUProjects. Read by the agent.
"""

import msgspec

from gpu_scheduler.kube.objects import Meta


class _Spec(msgspec.Struct, rename="camel", gc=False, frozen=True):
    namespaces: tuple[str, ...] = ()
    over_cap_policy: str = ""


class AgentProject(msgspec.Struct, rename="camel", gc=False, frozen=True):
    """A GPUProject on the wire."""

    metadata: Meta = Meta()
    spec: _Spec = _Spec()


class Projects:
    """The sink of the reflector."""

    def __init__(self) -> None:
        self._projects: dict[str, AgentProject] = {}
        self._by_namespace: dict[str, AgentProject] = {}

    @property
    def namespaces(self) -> frozenset[str]:
        """Namespaces that belong to a project."""
        return frozenset(self._by_namespace)

    def policy(self, namespace: str) -> str:
        """``warn``, ``kill``, ``evict``, or empty for the default."""
        found = self._by_namespace.get(namespace)
        return found.spec.over_cap_policy if found is not None else ""

    def project(self, namespace: str) -> str:
        """Name of the namespace's project, empty when it has none."""
        found = self._by_namespace.get(namespace)
        return found.metadata.name if found is not None else ""

    def changed(self, obj: AgentProject) -> None:
        """See ``Sink``."""
        self._projects[obj.metadata.uid] = obj
        self._index()

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """See ``Sink``."""
        self._projects.pop(uid, None)
        self._index()

    def replaced(self) -> None:
        """See ``Sink``."""

    def _index(self) -> None:
        # Of two projects that claim a namespace the older one has it, as in the operator.
        newest_first = sorted(
            self._projects.values(),
            key=lambda p: (p.metadata.creation_timestamp, p.metadata.name),
            reverse=True,
        )
        self._by_namespace = {ns: p for p in newest_first for ns in p.spec.namespaces}
