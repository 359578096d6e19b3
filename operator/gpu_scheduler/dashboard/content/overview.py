"""The first page: where the GPUs are, who waits, who holds and does not use, what to change."""

from gpu_scheduler.dashboard.content import overview_lead
from gpu_scheduler.dashboard.content.hidden import nodes_for, parts_for
from gpu_scheduler.dashboard.content.rows import projects_for, queue_for, reasons, seen, works_for
from gpu_scheduler.dashboard.content.words import listed
from gpu_scheduler.dashboard.picture import Picture
from gpu_scheduler.dashboard.question import RequestParameters
from gpu_scheduler.dashboard.rows import NodeRow, PartRow
from gpu_scheduler.dashboard.views import OverviewView
from gpu_scheduler.dashboard.visible import Visible
from gpu_scheduler.usage.figures import GpuState

_MOST = 6  # rows of a list that has a page of its own


def page(picture: Picture, visible: Visible, asked: RequestParameters) -> OverviewView:
    """For one reader; nothing is asked for."""
    nodes, states = nodes_for(picture, visible), parts_for(picture, visible)
    queue = queue_for(picture, visible)
    idle = tuple(seen(picture.idle, visible))
    advice = tuple(seen(picture.advice, visible))
    why = reasons(queue)
    known = overview_lead.LeadInputs(
        parts=states,
        nodes=len(nodes),
        followed=picture.followed,
        silent_agents=picture.silent_agents,
        idle=idle,
        reasons=why,
        waiting=len(queue),
        projects=tuple(sorted({row.project for row in queue})),
        works=len(works_for(picture, visible)),
        own=not (visible.all or visible.inventory),
    )
    return OverviewView(
        at=picture.at,
        lead=overview_lead.lead(known),
        gpus=round(sum(states.values()), 3),
        nodes=len(nodes),
        idle_seconds=picture.idle_seconds,
        followed=picture.followed,
        silent_agents=picture.silent_agents,
        parts=tuple(
            PartRow(state=state.value, gpus=round(gpus, 3), note=_note(state, nodes))
            for state, gpus in states.items()
        ),
        projects=tuple(projects_for(picture.projects, visible)),
        reasons=why,
        idle=idle[:_MOST],
        idle_count=len(idle),
        advice=advice[:_MOST],
        advice_count=len(advice),
    )


def _note(state: GpuState, nodes: tuple[NodeRow, ...]) -> str:
    """Which nodes are closed, and why."""
    if state is not GpuState.CLOSED:
        return ""
    return listed([f"{node.name} {node.closed}" for node in nodes if node.closed], 2)
