"""What a pod says about other pods, and who it is to them: affinity, anti-affinity, spread.

The rules are Kubernetes' own, the required ones only. Pods alike to all such rules are one
``AffinityInfo``, whatever their number: labels that differ from pod to pod of the same owner are
left out, and no rule here may name them. Made by ``state.affinity.pod_affinity``; judged by
``affinity.masks``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpu_scheduler.core.model.requirement import Requirement, requirement_holds
from gpu_scheduler.core.vocabulary import Word

# Labels whose values are a pod's own; everything else the pods of one owner have in common.
PER_POD_LABELS = frozenset(
    {
        "batch.kubernetes.io/job-completion-index",
        "apps.kubernetes.io/pod-index",
        "statefulset.kubernetes.io/pod-name",
    }
)
NAMESPACE_NAME = "kubernetes.io/metadata.name"  # every namespace has its name as this label
MOST_RULES = 16  # of a pod and of one sort, that are known


@dataclass(frozen=True, slots=True)
class PodSelector:
    """Some pods, by namespace and labels.

    ``namespaces``: None = all. ``labels``: all hold; None = no pod at all, as of a null
    labelSelector.
    """

    namespaces: tuple[str, ...] | None
    labels: tuple[Requirement, ...] | None

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether it selects a pod with these labels."""
        if self.labels is None:
            return False
        if self.namespaces is not None and namespace not in self.namespaces:
            return False
        return all(requirement_holds(each, labels) for each in self.labels)


Selectors = tuple[PodSelector, ...]  # pods that all of them select


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """Near such pods, or far from them: in a domain of nodes with the same value of a label.

    ``owner_namespace``: namespace of the pod whose term it is. ``field``: where it stands, for
    messages; it does not tell two terms apart.
    """

    key: Word
    pods: PodSelector
    owner_namespace: str = ""
    field: Word = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """At most ``max_skew`` more of the pods in a domain than in the one with the fewest.

    ``min_domains``: with fewer domains than that the fewest counts as 0. ``by_affinity`` and
    ``by_taints``: leave out nodes that the pod's node affinity or its tolerations do not accept.
    """

    max_skew: int
    key: Word
    pods: PodSelector
    min_domains: int = 1
    by_affinity: bool = True
    by_taints: bool = False
    field: Word = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class AffinityRules:
    """What a pod asks of where others are; all of it holds.

    ``others_judge``: anti-affinity that keeps others away, and that somebody else judges for the
    pod itself.
    """

    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    others_judge: tuple[AffinityTerm, ...] = ()

    @property
    def anti_affinity_terms(self) -> tuple[AffinityTerm, ...]:
        """The terms that keep others away from the pod, once it is on a node."""
        return self.anti_affinity + self.others_judge


@dataclass(frozen=True, slots=True, weakref_slot=True)
class AffinityInfo:
    """Who a pod is to others' rules, and its own; None = it has none."""

    namespace: str
    labels: tuple[tuple[Word, str], ...] = ()  # sorted by key
    rules: AffinityRules | None = None

    def is_one_of(self, selectors: Iterable[PodSelector]) -> bool:
        """Whether all of these select it."""
        labels = dict(self.labels)
        return all(each.matches(self.namespace, labels) for each in selectors)
