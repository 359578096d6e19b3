"""The page of nodes and their GPUs."""

from gpu_scheduler.dashboard.content.hidden import nodes_for, parts_for
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
from gpu_scheduler.dashboard.picture import Picture
from gpu_scheduler.dashboard.question import RequestParameters
from gpu_scheduler.dashboard.rows import Lead, NodeRow
from gpu_scheduler.dashboard.views import GpusView
from gpu_scheduler.dashboard.visible import Visible
from gpu_scheduler.usage.figures import GpuState


def page(picture: Picture, visible: Visible, asked: RequestParameters) -> GpusView:
    """All nodes that the reader may see; nothing is asked for."""
    nodes, parts = nodes_for(picture, visible), parts_for(picture, visible)
    busy = parts[GpuState.BUSY] if picture.followed else None
    own = not (visible.all or visible.inventory)
    return GpusView(
        at=picture.at,
        lead=lead(nodes, busy, own=own),
        idle_seconds=picture.idle_seconds,
        followed=picture.followed,
        nodes=nodes,
    )


def lead(nodes: tuple[NodeRow, ...], busy: float | None, *, own: bool) -> Lead:
    """What is busy; and where there is room.

    Args:
        nodes: that the reader sees.
        busy: GPUs; None: nobody asks the nodes.
        own: they are those alone on which the reader has work.
    """
    if not nodes:
        nothing = (
            "None of your work holds a GPU."
            if own
            else "No node of this cluster has GPUs that "
            "can be seen: neither an agent nor GPU feature discovery's labels tell of one."
        )
        return Lead(first=sentence(nothing))
    whole = sum(len(node.devices) for node in nodes)
    on = f" on {many(len(nodes), 'node')}"
    if busy is None:
        first = sentence(f"{gpus(whole)}{on}; nobody asks the nodes what they do.")
    elif amount(busy) == "0":
        first = sentence(f"None of {gpus(whole)} is busy{on}.")
    else:
        first = sentence(f"{amount(busy)} of {gpus(whole)} {is_are(busy)} busy{on}.")
    return Lead(first=first, then=() if own else (*_room(nodes), *_closed(nodes)))


def _room(nodes: tuple[NodeRow, ...]) -> Sentence:
    open_nodes = [node for node in nodes if not node.closed]
    best = max(open_nodes, key=_piece, default=None)
    if best is None:
        return sentence("None of them takes new pods.")
    piece = _piece(best)
    if not piece:
        return sentence("No GPU has room.")
    where = (best.name, f"/gpus?node={best.name}")
    if piece < 1:
        return sentence(f"Most room in one piece: {amount(piece)} on ", where, ".")
    free = sum(sum(d.free >= 1 and not d.problem for d in node.devices) for node in open_nodes)
    most = max(open_nodes, key=_whole)
    return sentence(
        f"{begin(many(free, 'whole GPU'))} {is_are(free)} free, {_of_them(_whole(most), free)} on ",
        (most.name, f"/gpus?node={most.name}"),
        ".",
    )


def _of_them(here: int, free: int) -> str:
    """How many of those that are free."""
    if here == free:
        return "it is" if free == 1 else "all of them"
    return "most of them" if here * 2 > free else f"{count(here)} of them"


def _piece(node: NodeRow) -> float:
    return max((d.free for d in node.devices if not d.problem), default=0.0)


def _whole(node: NodeRow) -> int:
    return sum(d.free >= 1 and not d.problem for d in node.devices)


def _closed(nodes: tuple[NodeRow, ...]) -> Sentence:
    closed = [f"{node.name} {node.closed}" for node in nodes if node.closed]
    return sentence(f" {listed(closed)}.") if closed else ()
