"""The words of before are nowhere in the code, and those that users see are all still there."""

import io
import re
import tokenize
from collections.abc import Iterator

import pytest
import yaml
from tests.unit.docs.pages import ROOT

from gpu_scheduler.api import names
from gpu_scheduler.runtime.event_reasons import EVENT_REASONS

CODE = ("operator", "hack", "tools")
GONE_CLASSES = {
    "Ask", "Asked", "Block", "Demand", "Demands", "Due", "Dues", "KeptReservations",
    "Mix", "Needs", "Pool", "Pools", "Promises", "Reserver", "Run", "Runs", "Session",
    "Sheet", "Sort", "Teller", "Term", "Ward", "Where", "Wants",
}  # fmt: skip
"""Whole names of classes: ``LeaderTerm`` is none of them."""
GONE_WORDS = {"awaited", "bearers", "culprit", "trifle", "unmade", "ward", "wards"}
"""Parts of any name, and words of comments and docstrings."""
GONE_NAMES = GONE_WORDS | {
    "blame", "books", "demands", "dues", "mixes", "promises", "sorts", "suspect"
}  # fmt: skip
"""Parts of any name; in a sentence they may stand as everybody uses them."""
SEEN_BY_USERS = {
    "charts/gpu-scheduler/values.yaml": ("shares", "holders"),
    "docs/reference/metrics.md": (
        "gpusched_holders", "gpusched_set_aside", "gpusched_share_pods", "gpusched_stuck_pods",
    ),
}  # fmt: skip
"""Names that keep an old word, because somebody's scripts say it."""


def code() -> Iterator[tuple[str, str]]:
    """Path and text of every module."""
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def of_before(token: tokenize.TokenInfo) -> set[str]:
    if token.type == tokenize.NAME:
        return GONE_NAMES & {part.lower() for part in re.findall(r"[A-Z]?[a-z]+", token.string)}
    if token.type == tokenize.COMMENT or token.string.startswith('"""'):
        return GONE_WORDS & set(re.findall(r"[a-z]+", token.string))
    return set()


def test_no_word_of_before_is_in_the_code() -> None:
    found = [
        f"{path}:{token.start[0]}: {sorted(old)}"
        for path, text in code()
        if any(word in text.lower() for word in GONE_NAMES)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if (old := of_before(token))
    ]
    assert found == []


def test_no_class_has_a_name_of_before() -> None:
    named = [(path, re.findall(r"^\s*class _?(\w+)", text, re.MULTILINE)) for path, text in code()]
    assert [
        f"{path}: {name}" for path, all_ in named for name in all_ if name in GONE_CLASSES
    ] == []


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
