"""The one reader of GPUUsage: cluster-wide where that is allowed, else of one namespace.

What cannot be read is said in one sentence, and is no error: what is known from pods and GPUNodes
is shown without it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.api.unstructured import Body, part
from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.cli.use.workload import UsedWorkload, whole, workloads
from gpu_scheduler.kube import errors, paths

_TURN_ON = "the chart value agent.history.enabled turns it on"
NOT_RECORDED = f"What work does with its GPUs is not recorded in this cluster: {_TURN_ON}."


@dataclass(frozen=True, slots=True)
class UseView:
    """What is recorded of the work that may be seen.

    Attributes:
        by_name: those that run and those that ended in the last seven days, by namespace and name.
        only: the namespace whose GPUUsage alone may be read; empty: all.
        missing: why nothing is there, as a sentence; empty: something is.
        omitted: how many more there are that their objects had no room for.
    """

    by_name: Mapping[tuple[str, str], Sequence[UsedWorkload]] = field(default_factory=dict)
    only: str = ""
    missing: str = ""
    omitted: int = 0

    @classmethod
    def of(cls, found: Iterable[UsedWorkload], only: str = "", omitted: int = 0) -> "UseView":
        """A view of these workloads."""
        by_name = dict[tuple[str, str], list[UsedWorkload]]()
        for each in found:
            by_name.setdefault((each.namespace, each.name), []).append(each)
        return cls(by_name, only, omitted=omitted)

    def workloads(self) -> Iterator[UsedWorkload]:
        """All of them."""
        for each in self.by_name.values():
            yield from each

    def find(self, namespace: str, name: str, kind: str = "") -> UsedWorkload | None:
        """The workload of this name; of several one that runs, or else that ended last.

        Args:
            namespace: where it is.
            name: what it is called.
            kind: of any case; empty: whichever, a GPUJob first.
        """
        found = [
            each
            for each in self.by_name.get((namespace, name), ())
            if kind.lower() in ("", each.kind.lower())
        ]
        return max(found, key=_precedence, default=None)

    def notes(self, *, scope_is_said: bool = False) -> Iterator[str]:
        """What who reads it should know that it does not show.

        ``scope_is_said``: that only one namespace is shown was told already.
        """
        if self.missing:
            yield self.missing
        elif self.only and not scope_is_said:
            yield (
                f"Use of other namespaces than {self.only} is not shown: you may not list their "
                "gpuusages.gpu-scheduler.io."
            )
        if self.omitted:
            yield f"{self.omitted} workloads are left out of GPUUsage for its size."


def read(cluster: ClusterAccess, namespace: str = "") -> UseView:
    """Read it once.

    Args:
        cluster: that is asked.
        namespace: of which alone it is wanted; empty: all, or that of the context where all may
            not be read.

    Raises:
        errors.ApiError: the cluster does not answer.
    """
    try:
        if namespace:
            return _view(_bodies(cluster, namespace), namespace)
        try:
            return _view(_bodies(cluster, ""), "")
        except errors.Forbidden:
            own = cluster.namespace
            return _view(_bodies(cluster, own), own, only=own)
    except errors.Forbidden:
        where = namespace or cluster.namespace
        said = f"You may not read gpuusages.gpu-scheduler.io in namespace {where}: who may view it "
        return UseView(only=where, missing=said + "may, where the chart has rbac.aggregate.")
    except errors.NotFound as error:
        if error.details.name:
            raise
        return UseView(missing=NOT_RECORDED)


def _bodies(cluster: ClusterAccess, namespace: str) -> list[Body]:
    path = paths.of_group(GROUP, VERSION, "gpuusages", namespace)
    return list(cluster.client.items(path))


def _view(bodies: Sequence[Body], namespace: str, only: str = "") -> UseView:
    if not bodies:
        where = f"of namespace {namespace}" if namespace else "of any namespace"
        said = f"Nothing is recorded {where}: no work has held a GPU there in the last seven days, "
        return UseView(only=only, missing=f"{said}or it is turned off; {_TURN_ON}.")
    found = [each for body in bodies for each in workloads(body)]
    omitted = sum(whole(part(body, "status").get("omitted")) or 0 for body in bodies)
    return UseView.of(found, only, omitted)


def _precedence(each: UsedWorkload) -> tuple[bool, bool, str]:
    ended = each.ended_at.isoformat() if each.ended_at else ""
    return each.runs, each.kind == "GPUJob", ended
