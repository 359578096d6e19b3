"""The lines of ``top``. Pure but for the printing in ``show``."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from gpu_scheduler.cli.holders.bars import (
    Line,
    Part,
    Piece,
    bar,
    colour,
    legend,
    print_lines,
    print_text,
    use_bar,
)
from gpu_scheduler.cli.holders.held import (
    WHOLE_MILLI,
    HeldDevice,
    HeldFraction,
    gpus,
    one_namespace,
    short_model,
)
from gpu_scheduler.cli.holders.holder import (
    by_holder,
    by_node,
    by_project,
    mean_percent,
    milli_of,
    used_parts,
)
from gpu_scheduler.cli.holders.notes import footer
from gpu_scheduler.cli.holders.read import HoldersView
from gpu_scheduler.cli.holders.values import values
from gpu_scheduler.cli.shown import print_table, print_value
from gpu_scheduler.cli.use.job_rows import job_rows, job_table

_RESERVED = {"nominated": "held for a pod to come of", "reserved": "kept for"}


def show(what: str, view: HoldersView, output: str, now: datetime) -> None:
    """Print what is asked for: gpus, nodes, jobs or projects; ``now``: until when it is idle."""
    if output in ("json", "yaml"):
        print_value(values(what, view), output)
        return
    wide, partial = output == "wide", bool(view.only)
    if what == "gpus":
        print_lines(of_gpus(view.devices, wide=wide, partial=partial))
    elif what == "nodes":
        print_lines(of_nodes(view, wide=wide))
    elif what == "projects":
        print_lines(of_projects(view))
    elif rows := job_rows(by_holder(view.devices), view.use, view.only):
        print_table(job_table(rows, now), wide=wide)
    if is_used(view.devices) and (
        what in ("gpus", "nodes") or (what == "projects" and view.projects)
    ):
        print_text(legend(partial=partial and what != "projects"))
    for text in footer(what, view):
        print_text(text)


def is_used(devices: Iterable[HeldDevice]) -> bool:
    """Whether of anything that is held it is known what of it is used."""
    return any(share.percent is not None for device in devices for share in device.shares)


def of_gpus(devices: Sequence[HeldDevice], *, wide: bool, partial: bool = False) -> list[Line]:
    """A line for each GPU; ``partial``: what others hold cannot be seen."""
    names = _padded(device.name for device in devices)
    models = _padded((device.model if wide else short_model(device.model)) for device in devices)
    bare, told = one_namespace(devices), is_used(devices)
    lines: list[Line] = []
    for name, model, device in zip(names, models, devices, strict=True):
        together = _by_holder(device.shares)
        parts = [Part(milli, _used(device.shares, share.key)) for share, milli, _ in together]
        line: list[Sequence[Piece]] = [
            [Piece(f"{name} {model}" if model.strip() else name)],
            [
                *_bar(parts, WHOLE_MILLI, told=told, partial=partial),
                Piece(f" {gpus(device.milli)}"),
            ],
        ]
        for number, (share, milli, count) in enumerate(together):
            text = f"{share.name if bare else share.key} {gpus(milli)}"
            line.append([Piece(text + (f" in {count} pods" if count > 1 else ""), colour(number))])
        for room in device.reserved:
            text = f"{room.name if bare else room.key} {gpus(room.milli)}"
            line.append([Piece(f"{_RESERVED.get(room.held_as, 'held for')} {text}", "dim")])
        line.append([Piece(f"util {_percent(device.percent)}")] if device.shares else [])
        if wide:
            line.append([Piece(f"{device.id}, {device.usable_mib} MiB")])
        if device.trouble:
            line.append([Piece(device.trouble, "red")])
        lines.append([group for group in line if group])
    return lines


def of_nodes(view: HoldersView, *, wide: bool) -> list[Line]:
    """A line for each node."""
    devices = view.devices
    partial = bool(view.only) or view.blind  # what else there is, and who holds it
    nodes = by_node(devices)
    names, told = _padded(nodes), is_used(devices)
    lines: list[Line] = []
    for name, there in zip(names, nodes.values(), strict=True):
        models = sorted({d.model if wide else short_model(d.model) for d in there})
        parts = [Part(device.milli, _used(device.shares)) for device in there]
        count = "?" if view.blind else str(len(there))
        whole = sum(d.is_free for d in there)
        bad = sum(bool(d.trouble) for d in there)
        line = [
            [Piece(name)],
            [
                *_bar(parts, WHOLE_MILLI * len(there), told=told, partial=partial),
                Piece(f" {gpus(sum(part.held for part in parts))} of {count}"),
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


def of_projects(view: HoldersView) -> list[Line]:
    """A line for each project."""
    names = _padded(str(body["metadata"]["name"]) for body in view.projects)
    shares, told = by_project(view.devices), is_used(view.devices)
    return [
        _project(name, body, shares.get(name.rstrip(), ()) if told else None)
        for name, body in zip(names, view.projects, strict=True)
    ]


def _project(name: str, body: Mapping[str, Any], shares: Sequence[HeldFraction] | None) -> Line:
    """The line of one; ``shares``: its own, None where nothing is known of use."""
    spec, status = body.get("spec") or {}, body.get("status") or {}
    quota, has = milli_of(spec.get("quota")), milli_of(status.get("allocatedGPU"))
    above = max(0, has - quota)
    used = 0
    if shares is None:
        drawn = bar([min(quota, has), above], max(quota, has))
    else:
        used, unused, _ = used_parts(shares)
        known = min(has, used + unused)
        parts = [Part(known, min(used, known)), Part(has - known, None)]
        drawn = use_bar(parts, max(quota, has))
    line = [[Piece(name)], [*drawn, Piece(f" {gpus(has)} of {gpus(quota)}")]]
    if shares:
        line.append([Piece(f"{gpus(used)} used")])
    if above:
        line.append([Piece(f"{gpus(above)} borrowed", "yellow")])
    if pending := milli_of(status.get("pendingGPU")):
        line.append([Piece(f"{gpus(pending)} pending", "yellow")])
    return line


def _bar(parts: Sequence[Part], whole: int, *, told: bool, partial: bool) -> list[Piece]:
    """Of what is used within what is held, where that is known of anything."""
    if told:
        return use_bar(parts, whole, partial=partial)
    return bar([part.held for part in parts], whole, partial=partial)


def _used(shares: Iterable[HeldFraction], key: str = "") -> int | None:
    """Milli-GPU that is used of shares, with ``key`` of one holder's; None: not known of one."""
    each = [share.used for share in shares if key in ("", share.key)]
    known = [used for used in each if used is not None]
    return sum(known) if len(known) == len(each) else None


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
