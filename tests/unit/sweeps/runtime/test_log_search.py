"""No log and no expression holds up the event loop: what they may take is bounded."""

import asyncio
import threading
from typing import Any
from unittest.mock import patch

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_scheduler.api.log_regex import (
    LINE_CHARS,
    MOST_INSTRUCTIONS,
    LogRegexError,
    compiled,
)
from gpu_scheduler.api.search import Objective
from gpu_scheduler.sweeps.core.outcome import TrialState
from gpu_scheduler.sweeps.core.results import TOO_DEAR
from gpu_scheduler.sweeps.runtime import log_search as module
from gpu_scheduler.sweeps.runtime.log_search import CPU_SECONDS, SearchThread, search

LOSS = Objective("loss")
# Of the size that patterns in sweeps may have, and linear; 42 s for a log of a megabyte.
DEAR = "(?:(?:(?:(?:a{0,30}){0,30}b?)c?){0,1}d?)*val=([0-9.]+)"


class Clock:
    """CPU seconds that each look at it adds to."""

    def __init__(self, step: float) -> None:
        self.now, self.step, self.looks = 0.0, step, 0

    def __call__(self) -> float:
        self.now += self.step
        self.looks += 1
        return self.now


def test_a_search_ends_with_its_budget_and_says_what_would_be_right() -> None:
    clock = Clock(CPU_SECONDS / 4)
    reading = search(b"\n".join([b"a" * 4096] * 244), DEAR, LOSS, clock)
    assert reading.state is TrialState.RESULT_MISSING
    assert reading.message == TOO_DEAR and "spec.sweep.resultFrom.logRegex" in TOO_DEAR
    assert clock.looks < 10, "five lines, not 244"


def test_a_megabyte_of_carriage_returns_is_no_million_lines() -> None:
    clock = Clock(CPU_SECONDS / 10)
    reading = search(b"loss=3\n" + b"\r" * 1_000_000, r"loss=(\d)", LOSS, clock)
    assert (reading.value, clock.looks) == (3.0, 2), "one line, and empty ones"


def test_a_megabyte_of_short_lines_is_given_up_like_any_other() -> None:
    reading = search(b"x\r" * 500_000, r"loss=(\d)", LOSS, Clock(CPU_SECONDS / 1000))
    assert reading.message == TOO_DEAR


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        (r"(\pL{1000})", "is too large for RE2; write smaller counted repetitions"),
        ("((?:.?){30})" + "(?:.?){30}" * 40, "instructions of RE2; at most 4,000"),
        ("()" * 21, "has 21 groups; at most 20"),
        ("(?:" + "()" * 120 + "x)", "at most 20"),
    ],
)
def test_an_expression_that_is_too_dear_is_refused_before_it_runs(pattern: str, says: str) -> None:
    with pytest.raises(LogRegexError) as refused:
        compiled(pattern, "loss")
    assert says in str(refused.value)
    reading = search(b"x", pattern, LOSS)
    assert reading.message.startswith("spec.sweep.resultFrom.logRegex: ")


@pytest.mark.parametrize(
    "pattern",
    [
        r"val_loss=([-+.0-9eE]+)",
        r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?Z .{0,80}loss=([0-9.]+)",
        r"\d+%\|.{0,100}\| \d+/\d+ \[.{0,40}\] loss=([0-9.]+)",
        r"(?i)\pL+ \pL+ \pL+ ([0-9.]+)",
    ],
)
def test_expressions_as_people_write_them_are_taken(pattern: str) -> None:
    compiled(pattern, "loss")


PIECES = st.sampled_from(["a", "b?", ".", r"\d", r"\pL", "[ab]", "(?:a|ab)", "(?:a|a|b)", ""])
NOT_OURS = ["(?=a)", "(?!a)", "(?<=a)", "(?<!a)", r"\1", "(?>a)", "a++", "(?P=loss)"]


@st.composite
def nested(draw: st.DrawFn) -> str:
    """Counted repetitions inside each other, of alternations that overlap."""
    pattern = draw(PIECES)
    for _ in range(draw(st.integers(1, 6))):
        least = draw(st.integers(0, 2))
        most = draw(st.sampled_from(["", str(least + draw(st.integers(0, 40)))]))
        how = draw(st.sampled_from([f"{{{least},{most}}}", "*", "+", "?", "*?"]))
        pattern = f"(?:{pattern}{draw(PIECES)}|{draw(PIECES)}){how}"
    return pattern


class Lines:
    """What a compiled expression is searched in."""

    def __init__(self, expression: Any) -> None:
        self._expression, self.most = expression, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._expression, name)

    def search(self, line: str) -> Any:
        self.most = max(self.most, len(line))
        return self._expression.search(line)


