"""``idle`` where use is recorded: printed."""

from datetime import datetime

from gpu_scheduler.cli.holders.bars import print_text
from gpu_scheduler.cli.holders.held import gpus
from gpu_scheduler.cli.shown import print_table, print_value
from gpu_scheduler.cli.use.idling import idle_table, idle_work, unknown
from gpu_scheduler.cli.use.read import UseView


def show(use: UseView, project: str | None, now: datetime, output: str) -> None:
    """Print what is idle, of one project where one is said; ``now``: until when."""
    work = [each for each in use.workloads() if project in (None, each.project)]
    found, not_known = idle_work(work, now), unknown(work)
    if output != "table":
        body = {
            "idleNow": [each.to_json() for each in found],
            "notKnown": [each.key for each in not_known],
            "notShown": [*use.notes()],
        }
        return print_value(body, output)
    if found:
        print_table(idle_table(found))
        milli = sum(each.use.milli for each in found)
        wasted = sum(each.wasted_gpu_hours for each in found)
        print_text(f"{gpus(milli)} GPUs are held and idle, for {wasted:.2f} GPU-hours until now.")
    else:
        known = sum(each.runs for each in work) - len(not_known)
        print_text(f"Nothing that holds a GPU is idle ({known} known).")
    if not_known:
        print_text(f"Of {len(not_known)} more it is not known.")
    for text in use.notes():
        print_text(text)
    return None
