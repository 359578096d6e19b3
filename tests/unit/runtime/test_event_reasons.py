"""Every word that an Event may have is in a table."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import gpu_scheduler
from gpu_scheduler.api.gpujob import Phase
from gpu_scheduler.api.states import STATES
from gpu_scheduler.runtime import event_reasons
from gpu_scheduler.runtime.common import quarantine as quarantine
from gpu_scheduler.runtime.event_reasons import EVENT_REASONS
from gpu_scheduler.runtime.status import device_events, pod_warnings, protection, scheduled_events
from gpu_scheduler.runtime.usage import advice_told

SOURCES = Path(gpu_scheduler.__file__).parent
FOLDERS = ("runtime", "sweeps/runtime")
CALLS = {"say", "_say", "tell", "warn", "EventReason"}
TABLE = Path(event_reasons.__file__)
WORD = re.compile(r"[A-Z][a-z]+([A-Z][a-z]+)*")
KINDS = {"Normal", "Warning"}


def words_of_calls() -> Iterator[tuple[str, str]]:
    """Module and word of every Event that is written with a literal."""
    for path in (path for each in FOLDERS for path in sorted((SOURCES / each).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            called = node.func.id if isinstance(node.func, ast.Name) else called
            if called not in CALLS or (called == "EventReason" and path == TABLE):
                continue
            for given in node.args:
                if isinstance(given, ast.Constant) and isinstance(given.value, str):
                    if WORD.fullmatch(given.value) and given.value not in KINDS:
                        yield path.name, given.value


def words_of_conditions() -> set[str]:
    text = Path(protection.__file__).read_text(encoding="utf-8")
    return set(re.findall(r'"(OverCap|Unprotected|DeviceUnhealthy)"', text))


def test_every_word_in_the_code_has_a_row() -> None:
    rows = {row.reason for row in EVENT_REASONS} | {state.reason for state in STATES}
    found = list(words_of_calls())
    assert len(found) > 8, "the calls are looked for in the wrong place"
    assert [each for each in found if each[1] not in rows] == []


def test_every_row_has_a_word_in_the_code() -> None:
    constants = {
        quarantine.REASON,
        device_events.FOREIGN,
        device_events.UNHEALTHY,
        scheduled_events.REASON,
        scheduled_events.NOT_ENFORCED,
        pod_warnings.OWNER_GONE,
        advice_told.REASON,
    }
    ends = {str(Phase.SUCCEEDED), str(Phase.FAILED)}
    used = {word for _, word in words_of_calls()} | words_of_conditions() | constants | ends
    assert [row.reason for row in EVENT_REASONS if row.reason not in used] == []
    assert {*words_of_conditions(), *constants} <= {row.reason for row in EVENT_REASONS}


def test_a_row_is_there_once() -> None:
    words = [row.reason for row in EVENT_REASONS]
    assert len(words) == len(set(words))
