"""Each sentence of docs/what-a-cap-guarantees.md has a test that exists, or a reason for none."""

import ast
import re
from functools import cache

from tests.unit.docs.cap_sentences import SENTENCES
from tests.unit.docs.pages import DOCS, ROOT
from tests.unit.docs.sentences import sentences

PAGE = DOCS / "what-a-cap-guarantees.md"


def of(sentence: str) -> list[str]:
    """The rows of the table that a sentence begins like."""
    return [begin for begin in SENTENCES if sentence.startswith(begin)]


def test_every_sentence_stands_in_the_table_once_and_every_row_is_of_one() -> None:
    said = sentences(PAGE.read_text())
    rows = [of(each) for each in said]
    missing = [each for each, found in zip(said, rows, strict=True) if len(found) != 1]
    assert not missing, "sentences without one row in tests/unit/docs/cap_sentences.py"
    unused = SENTENCES.keys() - {found for each in rows for found in each}
    assert not unused, "rows of tests/unit/docs/cap_sentences.py whose sentence is gone"


@cache
def names(file: str) -> frozenset[str]:
    """What tests there are in a file."""
    path = ROOT / file if file.startswith("charts/") else ROOT / "tests" / file
    text = path.read_text()
    if path.suffix == ".yaml":
        return frozenset(re.findall(r"^ *- it: (.+)$", text, re.M))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(n.name for n in ast.walk(ast.parse(text)) if isinstance(n, functions))


def test_every_test_of_the_table_exists() -> None:
    tests = {test for found in SENTENCES.values() if isinstance(found, tuple) for test in found}
    gone = [test for test in sorted(tests) if test.partition("::")[2] not in names(file_of(test))]
    assert not gone
    assert all(SENTENCES.values()), "a row with neither a test nor a reason"


def file_of(test: str) -> str:
    return test.partition("::")[0]


def test_a_sentence_is_a_paragraphs_an_items_or_a_row() -> None:
    text = """# A page

One. Two `x`
goes on.

| head | of |
| --- | --- |
| a | b. C |

- **Label.** Words are here. More
  of it.
- Last [link](x.md).
"""
    assert sentences(text) == [
        "One.",
        "Two x goes on.",
        "a | b. C",
        "Label: Words are here.",
        "More of it.",
        "Last link.",
    ]
