"""The lines of ``top``. Pure but for the printing in ``show``."""

from collections.abc import Iterable, Sequence

from gpu_scheduler.cli.holders.bars import Line, Piece, bar, colour, print_lines, print_text
from gpu_scheduler.cli.holders.held import (
    WHOLE_MILLI,
    HeldDevice,
    HeldFraction,
    gpus,
    one_namespace,
    short_model,
)
from gpu_scheduler.cli.holders.read import HoldersView
from gpu_scheduler.cli.holders.values import by_holder, by_node, mean_percent, milli_of, values
from gpu_scheduler.cli.shown import print_value

_HIDDEN = "(not yours)"


def show(what: str, view: HoldersView, output: str) -> None:
    """Print what is asked for: gpus, nodes, jobs or projects."""
    if output in ("json", "yaml"):
        print_value(values(what, view), output)
        return
    wide = output == "wide"
    lines: Iterable[Line]
    if what == "gpus":
        lines = of_gpus(view.devices, wide=wide, partial=bool(view.only))
    elif what == "nodes":
        lines = of_nodes(view.devices, wide=wide, partial=bool(view.only))
    elif what == "jobs":
        lines = of_jobs(view.devices, wide=wide)
    else:
        lines = of_projects(view)
    print_lines(lines)
    for text in footer(view, utilisation=what != "projects"):
        print_text(text)


def of_gpus(devices: Sequence[HeldDevice], *, wide: bool, partial: bool = False) -> list[Line]:
    """A line for each GPU; ``partial``: what others hold cannot be seen."""
    names = _padded(device.name for device in devices)
    models = _padded((device.model if wide else short_model(device.model)) for device in devices)
    bare = one_namespace(devices)
    lines: list[Line] = []
    for name, model, device in zip(names, models, devices, strict=True):
        together = _by_holder(device.shares)
        line: list[Sequence[Piece]] = [
            [Piece(f"{name} {model}")],
            [
                *bar([milli for _, milli, _ in together], WHOLE_MILLI, partial=partial),
                Piece(f" {gpus(device.milli)}"),
            ],
        ]
        for number, (share, milli, count) in enumerate(together):
            text = f"{share.name if bare else share.key} {gpus(milli)}"
            line.append([Piece(text + (f" in {count} pods" if count > 1 else ""), colour(number))])
        line.append([Piece(f"util {_percent(device.percent)}")] if device.shares else [])
        if wide:
            line.append([Piece(f"{device.id}, {device.usable_mib} MiB")])
        if device.trouble:
            line.append([Piece(device.trouble, "red")])
        lines.append([group for group in line if group])
    return lines


def of_nodes(devices: Sequence[HeldDevice], *, wide: bool, partial: bool = False) -> list[Line]:
    """A line for each node; ``partial``: what others hold cannot be seen."""
    nodes = by_node(devices)
    names = _padded(nodes)
    lines: list[Line] = []
    for name, there in zip(names, nodes.values(), strict=True):
        models = sorted({d.model if wide else short_model(d.model) for d in there})
        milli = [device.milli for device in there]
        whole = sum(not d.milli and not d.trouble for d in there)
        bad = sum(bool(d.trouble) for d in there)
        line = [
            [Piece(name)],
            [
                *bar(milli, WHOLE_MILLI * len(there), partial=partial),
                Piece(f" {gpus(sum(milli))} of {len(there)}"),
            ],
            [Piece(", ".join(models))],
        ]
        if not partial:
            line.append([Piece(f"{whole} entirely free")])
            line.append([Piece(f"util {_percent(mean_percent(there))}")])
        if bad:
            line.append([Piece(f"{bad} GPU{'s' * (bad > 1)} without new pods", "red")])
        lines.append(line)
    return lines


def of_jobs(devices: Sequence[HeldDevice], *, wide: bool) -> list[Line]:
    """A line for each holder, those that hold most first."""
    found = by_holder(devices)
    names = _padded(holder.key for holder in found)
    most = max((holder.milli for holder in found), default=0)
    lines: list[Line] = []
    for name, holder in zip(names, found, strict=True):
        count = len(holder.pods)
        line = [
            [Piece(name)],
            [*bar([holder.milli], most), Piece(f" {gpus(holder.milli)}")],
            [Piece(f"{count} pod{'s' * (count != 1)}")],
            [Piece(f"util {_percent(holder.percent)}")],
            [Piece(f"project {holder.project}")] if holder.project else [],
            [Piece(", ".join(holder.nodes) if wide else _some(holder.nodes))],
        ]
        lines.append([group for group in line if group])
    return lines


def of_projects(view: HoldersView) -> list[Line]:
    """A line for each project."""
    names = _padded(str(body["metadata"]["name"]) for body in view.projects)
    lines: list[Line] = []
    for name, body in zip(names, view.projects, strict=True):
        spec, status = body.get("spec") or {}, body.get("status") or {}
        quota, has = milli_of(spec.get("quota")), milli_of(status.get("allocatedGPU"))
        inside, above = min(quota, has), max(0, has - quota)
        line = [
            [Piece(name)],
            [*bar([inside, above], max(quota, has)), Piece(f" {gpus(has)} of {gpus(quota)}")],
        ]
        if above:
            line.append([Piece(f"{gpus(above)} borrowed", "yellow")])
        if pending := milli_of(status.get("pendingGPU")):
            line.append([Piece(f"{gpus(pending)} pending", "yellow")])
        lines.append(line)
    return lines


def footer(view: HoldersView, *, utilisation: bool = True) -> list[str]:
    """What all of it comes to, and what could not be seen."""
    devices = view.devices
    if not devices:
        return ["no node has a GPU that the scheduler knows: kubectl gpu check"]
    total, has = len(devices), sum(device.milli for device in devices)
    free = sum(not d.milli and not d.trouble for d in devices)
    said = []
    if not view.only:
        bad = sum(bool(device.trouble) for device in devices)
        said.append(
            f"{gpus(has)} of {total} GPUs allocated ({round(100 * has / WHOLE_MILLI / total)} %), "
            f"{free} entirely free" + (f", {bad} take{'s' * (bad == 1)} no new pods" if bad else "")
        )
    else:
        known = [milli_of((body.get("status") or {}).get("allocatedGPU")) for body in view.projects]
        if known:
            said.append(
                f"{gpus(sum(known))} of {total} GPUs allocated, as the projects' status says"
            )
        said.append(
            f"shares of other namespaces than {view.only} {_HIDDEN}: you may not list their pods"
        )
    if utilisation and any(share.percent is None for device in devices for share in device.shares):
        why = (
            "the agents have not measured it yet (it takes a minute), or the driver cannot tell"
            if view.gpunodes
            else "no agent has reported: kubectl gpu check"
        )
        said.append(f"util -: {why}")
    return said


def _by_holder(shares: Iterable[HeldFraction]) -> list[tuple[HeldFraction, int, int]]:
    """One of each holder's shares, the milli of all of them, and how many pods they are of."""
    found: dict[str, list[HeldFraction]] = {}
    for share in shares:
        found.setdefault(share.key, []).append(share)
    return [
        (those[0], sum(share.milli for share in those), len({share.pod for share in those}))
        for those in found.values()
    ]


def _percent(percent: int | None) -> str:
    return "-" if percent is None else f"{percent} %"


def _padded(texts: Iterable[str]) -> list[str]:
    found = list(texts)
    width = max(map(len, found), default=0)
    return [text.ljust(width) for text in found]


def _some(names: Sequence[str]) -> str:
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
