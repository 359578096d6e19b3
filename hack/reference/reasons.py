"""docs/reference/reasons.md, and the table of docs/states.md: words of states, conditions, Events.

Each state's word is a link to what to do about it, which has a section of docs/troubleshooting.md.
"""

from collections.abc import Iterator
from pathlib import Path

from gpu_scheduler.api.condition import CONDITIONS
from gpu_scheduler.api.states import STATES, Group, phases
from gpu_scheduler.runtime.event_reasons import EVENT_REASONS
from reference.markdown import code, prose, table

_STATES = Path(__file__).parents[2] / "docs" / "states.md"
_HEAD = """# Reasons

Generated from the table of states and from that of Events (`make reference`). `status.reason` of
a GPUJob is one of these words, and so is the reason of condition `PodScheduled` on a pod that
waits; scripts may rely on them. The sentence with numbers is `status.message`. How one state
leads to another: [states](../states.md).
"""
_CONDITIONS = """## Conditions

A condition that is not there says nothing. `Complete`, `Failed`, `CannotStart` and `SetAside` are
there only while True.
"""
_EVENTS = """## Events

An Event goes with every reason above that has a kind in the last column, on the GPUJob, or on a
pod that asks for a share by itself. These have words of their own:
"""


def page() -> str:
    """The page as it should be."""
    parts = [_HEAD]
    for group in Group:
        if rows := list(_rows(group)):
            heading = str(group)[:1].upper() + str(group)[1:]
            head = ("reason", "phase", "what is so", "who moves it on", "Event")
            parts.append(f"## {heading}\n\n{table(head, rows)}\n")
    conditions = [(code(kind), *map(prose, told)) for kind, told in CONDITIONS.items()]
    parts.append(f"{_CONDITIONS}\n{table(('condition', 'of', 'True means'), conditions)}\n")
    events = [(code(e.reason), e.kind, prose(e.about), prose(e.means)) for e in EVENT_REASONS]
    parts.append(f"{_EVENTS}\n{table(('reason', 'kind', 'on', 'what has happened'), events)}\n")
    return "\n".join(parts)


def states_page() -> str:
    """docs/states.md as it is, with the table as it should be."""
    rows = [
        (phases(state), state.reason and code(state.reason), state.means, state.mover)
        for state in STATES
    ]
    made = table(("phase", "`status.reason`", "what is so", "who moves it on"), rows)
    before, head, rest = _STATES.read_text(encoding="utf-8").partition("| phase | `status.")
    _, _, after = f"{head}{rest}".partition("\n\n")
    return f"{before}{made}\n\n{after}"


def words() -> list[str]:
    """Every reason of a state, in the table's order."""
    return [state.reason for state in STATES if state.reason]


def _rows(group: Group) -> Iterator[tuple[str, ...]]:
    for state in STATES:
        if state.group is group and state.reason:
            yield (
                f"[{code(state.reason)}](../troubleshooting.md#{state.reason.lower()})",
                phases(state),
                prose(state.means),
                prose(state.mover),
                state.event or "",
            )
