"""What stands below ``top``: sums, and in a sentence each what could not be seen. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from gpu_scheduler.cli.holders.held import WHOLE_MILLI, HeldDevice, gpus
from gpu_scheduler.cli.holders.holder import milli_of
from gpu_scheduler.cli.holders.read import HoldersView
from gpu_scheduler.dashboard.content.overview_lead import allocated
from gpu_scheduler.dashboard.content.words import begin, is_are, many, text
from gpu_scheduler.usage.figures import GpuState, held_parts

_INVENTORY = "an administrator lets you with rbac.inventoryReaders of the chart"


def footer(what: str, view: HoldersView) -> list[str]:
    """What all of it comes to, and what could not be seen.

    Args:
        what: gpus, nodes, jobs or projects.
        view: that was shown.
    """
    if view.without_projects and what == "projects":
        return [f"You may not read gpuprojects.gpu-scheduler.io: {_INVENTORY}."]
    if not view.devices:
        return [_nothing(view), *_of_use(what, view)]
    return [*_sums(view), *map(str, view.left), *_of_use(what, view)]


def _nothing(view: HoldersView) -> str:
    if not view.blind:
        return "no node has a GPU that the scheduler knows: kubectl gpu check"
    where = f"in namespace {view.only}" if view.only else "that you may see"
    return (
        f"No pod {where} holds a GPU; you may read neither gpunodes.gpu-scheduler.io nor nodes: "
        f"{_INVENTORY}."
    )


def _sums(view: HoldersView) -> Iterator[str]:
    devices = view.devices
    total, has = len(devices), sum(device.milli for device in devices)
    free = sum(d.is_free for d in devices)
    if view.blind:
        where = f"namespace {view.only} alone is" if view.only else "pods that you may see are"
        yield (
            f"{gpus(has)} GPUs held: {where} shown, as you may read neither "
            f"gpunodes.gpu-scheduler.io nor nodes: {_INVENTORY}."
        )
    elif not view.only:
        bad = sum(bool(device.trouble) for device in devices)
        rest = f" {begin(many(bad, 'GPU'))} take{'s' * (bad == 1)} no new pods." if bad else ""
        yield (
            f"{text(allocated(_parts(devices), followed=True))} "
            f"{begin(many(free, 'whole GPU'))} {is_are(free)} free.{rest}"
        )
    else:
        known = [milli_of((body.get("status") or {}).get("allocatedGPU")) for body in view.projects]
        if known:
            yield f"{gpus(sum(known))} of {total} GPUs allocated, as the projects' status says"
        yield (
            f"shares of other namespaces than {view.only} (not yours): you may not list their pods"
        )


def _parts(devices: Iterable[HeldDevice]) -> Mapping[GpuState, float]:
    """Where the GPUs are, as far as objects tell it: not for how long some of it was idle."""
    milli: Counter[GpuState] = Counter()
    for device in devices:
        left = WHOLE_MILLI
        for share in device.shares:
            taken = min(share.milli, left)
            left -= taken
            milli.update(dict(held_parts(taken, share.used, idle=False)))
        milli[GpuState.FREE] += left
    return {state: part / WHOLE_MILLI for state, part in milli.items()}


def _of_use(what: str, view: HoldersView) -> Iterator[str]:
    unknown = any(share.percent is None for device in view.devices for share in device.shares)
    if unknown and what in ("gpus", "nodes"):
        yield f"util -: {why_not_known(view)}"
    if what == "jobs" or (unknown and view.blind):  # else agents alone tell it
        yield from view.use.notes(scope_is_said=bool(view.only) or view.blind)


def why_not_known(view: HoldersView) -> str:
    """Why it is not known what holders use, in words that begin after a colon."""
    if view.blind:
        return "what agents measure stands in GPUNodes, which you may not read"
    if view.gpunodes:
        return "the agents have not measured it yet (it takes a minute), or the driver cannot tell"
    return "no agent has reported: kubectl gpu check"