@settings(deadline=None, max_examples=30)
@given(nested(), st.booleans())
def test_between_two_looks_at_the_clock_no_pattern_has_more_than_so_many_steps(
    pattern: str, grouped: bool
) -> None:
    """RE2 looks at each instruction once for each character at most: that is the measure."""
    pattern = f"({pattern})" if grouped else f"{pattern}=([0-9.]+)"
    found: list[Lines] = []

    def compiling(pattern: str, options: Any) -> Lines:
        found.append(Lines(re2._Regexp(pattern, options)))
        return found[-1]

    clock = Clock(CPU_SECONDS / 3)
    with patch.object(re2, "compile", compiling):
        reading = search(b"\n".join([b"ab" * 5000] * 9), pattern, LOSS, clock)
    assert clock.looks <= 4
    if not found:
        return
    if found[0].programsize > MOST_INSTRUCTIONS:
        assert [each.most for each in found] == [0], "it is refused before it runs"
        assert "write smaller counted repetitions" in reading.message
    else:
        looked = [each for each in found if each.most]  # a second one for lines without a number
        assert sum(each.programsize for each in looked) <= MOST_INSTRUCTIONS
        assert max(each.most for each in looked) <= LINE_CHARS


@pytest.mark.parametrize("piece", NOT_OURS)
def test_what_only_an_engine_that_goes_back_has_is_refused_with_a_way_out(piece: str) -> None:
    with pytest.raises(LogRegexError) as refused:
        compiled(f"(a){piece}", "loss")
    assert "is no regular expression of RE2" in str(refused.value)
    looks = piece[:3] in ("(?=", "(?!", "(?<")
    assert ("no look-around and no back-references" in str(refused.value)) == (
        looks or piece == r"\1"
    )


def test_no_pattern_is_kept_once_it_was_used() -> None:
    """The module would keep 128 of them, each with as much memory as it may take."""
    for number in range(50):
        compiled(rf"loss{number}=(\d)", "loss")
    assert re2._Regexp._make.cache_info().currsize == 0


ATOMS = st.sampled_from(["a", ".", r"\pL", r"\d", "[^x]", "(?i)k", "^", "$", "b?", "=", "\\", "é"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.tuples(inner, inner).map("|".join),
        inner.map(lambda p: f"(?:{p})*"),
        inner.map(lambda p: f"({p})"),
        inner.map(lambda p: f"(?P<loss>{p})"),
        st.tuples(inner, st.integers(0, 1000)).map(lambda pair: f"(?:{pair[0]}){{0,{pair[1]}}}"),
    ),
    max_leaves=12,
)
LOGS = st.one_of(
    st.binary(max_size=3000),
    st.lists(st.sampled_from([b"a" * 500, b"\r", b"\n", b"\xff", b"loss=1", b"=", b"\x00"])).map(
        b"".join
    ),
)


@settings(deadline=None)
@given(LOGS, PATTERNS)
def test_every_log_and_expression_has_an_answer_within_the_budget(
    tail: bytes, pattern: str
) -> None:
    clock = Clock(CPU_SECONDS / 20)
    reading = search(tail, pattern, LOSS, clock)
    assert clock.looks <= 22
    assert (reading.state is TrialState.SUCCEEDED) == (reading.value is not None)
    assert reading.message or reading.value is not None


async def test_the_search_is_in_a_thread_that_gives_way_and_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where: list[tuple[str, int]] = []
    given_way: list[int] = []
    monkeypatch.setattr(
        module.os, "setpriority", lambda kind, thread, value: given_way.append(value)
    )
    real = module.read_log

    def noted(*arguments: object) -> object:
        where.append((threading.current_thread().name, threading.get_ident()))
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "read_log", noted)
    thread = SearchThread()
    found = await asyncio.gather(*(thread(b"loss=%d" % n, r"loss=(\d)", LOSS) for n in range(3)))
    thread.close()
    assert [reading.value for reading, _ in found] == [0.0, 1.0, 2.0]
    assert all(0 < took < CPU_SECONDS for _, took in found)
    assert {name for name, _ in where} == {"logs"}
    assert threading.get_ident() not in {ident for _, ident in where}
    assert given_way == [10]


@pytest.mark.long(always=True)
async def test_the_event_loop_turns_while_a_line_is_searched() -> None:
    """RE2 lets go of the interpreter's lock: that is why a thread is enough."""
    thread = SearchThread()
    searching = asyncio.ensure_future(thread(b"a" * 4096, DEAR, LOSS))
    turns = 0
    while not searching.done():
        turns += 1
        await asyncio.sleep(0)
    thread.close()
    assert turns > 10 and "no line" in searching.result()[0].message
