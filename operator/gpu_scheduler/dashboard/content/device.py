"""The page of one GPU: who is on it, who was, and how it is."""

from msgspec.structs import replace

from gpu_scheduler.dashboard.content.hidden import node_for
from gpu_scheduler.dashboard.content.words import amount, listed, percent, sentence
from gpu_scheduler.dashboard.picture import Picture
from gpu_scheduler.dashboard.question import RequestParameters
from gpu_scheduler.dashboard.rows import DeviceRow, HealthRow, Lead, NodeRow
from gpu_scheduler.dashboard.views import DeviceView
from gpu_scheduler.dashboard.visible import Visible


def page(picture: Picture, visible: Visible, asked: RequestParameters) -> DeviceView | None:
    """Asked for by its node and its index there."""
    node = node_for(picture, visible, asked["node"])
    devices = node.devices if node is not None else ()
    device = next((each for each in devices if str(each.index) == asked["index"]), None)
    if node is None or device is None:
        return None
    detail = picture.details.device(node.name, device.index)
    if detail is None:
        return None
    health = detail.health
    if health is not None and any(share.ref is None for share in device.shares):
        # Of what others do on it nothing is said, and that would say it.
        health = replace(health, watts=None, slowed=None, nvlink_mib_a_second=None, xids=None)
    return DeviceView(
        at=picture.at,
        lead=lead(node, device, health),
        idle_seconds=picture.idle_seconds,
        followed=picture.followed,
        node=replace(node, devices=()),
        device=device,
        health=health,
        processes=tuple(p for p in detail.processes if visible.sees(p.ref.namespace)),
        earlier=tuple(each for each in detail.earlier if visible.sees(each.ref.namespace)),
        earlier_from=detail.earlier_from,
    )


def lead(node: NodeRow, device: DeviceRow, health: HealthRow | None) -> Lead:
    """How much of it is held, and how it is used; and what is wrong with it."""
    held, name = sum(share.gpus for share in device.shares), f"GPU {device.index} of {node.name}"
    if amount(held) == "0":
        first = f"{name} is held by nobody."
    else:
        use = "what it does is not known"
        if device.busy is not None:
            use = f"it is used {percent(device.busy)} of the time"
        first = f"{amount(held) if held < 1 else 'All'} of {name} is held; {use}."
    then = ""
    if device.problem:
        then = f"It takes nobody: {device.problem}."
    elif node.closed:
        then = f"It takes nobody: its node {node.closed}."
    elif health is not None and health.slowed:
        then = f"It runs below its clocks: {listed(health.slowed)}."
    return Lead(first=sentence(first), then=sentence(then))
