"""The front end's types: made from the schema of the answers, and anew when that changes."""

import msgspec
import pytest

from dashboard_types.__main__ import PATH
from dashboard_types.typescript import text, type_of
from gpu_scheduler.dashboard.views import VIEWS


class Inner(msgspec.Struct, rename="camel"):
    """A part."""

    so_many: int


class Outer(msgspec.Struct, rename="camel"):
    """All of it.

    Attributes:
        of_which: the parts.
    """

    of_which: tuple[Inner, ...]
    share: float | None
    labels: dict[str, str]
    ended: bool = False


def test_they_are_those_of_the_schema() -> None:
    assert PATH.read_text(encoding="utf-8") == text(VIEWS), "make dashboard-types writes them anew"


def test_every_field_is_there_with_its_comment_also_one_with_a_default() -> None:
    assert (
        "/** All of it. */\n"
        "export interface Outer {\n"
        "  /** the parts. */\n"
        "  readonly ofWhich: readonly Inner[];\n"
        "  readonly share: number | null;\n"
        "  readonly labels: Readonly<Record<string, string>>;\n"
        "  readonly ended: boolean;\n"
        "}\n"
    ) in text([Outer])


def test_what_a_struct_refers_to_is_there_too() -> None:
    assert "export interface Inner {\n  readonly soMany: number;\n}" in text([Outer])


def test_a_choice_of_words_is_a_union_also_in_a_list() -> None:
    words = {"enum": ["a", "b"]}
    assert type_of(words) == "'a' | 'b'"
    assert type_of({"type": "array", "items": words}) == "readonly ('a' | 'b')[]"


def test_a_comment_cannot_be_ended_by_what_it_says() -> None:
    class Sly(msgspec.Struct):
        """Ends */ here."""

    assert "/** Ends * / here. */" in text([Sly])


def test_what_has_no_counterpart_is_refused() -> None:
    with pytest.raises(ValueError, match="no TypeScript"):
        type_of({"type": "string?"})
