"""What the checks are told: objects of the cluster, and what could not be read. No I/O here."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from gpu_scheduler.api.names import RUNTIME_CLASS
from gpu_scheduler.api.unstructured import Body, labels_of, listed, part

Read = Sequence[Body] | None
"""Objects of one kind; None: they may not be read."""

PART_OF = "app.kubernetes.io/part-of"
INSTANCE_LABEL = "app.kubernetes.io/instance"
VERSION_LABEL = "app.kubernetes.io/version"
PRESENT = "nvidia.com/gpu.present"
COUNT = "nvidia.com/gpu.count"


class CheckState(StrEnum):
    """How a check ended."""

    OK = "OK"
    MISSING = "MISSING"
    WARN = "WARN"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Check:
    """What came of one check.

    Attributes:
        state: how it ended.
        name: of what was looked at.
        what: is so.
        mend: the command that mends it; empty: there is nothing to mend, or no one command does.
    """

    state: CheckState
    name: str
    what: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class CheckInputs:
    """What was read.

    Attributes:
        namespace: where the operator is looked for.
        version: of this program.
        now: the time at which it was read.
        kinds: plural names that the server has under our group and version; None: none at all.
        admission: kinds that it has under admissionregistration.k8s.io/v1.
    """

    namespace: str = "gpu-scheduler"
    version: str = ""
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    kinds: frozenset[str] | None = None
    admission: frozenset[str] = frozenset()
    crds: Read = None
    deployments: Read = None
    daemonsets: Read = None
    leases: Read = None
    nodes: Read = None
    gpunodes: Read = None
    projects: Read = None
    namespaces: Read = None
    runtime_classes: Read = None
    validating: Read = None
    validating_bindings: Read = None
    mutating: Read = None
    mutating_bindings: Read = None
    quotas: Read = None
    pods: Read = None

    @property
    def operator(self) -> Body | None:
        """The operator's Deployment."""
        return next(iter(self.deployments or ()), None)

    @property
    def agent(self) -> Body | None:
        """The agent's DaemonSet."""
        return next(iter(self.daemonsets or ()), None)

    @property
    def runtime_class(self) -> str:
        """Of the pods with a GPU; empty: they get none, or nobody says which."""
        if self.operator is None:
            return RUNTIME_CLASS
        env = {
            str(each.get("name")): str(each.get("value") or "")
            for container in listed(self.operator, "spec", "template", "spec", "containers")
            for each in container.get("env") or ()
        }
        return env.get("GPUSCHED_RUNTIME_CLASS", "")

    def namespace_of(self, body: Body) -> str:
        """Where the operator or the agent runs."""
        return str(part(body, "metadata").get("namespace") or self.namespace)

    def upgrade(self, values: str = "") -> str:
        """The command that brings the release to this program's chart, with values changed."""
        found = self.operator or self.agent or {}
        release = labels_of(found).get(INSTANCE_LABEL, "gpu-scheduler")
        more = f" --set {values}" if values else ""
        where = f"-n {self.namespace} --reset-then-reuse-values{more}"
        return f"helm upgrade {release} charts/gpu-scheduler {where}"


def number(value: object) -> int:
    """A count; 0 where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def some(names: Sequence[str], most: int = 4) -> str:
    """Names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def describe_pods(namespace: str, body: Body) -> str:
    """The command that shows the pods of a Deployment or a DaemonSet."""
    labels = part(body, "spec", "selector", "matchLabels")
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    return f"kubectl -n {namespace} describe pods -l {selector}"


def held_seconds(lease: Body) -> float:
    """For how long a Lease holds; with a little for clocks that differ."""
    return number(part(lease, "spec").get("leaseDurationSeconds")) + 5.0


def age_seconds(facts: CheckInputs, lease: Body) -> float | None:
    """Since when a Lease was not renewed; None: never."""
    text = part(lease, "spec").get("renewTime")
    try:
        renewed = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
        return max(0.0, (facts.now - renewed).total_seconds())
    except (ValueError, TypeError):
        return None


def ok(name: str, what: str) -> Check:
    """It is as it should be."""
    return Check(CheckState.OK, name, what)


def missing(name: str, what: str, mend: str = "") -> Check:
    """Without it the scheduler does not work."""
    return Check(CheckState.MISSING, name, what, mend)


def warn(name: str, what: str, mend: str = "") -> Check:
    """It works, and is perhaps not what is wanted."""
    return Check(CheckState.WARN, name, what, mend)


def unknown(name: str, what: str, mend: str = "") -> Check:
    """Whoever asks may not read it."""
    return Check(CheckState.UNKNOWN, name, what, mend)


def unread(name: str, what: str, verbs: str) -> list[Check]:
    """What may not be read is not known."""
    return [unknown(name, f"you may not read {what}", f"kubectl auth can-i list {verbs} -A")]
