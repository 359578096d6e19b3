"""All rules in order of precedence, and what they say of a piece of work."""

from collections.abc import Callable
from dataclasses import dataclass

from gpu_scheduler.usage.advice.device import contended, throttled
from gpu_scheduler.usage.advice.finding import Finding, RuleName
from gpu_scheduler.usage.advice.kernels import no_tensor_cores, small_batch
from gpu_scheduler.usage.advice.memory import memory_tight
from gpu_scheduler.usage.advice.oversized import oversized
from gpu_scheduler.usage.advice.scaling import scaling_inefficient
from gpu_scheduler.usage.advice.thresholds import Thresholds
from gpu_scheduler.usage.advice.unused import idle, never_used
from gpu_scheduler.usage.advice.waiting import add_workers, code_bound, data_bound, stop_and_go
from gpu_scheduler.usage.advice.work import Work, WorkType

DEFAULTS = Thresholds()


@dataclass(frozen=True, slots=True)
class AdviceRule:
    """A rule and when it is asked.

    Attributes:
        name: of what it says.
        judge: what it says of a piece of work.
        for_all: of interactive work and services too, not of training alone.
        unless: it is not asked where one of these holds, which would be denied by it.
    """

    name: RuleName
    judge: Callable[[Work, Thresholds], Finding | None]
    for_all: bool = False
    unless: frozenset[RuleName] = frozenset()


_TOO_LITTLE = frozenset({RuleName.MEMORY_TIGHT, RuleName.CONTENDED})
_BEFORE_CODE_BOUND = frozenset(list(RuleName)[: list(RuleName).index(RuleName.CODE_BOUND)])

RULES = (
    AdviceRule(RuleName.GPU_NEVER_USED, never_used, for_all=True),
    AdviceRule(RuleName.GPU_IDLE, idle, for_all=True),
    AdviceRule(RuleName.THROTTLED, throttled),
    AdviceRule(RuleName.MEMORY_TIGHT, memory_tight, for_all=True),
    AdviceRule(RuleName.CONTENDED, contended, for_all=True),
    AdviceRule(RuleName.DATA_BOUND, data_bound),
    AdviceRule(RuleName.ADD_WORKERS, add_workers),
    AdviceRule(RuleName.CODE_BOUND, code_bound, unless=_BEFORE_CODE_BOUND),
    AdviceRule(RuleName.STOP_AND_GO, stop_and_go),
    AdviceRule(RuleName.SCALING_INEFFICIENT, scaling_inefficient),
    AdviceRule(RuleName.NO_TENSOR_CORES, no_tensor_cores),
    AdviceRule(RuleName.OVERSIZED, oversized, for_all=True, unless=_TOO_LITTLE),
    AdviceRule(RuleName.SMALL_BATCH, small_batch, unless=_TOO_LITTLE),
)


def advise(work: Work, thresholds: Thresholds = DEFAULTS) -> list[Finding]:
    """What to change about it: the first matters most; nothing where nothing is known."""
    found: list[Finding] = []
    for rule in RULES:
        applies = rule.for_all or work.type == WorkType.TRAINING
        if not applies or any(each.rule in rule.unless for each in found):
            continue
        said = rule.judge(work, thresholds)
        if said is not None:
            found.append(said)
    return found
