"""The sentence of a workload's page."""

from gpu_scheduler.dashboard.content.words import (
    Sentence,
    amount,
    begin,
    duration,
    gpus,
    listed,
    many,
    percent,
    sentence,
)
from gpu_scheduler.dashboard.picture import JobDetail
from gpu_scheduler.dashboard.rows import JobRow, Lead, Placed, QueueRow


def lead(row: JobRow, detail: JobDetail, queued: QueueRow | None, now: float) -> Lead:
    """What it does; and what it waited for, or what became of it."""
    name = row.ref.name
    if row.phase == "Running" and row.held:
        return Lead(first=_runs(row, detail, now), then=_waited(row, detail))
    if row.phase in ("Succeeded", "Failed"):
        ended = f" {duration(now - row.ended)} ago" if row.ended is not None else ""
        word = "succeeded" if row.phase == "Succeeded" else "failed"
        return Lead(first=sentence(f"{name} {word}{ended}."), then=_did(row, detail))
    if row.phase == "Suspended":
        return Lead(first=sentence(f"{name} is suspended."), then=sentence(row.message))
    since = queued.since if queued is not None else row.created
    what = f" for {gpus(row.asked)}" if row.asked else ""
    number = queued.position if queued is not None and row.project else 0
    place = f", as number {number:,} of {row.project}" if number else ""
    return Lead(
        first=sentence(f"{name} has waited {duration(now - since)}{what}{place}."),
        then=sentence(_ended(f"{row.reason}: {row.message}" if row.reason else row.message)),
    )


def _ended(text: str) -> str:
    """With a full stop: the planner's sentences have none."""
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."


def _runs(row: JobRow, detail: JobDetail, now: float) -> Sentence:
    began = [each.started for each in detail.placed if each.started is not None]
    for_so_long = f" for {duration(now - min(began))}" if began else ""
    where = _where(detail.placed, row)
    if row.busy is None:
        use = "; how busy is not known"
    elif row.idle_since is not None:
        use = f"; it has done nothing there for {duration(now - row.idle_since)}"
    else:
        use = f", and is {percent(row.busy)} busy"
    return sentence(f"{row.ref.name} runs on ", *where, f"{for_so_long}{use}.")


def _where(placed: tuple[Placed, ...], row: JobRow) -> tuple[str | tuple[str, str], ...]:
    nodes = list(dict.fromkeys(each.node for each in placed))
    if len(placed) == 1 and len(placed[0].devices) == 1:
        device, part = placed[0].devices[0], placed[0].gpus
        share = "" if amount(part) == "1" else f"{amount(part)} of "
        return (f"{share}GPU {device} of ", (nodes[0], f"/gpus?node={nodes[0]}"))
    if len(nodes) == 1:
        return (f"{gpus(row.held)} of ", (nodes[0], f"/gpus?node={nodes[0]}"))
    if not nodes:
        return (gpus(row.held),)
    return (f"{gpus(row.held)} of {listed(nodes)}",)


def _waited(row: JobRow, detail: JobDetail) -> Sentence:
    starts = [step.at for step in detail.steps if step.kind in ("placed", "runs")]
    if not starts or starts[0] - row.created < 60:
        return ()
    return sentence(f"It waited {duration(starts[0] - row.created)}.")


def _did(row: JobRow, detail: JobDetail) -> Sentence:
    if row.message:
        return sentence(row.message)
    used = detail.used
    if used is None:
        return sentence(f"{begin(many(row.succeeded, 'pod'))} succeeded.")
    mean = f", {percent(used.mean)} of the time busy" if used.mean is not None else ""
    return sentence(f"It held {amount(used.gpu_hours)} GPU-hours{mean}.")
