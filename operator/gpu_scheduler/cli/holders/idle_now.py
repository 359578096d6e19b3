"""``idle`` where no use is recorded: what is at 0 % as the agents measure it. Printed."""

from gpu_scheduler.cli.ending import Failed
from gpu_scheduler.cli.holders.bars import print_text
from gpu_scheduler.cli.holders.held import gpus
from gpu_scheduler.cli.holders.holder import by_holder
from gpu_scheduler.cli.holders.notes import why_not_known
from gpu_scheduler.cli.holders.read import HoldersView
from gpu_scheduler.cli.printed_table import PrintedTable
from gpu_scheduler.cli.shown import print_table, print_value, say


def show(view: HoldersView, namespace: str, project: str | None, output: str) -> None:
    """Print it, of one namespace or project where one is said.

    Raises:
        Failed: it is not known of any that holds GPUs.
    """
    held = [
        each
        for each in by_holder(view.devices)
        if project in (None, each.project) and namespace in ("", each.namespace)
    ]
    known = [each for each in held if each.percent is not None]
    if held and not known:
        raise Failed(
            f"{view.use.missing} Nor is it known of this moment: {why_not_known(view)}. "
            "kubectl gpu top jobs shows who holds them."
        )
    found = [each for each in known if each.percent == 0]
    if output != "table":
        unknown = [each.key for each in held if each.percent is None]
        body = {"idleNow": [each.to_json() for each in found], "notKnown": unknown}
        return print_value({**body, "notShown": [view.use.missing]}, output)
    if found:
        table = PrintedTable(["NAME", "PROJECT", "GPU", "PODS", "NODE"])
        for each in found:
            cells = (each.project or "-", gpus(each.milli), str(len(each.pods)))
            table.rows.append([each.key, *cells, ", ".join(each.nodes)])
        print_table(table)
        say()
        print_text(
            f"{gpus(sum(each.milli for each in found))} GPUs are held and at 0 %; kubectl gpu "
            f"suspend -n {found[0].namespace} {found[0].name} gives those of a GPUJob back."
        )
    else:
        print_text(f"Nothing that holds a GPU is at 0 % ({len(known)} known).")
    if len(known) < len(held):
        print_text(f"Of {len(held) - len(known)} more it is not known.")
    if view.only:
        print_text(f"Namespace {view.only} alone: you may not list the pods of others.")
    return print_text(f"A mean of five minutes; since when is not known. {view.use.missing}")
