"""The sentence of the first page; how it begins stands below ``kubectl gpu top`` too."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpu_scheduler.dashboard.content.words import (
    Sentence,
    amount,
    begin,
    count,
    gpus,
    is_are,
    listed,
    many,
    sentence,
)
from gpu_scheduler.dashboard.rows import IdleRow, Lead, ReasonRow
from gpu_scheduler.usage.figures import HELD, GpuState


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadInputs:
    """What it is made of.

    Attributes:
        parts: where the GPUs are that the reader sees.
        nodes: how many.
        followed: whether agents are asked what GPUs do.
        silent_agents: that did not answer.
        idle: who holds and does not use.
        reasons: why some wait.
        waiting: how many do.
        projects: of these.
        works: how many workloads there are.
        own: the reader sees nothing but the own work, so that there is no whole to speak of.
    """

    parts: Mapping[GpuState, float]
    nodes: int
    followed: bool
    silent_agents: int
    idle: tuple[IdleRow, ...]
    reasons: tuple[ReasonRow, ...]
    waiting: int
    projects: tuple[str, ...]
    works: int
    own: bool


def lead(known: LeadInputs) -> Lead:
    """What is going on; and who waits."""
    return Lead(first=_first(known), then=_then(known))


def allocated(parts: Mapping[GpuState, float], *, followed: bool) -> Sentence:
    """What is held of all GPUs, and is busy.

    Args:
        parts: where they are.
        followed: whether agents are asked what GPUs do.
    """
    whole, held = sum(parts.values()), sum(parts.get(state, 0.0) for state in HELD)
    if not held:
        return sentence("None of ", (gpus(whole), "/gpus"), " is allocated.")
    start = sentence((f"{amount(held)} of {gpus(whole)}", "/gpus"), f" {is_are(held)} allocated")
    return (*start, *_used(parts, held, followed), *sentence("."))


def _first(known: LeadInputs) -> Sentence:
    parts, held = known.parts, sum(known.parts[state] for state in HELD)
    if not known.own:
        if not known.nodes:
            return sentence("No node of this cluster has GPUs that can be seen.")
        return (*allocated(parts, followed=known.followed), *_idle(known))
    if not held:
        return sentence("Your work holds no GPU.")
    start = sentence(("Your work holds " + gpus(held), "/gpus"))
    return (*start, *_used(parts, held, known.followed), *sentence("."), *_idle(known))


def _used(parts: Mapping[GpuState, float], held: float, followed: bool) -> Sentence:
    busy, unknown = parts.get(GpuState.BUSY, 0.0), parts.get(GpuState.UNKNOWN, 0.0)
    if not followed:
        return sentence("; nobody asks the nodes what they do with them")
    if unknown >= held:
        return sentence("; what they do is not known")
    if amount(busy) == "0":
        said = sentence(", ", ("none", "/gpus?colour=use"), " is busy")
    else:
        said = sentence(", ", (amount(busy), "/gpus?colour=use"), f" {is_are(busy)} busy")
    rest = f"; of {amount(unknown)} nobody knows" if amount(unknown) != "0" else ""
    return (*said, *sentence(rest))


def _idle(known: LeadInputs) -> Sentence:
    idle = known.parts[GpuState.IDLE]
    if amount(idle) == "0" or not known.idle:
        return ()
    kinds = {row.type for row in known.idle}
    noun = {"interactive": "notebook", "service": "service"}.get(
        next(iter(kinds)) if len(kinds) == 1 else "", "workload"
    )
    return sentence(
        " ", (amount(idle), "/jobs?idle=1"), f" {is_are(idle)} held idle by ",
        many(len(known.idle), noun), ".",
    )  # fmt: skip


def _then(known: LeadInputs) -> Sentence:
    silent = (
        f" {begin(many(known.silent_agents, 'agent'))} "
        f"{'does' if known.silent_agents == 1 else 'do'} not answer."
        if known.silent_agents and not known.own
        else ""
    )
    if not known.waiting:
        nothing = "There is no work yet." if not known.works else "Nothing waits."
        return sentence(nothing, silent)
    of = f" of {listed(known.projects)}" if 0 < len(known.projects) <= 3 else ""
    jobs = sentence((begin(many(known.waiting, "job")) + of, "/queue"))
    verb = " waits" if known.waiting == 1 else " wait"
    most = known.reasons[0]
    if len(known.reasons) == 1:
        why = sentence(": ", _reason(most), ".")
    else:
        says = "says" if most.jobs == 1 else "say"
        why = sentence(f"; {count(most.jobs)} of them {says} ", _reason(most), ".")
    return (*jobs, *sentence(verb), *why, *sentence(silent))


def _reason(row: ReasonRow) -> tuple[str, str]:
    return row.reason, f"/queue?reason={row.reason}"
