"""docs/troubleshooting.md has a section for each word that the operator says, and for no other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.unit.docs.pages import DOCS, ROOT, blocks, headings, host_anchor, prose

from gpu_scheduler.api.condition import ConditionType
from gpu_scheduler.api.states import STATES
from gpu_scheduler.jobs import evict
from gpu_scheduler.runtime.event_reasons import EVENT_REASONS
from gpu_scheduler.sweeps.core.outcome import TrialState

PAGE = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
SECTIONS = [words for level, words in headings(PAGE) if level == 2]
SAID = [words for words in SECTIONS if re.fullmatch(r"[A-Z]\w+", words)]
OPERATOR = ROOT / "operator" / "gpu_scheduler"
_WORD = re.compile(r"([A-Z][a-z]+|[A-Z]{2,})+")

# Condition reasons stand in these modules, beside the types of conditions.
SPEAKERS = ("job_status", "project_status", "class_status", "protection")
# Which argument of a call is the reason.
REASON_IS = {
    "say": 2,
    "_say": 1,
    "tell": 1,
    "warn": 1,
}
# Calls that pass on a reason which somebody else has named.
FORWARDED = {
    ("runtime/common/quarantine.py", "reason"),
    ("runtime/status/device_events.py", "reason"),
    ("runtime/eviction/evictor.py", "reason"),
    ("runtime/status/job_statuses.py", "bad"),
    ("runtime/status/job_statuses.py", "phase"),
    ("runtime/status/job_statuses.py", "reason"),
    ("runtime/status/pod_conditions.py", "reason"),
    ("runtime/eviction/preemption.py", "reason"),
}


def test_each_reason_of_a_job_has_a_section_in_the_order_of_the_table() -> None:
    table = [str(state.reason) for state in STATES if state.reason]
    assert SAID[: len(table)] == table


def test_every_other_word_has_a_section_and_no_section_is_of_no_word() -> None:
    table = {str(state.reason) for state in STATES}
    words = {*EVENTS, *condition_words(), *MARKS, *TRIALS, "Unschedulable", "Succeeded"}
    fine = set(re.findall(r"`(\w+)`", PAGE.rpartition("## Words that say that all is well")[2]))
    assert len(SAID) == len(set(SAID))
    assert set(SAID) - table - words - {"Failed"} == set(), "a section that nothing says"
    assert words - table - set(SAID) - fine == set(), "a word without a section"
    assert GOOD <= fine, "a word of a condition that is as it should be"


def test_each_section_says_something_and_the_symptoms_lead_to_them() -> None:
    parts = re.split(r"^## (.+)$", PAGE, flags=re.M)[1:]
    bodies = dict(zip(parts[::2], parts[1::2], strict=True))
    assert [words for words in SAID if len(prose(bodies[words]).split()) < 8] == []
    symptoms = set(re.findall(r"\]\(#(\S+?)\)", bodies["By symptom"]))
    assert len(symptoms) > 15
    assert symptoms <= {host_anchor(words) for _, words in headings(PAGE)}


def test_each_job_that_waits_is_shown_as_kubectl_shows_it() -> None:
    parts = re.split(r"^## (.+)$", PAGE, flags=re.M)[1:]
    bodies = dict(zip(parts[::2], parts[1::2], strict=True))
    jobs = [state.reason for state in STATES if state.reason]
    assert [str(word) for word in jobs if not list(blocks(bodies[str(word)]))] == []


def test_who_says_a_reason_names_it() -> None:
    """Else the words that are looked for in the code would not be all of them."""
    passed_on = {
        (str(path.relative_to(OPERATOR)), reason.id)
        for path, reason in reasons()
        if isinstance(reason, ast.Name) and not reason.id.isupper()
    }
    assert passed_on == FORWARDED


EVENTS = {row.reason for row in EVENT_REASONS}  # as the code: test_event_reasons.py
MARKS = set(
    re.findall(r'CONDITION_\w+, "(\w+)"', Path(evict.__file__).read_text(encoding="utf-8"))
) | {"PreemptionByScheduler"}
TRIALS = {str(state) for state in TrialState} - {"Started", "Succeeded", "Failed"}
GOOD = {
    *("Accepted", "AllExist", "Covered", "Matches", "Placed", "Healthy", "Unknown"),
    *("Kernel", "Interposer", "Framework"),
}


def condition_words() -> set[str]:
    """Words in modules that put conditions together, other than their types."""
    types = {str(each) for each in ConditionType} | {"Complete", "QuotaCovered", "Matches"}
    found = set()
    for name in SPEAKERS:
        tree = ast.parse(
            (OPERATOR / "runtime" / "status" / f"{name}.py").read_text(encoding="utf-8")
        )
        wanted = (n.value for n in ast.walk(tree) if is_word(n))  # type: ignore[attr-defined]
        found |= {word for word in wanted if word not in types}
    assert {"Overcommitted", "NoSuchGPU", "OverCap", "UnexpectedError"} <= found
    return found


def reasons() -> Iterator[tuple[Path, ast.expr]]:
    """The argument of each call that is the reason of an Event."""
    for folder in ("runtime", "sweeps/runtime", "jobs"):
        for path in sorted((OPERATOR / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and called(node) in REASON_IS:
                    place = REASON_IS[called(node)]
                    if len(node.args) > place + 1:  # the sentence follows
                        yield path, node.args[place]


def called(call: ast.Call) -> str:
    function = call.func
    return getattr(function, "attr", None) or getattr(function, "id", "")


def is_word(node: ast.AST) -> bool:
    value = getattr(node, "value", None)
    return (
        isinstance(node, ast.Constant)
        and isinstance(value, str)
        and bool(_WORD.fullmatch(value))
        and len(value) > 3
    )
