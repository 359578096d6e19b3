"""What is promised to whom, and so when somebody may be evicted.

``STRICT`` owes everything at once, as all plans did before there were promises; ``FAIR`` is what
the operator promises by default (ADR 0046). Read by ``deadlines`` and ``victims``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp, inf, log

from gpu_scheduler.core.model.request import PodUID, ProjectName


@dataclass(frozen=True, slots=True)
class PreemptionPolicy:
    """The promises of a cluster.

    Attributes:
        guarantee_seconds: who is inside its project's quota waits no longer for its GPUs.
        patience_seconds: who has a higher priority waits so long before others are evicted that
            lose little; ten times as long, before they are whatever they lose (see ``deadlines``).
        min_runtime_seconds: what ran for less is not evicted for another's fair share, unless its
            project says otherwise.
        window_seconds: fair shares are averages over so long.
        strict: everything is owed at once, and those go that deserve it least; else those go that
            lose least.
    """

    guarantee_seconds: float = 60.0
    patience_seconds: float = 60.0
    min_runtime_seconds: float = 300.0
    window_seconds: float = 900.0
    strict: bool = False


_A_MOMENT = 0.001  # seconds, so that it is over when it is looked at
FAIR = PreemptionPolicy()
STRICT = PreemptionPolicy(0.0, 0.0, 0.0, 0.0, strict=True)


@dataclass(frozen=True, slots=True)
class PlannerMemory:
    """What one plan hands to the next one, so that promises have a beginning.

    Attributes:
        at: when it was made, epoch seconds.
        nominal_since: pods that would be inside their project's quota, and since when.
        gap_milli: fair share less what is held, by project, from then on.
        behind_milli: the average of that until then.
    """

    at: float = 0.0
    nominal_since: Mapping[PodUID, float] = field(default_factory=dict)
    gap_milli: Mapping[ProjectName, int] = field(default_factory=dict)
    behind_milli: Mapping[ProjectName, float] = field(default_factory=dict)

    def behind(self, now: float, window_seconds: float) -> dict[ProjectName, float]:
        """How far projects are below their fair shares on average, in milli-GPU; above: negative.

        An exponential average: what is a window ago counts 0.37 times as much.
        """
        if window_seconds == inf:
            return dict.fromkeys(self.gap_milli, 0.0)
        kept = exp(-max(0.0, now - self.at) / window_seconds) if window_seconds else 0.0
        return {
            name: gap + kept * (self.behind_milli.get(name, 0.0) - gap)
            for name, gap in self.gap_milli.items()
        }

    def behind_at(self, name: ProjectName, milli: float, window_seconds: float) -> float:
        """When a project will be so far behind if nothing changes, epoch seconds; inf = never."""
        gap, behind = self.gap_milli.get(name, 0), self.behind_milli.get(name, 0.0)
        if gap <= milli or window_seconds == inf:
            return inf
        return self.at + window_seconds * log((gap - behind) / (gap - milli)) + _A_MOMENT


NOTHING = PlannerMemory()
