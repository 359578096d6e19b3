"""What sums say: means and percentiles of use, and a job's whole use. Pure; ratios are 0 to 1."""

from collections.abc import Mapping
from statistics import median
from types import MappingProxyType

from gpu_scheduler.api.gpuusage import SlowestRank
from gpu_scheduler.api.job_usage import MOST_ROLE_CHARS, MOST_ROLES, JobUsage, RoleUsage
from gpu_scheduler.usage.advice.oversized import p95_of
from gpu_scheduler.usage.answer import Totals, percentile_of


def mean(totals: Totals) -> float | None:
    """Share of the known time with a kernel; None: no time is known."""
    return totals.busy_seconds / totals.seconds if totals.seconds else None


def p50(totals: Totals) -> float | None:
    """Half of the time it was at most this."""
    return percentile_of(totals.buckets, 50)


def used_gpu_seconds(totals: Totals) -> int | None:
    """Of the GPU-seconds that were held; None: no time is known."""
    return round(totals.used_gpu_seconds) if totals.seconds else None


def percent(ratio: float) -> int:
    """Whole percent, at most 100."""
    return round(100 * min(ratio, 1.0))


def role_usages(by_role: Mapping[str, Totals]) -> list[RoleUsage] | None:
    """Of each; None: there are none. Agents name them: what is no name of a role is left out."""
    named = [each for each in by_role.items() if len(each[0]) <= MOST_ROLE_CHARS]
    return [_role_usage(*each) for each in named[:MOST_ROLES]] or None


def _role_usage(name: str, totals: Totals) -> RoleUsage:
    known = mean(totals)
    return RoleUsage.model_validate(
        {
            "name": name,
            "gpu_seconds": round(totals.held_gpu_seconds),
            "used_gpu_seconds": used_gpu_seconds(totals),
            "mean_percent": None if known is None else percent(known),
            "peak_mib": totals.peak_mib if totals.containers else None,
        }
    )


def slowest_rank(by_pod: Mapping[str, Totals]) -> SlowestRank | None:
    """Of pods that wait for each other; None: the use of fewer than two is known."""
    means = {pod: known for pod, totals in by_pod.items() if (known := mean(totals)) is not None}
    if len(means) < 2:
        return None
    pod = min(means, key=lambda name: (means[name], name))
    return SlowestRank(
        pod=pod,
        mean_percent=percent(means[pod]),
        median_percent=percent(median(means.values())),
        ranks=len(means),
    )


def job_usage(
    totals: Totals, cap_mib: int, by_role: Mapping[str, Totals] = MappingProxyType({})
) -> JobUsage | None:
    """For a job's status.

    Args:
        totals: of all its shares.
        cap_mib: the most that one of them might hold; 0: not known.
        by_role: totals of each role, where it has some.
    """
    if not totals.containers:
        return None
    known = {"mean_percent": mean(totals), "p50_percent": p50(totals)}
    known["p95_percent"] = p95_of(totals.buckets)
    figures: dict[str, object] = {
        name: percent(each) for name, each in known.items() if each is not None
    }
    if totals.seconds:
        figures |= {
            "used_gpu_seconds": used_gpu_seconds(totals),
            "idle_gpu_seconds": round(totals.unused_gpu_seconds),
            "seconds_by_tenth": list(totals.buckets),
        }
    return JobUsage.model_validate(
        {
            **figures,
            "gpu_seconds": round(totals.held_gpu_seconds),
            "peak_mib": totals.peak_mib,
            "cap_mib": cap_mib or None,
            "roles": role_usages(by_role),
        }
    )
