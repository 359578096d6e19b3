"""The words of before are nowhere in the code, and those that users see are all still there."""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.unit.docs.pages import ROOT

from gpu_scheduler.api import names
from gpu_scheduler.runtime.event_reasons import EVENT_REASONS

CODE = ("operator", "hack", "tools")
GONE_CLASSES = {
    "Ask", "Asked", "Block", "Blocks", "Choice", "Claims", "Culprit", "Demand", "Demands", "Due",
    "Dues", "Facts", "Found", "Grant", "Hold", "KeptReservations", "KeptRoom", "Kind", "Known",
    "Looked", "Memory", "Mix", "Needs", "Owed", "Peers", "Pick", "Picked", "Placement", "Pool",
    "Pools", "Promises", "Reserver", "Run", "Runs", "Said", "Seen", "Session", "Share", "Sheet",
    "Sort", "Suspect", "Teller", "Term", "Told", "Wants", "Ward", "Wards", "Where", "Words",
}  # fmt: skip
"""Whole names of classes and of types, ``_Known`` as well: ``LeaderTerm`` is none of them."""
GONE_WORDS = {
    "awaited", "bearers", "culprit", "trifle", "trifles", "unmade", "ward", "wards", "withheld"
}  # fmt: skip
"""Parts of any name, and words of comments, docstrings, messages and pages."""
GONE_NAMES = GONE_WORDS | {
    "book", "books", "demands", "dues", "grant", "grants",
    "leaned", "mix", "mixes", "sheet", "sorts", "suspect",
    "teller",
}  # fmt: skip
"""Parts of any name; in a sentence they may stand as everybody uses them."""
GONE_IN_CODE = GONE_NAMES | {"blame", "promises"}
"""The same, but for what tests say of whom they test, in sentences that are names."""
SEEN_BY_USERS = {
    "charts/gpu-scheduler/values.yaml": ("shares", "holders"),
    "docs/reference/metrics.md": (
        "gpusched_holders", "gpusched_set_aside", "gpusched_share_pods", "gpusched_stuck_pods",
    ),
}  # fmt: skip
"""Names that keep an old word, because somebody's scripts say it."""


def code(*more: str) -> Iterator[tuple[str, str]]:
    """Path and text of every module, ``more``: also of these folders."""
    for folder in (*CODE, *more):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def of_before(token: tokenize.TokenInfo, names: set[str]) -> set[str]:
    if token.type == tokenize.NAME:
        return names & {part.lower() for part in re.findall(r"[A-Z]?[a-z]+", token.string)}
    if token.type in (tokenize.COMMENT, tokenize.STRING):
        return GONE_WORDS & {part.lower() for part in re.findall(r"[A-Z]?[a-z]+", token.string)}
    return set()


def defined(text: str) -> set[str]:
    """Classes, and types that another one is called by."""
    return set(re.findall(r"^(?:\s*class )?(_?[A-Z]\w+)\b(?=[:(]| = \w+[\[.])", text, re.MULTILINE))


@pytest.mark.long(always=True)
def test_no_word_of_before_is_in_the_code() -> None:
    found = [
        f"{path}:{token.start[0]}: {sorted(old)}"
        for path, text in code("tests")
        if path != str(Path(__file__).relative_to(ROOT))
        for names in [GONE_NAMES if path.startswith("tests/") else GONE_IN_CODE]
        if any(word in text.lower() for word in names)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if (old := of_before(token, names))
    ]
    assert found == []


def test_no_word_of_before_is_in_a_page() -> None:
    """Decisions keep the words of their time, until ADR 0067 took them."""
    pages = [
        path
        for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
        if path.name != "words.md" and not re.match("00([0-5].|6[0-7])-", path.name)
    ]
    assert len(pages) > 40
    words = {path: set(re.findall(r"\w+", path.read_text(encoding="utf-8"))) for path in pages}
    assert [(path.name, old) for path, all_ in words.items() if (old := GONE_WORDS & all_)] == []


def test_no_class_or_type_has_a_name_of_before() -> None:
    found = [
        (path, name)
        for path, text in code("tests")
        for name in defined(text)
        if name.removeprefix("_") in GONE_CLASSES
    ]
    assert found == []


def test_kind_is_kubernetes_alone() -> None:
    types = r"\w*(?:Shape|Type|BudgetKey)\b"
    found = [
        f"{path}: {match[0]}"
        for path, text in code()
        for match in re.finditer(rf"\b\w*kinds?: (?:\w+\[)*{types}", text)
    ]
    assert found == []


def test_no_class_is_a_book() -> None:
    assert [path for path, text in code() if any(n.endswith("Book") for n in defined(text))] == []


@pytest.mark.parametrize("page", SEEN_BY_USERS)
def test_what_users_see_keeps_its_name(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    if page.endswith(".yaml"):
        assert set(SEEN_BY_USERS[page]) <= yaml.safe_load(text).keys()
    else:
        assert [each for each in SEEN_BY_USERS[page] if each not in text] == []


def test_annotations_and_reasons_keep_theirs() -> None:
    assert names.NARROWED == "gpu-scheduler.io/narrowed"
    assert names.LABEL_SHARE == "gpu-scheduler.io/share"
    assert {"SetAside", "GangReleased"} <= {row.reason for row in EVENT_REASONS}


WORDS = (ROOT / "docs/words.md").read_text(encoding="utf-8")


def file_of(module: str) -> Path | None:
    """Where a module is, or a package, as the page calls it."""
    path = module.rstrip("/") if "/" in module else module.replace(".", "/")
    places = (ROOT / top / path for top in ("operator/gpu_scheduler", "."))
    return next(
        (found for each in places for found in (each.with_suffix(".py"), each) if found.exists()),
        None,
    )


def test_each_class_of_the_page_is_where_it_says() -> None:
    _, _, rest = WORDS.partition("## Classes")
    rows = re.findall(r"^\| `([^`]+)` \| [^|]+ \| `(\w+)` \|$", rest, re.MULTILINE)
    assert len(rows) > 100
    wrong = [
        (module, name)
        for module, name in rows
        if (path := file_of(module)) is None
        or not re.search(rf"^(?:class |def |){name}\b", path.read_text("utf-8"), re.MULTILINE)
    ]
    assert wrong == []


def test_each_module_of_the_page_is_there() -> None:
    _, _, rest = WORDS.partition("## Modules")
    rows = re.findall(r"^\| `[^|]+ \| ([^|]+) \|$", rest, re.MULTILINE)
    assert len(rows) > 100
    named = [module for row in rows for module in re.findall(r"`([^`]+)`", row)]
    assert [module for module in named if file_of(module) is None] == []
