"""What to change about work that runs: from what its shares were seen doing to findings.

Of work with several shares the fullest one stands for all where memory is judged, and the busiest
where time is; whoever holds several devices in a pod is judged by its first one alone.
"""

from statistics import fmean

from gpu_scheduler.core.model.catalogue import Catalogue
from gpu_scheduler.runtime.usage.earlier_runs import workers_of
from gpu_scheduler.runtime.usage.kept_work import Advised
from gpu_scheduler.runtime.usage.works import LiveWork, gpus, in_step
from gpu_scheduler.usage.advice.finding import Finding, RuleName
from gpu_scheduler.usage.advice.headline import SILENCE, Headline, settle
from gpu_scheduler.usage.advice.memory import takes_all
from gpu_scheduler.usage.advice.oversized import p95_of
from gpu_scheduler.usage.advice.rules import advise
from gpu_scheduler.usage.advice.work import EarlierRun, Member, Work

_MICRO = 1_000_000


class Adviser:
    """Remembers for how long each headline stands."""

    def __init__(self, idle_seconds: float) -> None:
        """``idle_seconds``: without a kernel after which work is idle."""
        self._idle_seconds = idle_seconds
        self._headlines: dict[str, Headline] = {}
        self._first: dict[str, Finding] = {}  # as it was found last, while its headline stands

    def findings(
        self,
        work: LiveWork,
        model: str,
        price: float | None,
        now: float,
        earlier: EarlierRun | None = None,
    ) -> list[tuple[Finding, float]]:
        """What to change about it, the headline first, and since when it is said.

        Args:
            work: what runs.
            model: product name of its devices.
            price: of one of them for an hour; None: not known.
            now: epoch seconds.
            earlier: the same program with fewer workers.
        """
        if not work.shares:
            return []
        found = advise(judged(work, model, price, self._idle_seconds, earlier))
        headline = settle(self._headlines.get(work.name.key), found, now)
        if headline is None:
            return []
        key = work.name.key
        self._headlines[key] = headline
        rule, since = headline
        if not rule:
            return []
        first = next((each for each in found if each.rule == rule), None)
        if first is not None:
            self._first[key] = first
        others = [(each, now) for each in found if each.rule != rule]
        return [(self._first[key], since), *others] if key in self._first else others

    def take_over(self, key: str, advised: Advised) -> None:
        """Go on from what another leader said of a work."""
        if not advised.since:
            return
        if not advised.advice:
            self._headlines[key] = SILENCE, advised.since
            return
        first = advised.advice[0]
        if first.rule in RuleName.__members__:
            self._headlines[key] = first.rule, advised.since
            self._first[key] = Finding(RuleName(first.rule), first.message, first.command)

    def since(self, key: str) -> float:
        """When its headline, or silence after one, began, epoch seconds; 0: there never was one."""
        return self._headlines.get(key, (SILENCE, 0.0))[1]

    def keep(self, works: dict[str, LiveWork]) -> None:
        """Forget all others."""
        self._headlines = {key: each for key, each in self._headlines.items() if key in works}
        self._first = {key: each for key, each in self._first.items() if key in works}


def judged(
    work: LiveWork,
    model: str,
    price: float | None,
    idle_seconds: float,
    earlier: EarlierRun | None = None,
) -> Work:
    """What the rules are asked about; see ``Adviser.findings``."""
    shares = work.shares
    fullest = max(shares, key=lambda share: share.totals.peak_mib)
    busiest = max(shares, key=lambda share: p95_of(share.totals.buckets) or 0.0)
    idle = work.idle_seconds()
    return Work(
        namespace=work.namespace,
        name=work.shown,
        type=work.type,
        share=fullest.share,
        gpus=gpus(work.milli) / len(work.pods),
        pods=len(work.pods),
        cap_mib=fullest.cap_mib or None,
        device_mib=fullest.device_mib or None,
        capability=_capability(fullest.compute_capability),
        gpu_model=model,
        cpu_cores=_over(busiest.cpu_limit_milli, 1000.0),
        cpu_now=_over(busiest.cpu_milli, busiest.cpu_limit_milli),
        running_seconds=max(share.age_seconds for share in shares),
        idle_seconds=idle,
        ever_used=any(s.ever_busy for s in shares) if idle is not None else None,
        peak_mib=fullest.totals.peak_mib,
        busy_p95=p95_of(busiest.totals.buckets),
        refused=sum(share.totals.refused for share in shares),
        windows=busiest.windows or (),
        takes_all=takes_all(fullest.first_minute_mib, fullest.cap_mib, fullest.windows or ()),
        members=_members(work) if len(work.pods) > 1 and in_step(work) else (),
        workers=workers_of(work.job) if earlier is not None else 1,
        means=_means(work) if earlier is not None else (),
        earlier=earlier,
        idle_timeout=idle_seconds,
        price=price,
    )


def price_of(catalogue: Catalogue, model: str) -> float | None:
    """Of a product for an hour, as its GPUClass says; None: it says nothing."""
    gpu_type = catalogue.of(model)
    cost = None if gpu_type is None else gpu_type.cost_micro
    return None if cost is None else cost / _MICRO


def _members(work: LiveWork) -> list[Member]:
    return [
        Member(pod.name, tuple(each.busy_mean for each in shares[0].windows or ()))
        for pod, shares in work.pods
        if shares
    ]


def _means(work: LiveWork) -> list[float | None]:
    """Of all its shares, window by window from the last one back; None: not known of one."""
    shares = [share.windows or () for share in work.shares]
    found: list[float | None] = []
    for back in range(1, min(map(len, shares), default=0) + 1):
        means = [windows[-back].busy_mean for windows in shares]
        known = [each for each in means if each is not None]
        found.insert(0, fmean(known) if len(known) == len(means) else None)
    return found


def _capability(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _over(amount: float | None, of: float | None) -> float | None:
    return amount / of if amount is not None and of else None
