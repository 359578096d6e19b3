"""``resultFrom.logRegex``: what it finds on a line of a log.

RE2 takes time in proportion to the line whatever the pattern (Python's own expressions can take
exponential time), and to the number of its instructions, which counted repetitions multiply: both
are bounded here, so no line takes long. What all lines of a log, and all logs of a namespace, may
take is bounded where logs are read. A pattern without named groups has exactly one group, the
objective; with names, each names a metric. No pattern is kept once it is not used any more.

What a group finds is taken as the whole word of which it is a part: of ``loss=0,031`` nobody shall
read 0. A line that says what the pattern wants but for the number (``loss=nan``, ``loss=``) counts
as one that matches: an older number would pass for the result otherwise.
"""

import re
from collections.abc import Callable
from typing import Any

LINE_CHARS = 4096  # of a line that are looked at, from its beginning
MOST_INSTRUCTIONS = 4000  # of RE2 for a pattern; it may look at each of them for each character
MOST_GROUPS = 20
# Of a pattern that is in use. It bounds the time to read a pattern, too: 17 ms for the worst known.
_MEMORY_BYTES = 512 << 10

_NOT_IN_RE2 = re.compile(r"invalid perl operator: \(\?(?:[=!]|<[=!])|invalid escape sequence: \\\d")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_GOES_ON = re.compile(r"(?:\w|[.,](?=\w)|(?<=[eE])[-+](?=\d))*")
_BEGAN = re.compile(r"(?:[\d._]|,(?=\d))*(?:[-+](?!\w))?")  # backwards: else it takes squares
_NONE = r"((?i:[-+]?(?:nan|inf|infinity|none|null|n/a|\pN\S*)?))(?:[^\w.]|$)"
_SAYS_SOMETHING = re.compile(r"[A-Za-z]{2}")
_SIMPLER = "write smaller counted repetitions such as {0,30}, and fewer inside each other"

Find = Callable[[str], dict[str, str] | None]


class LogRegexError(ValueError):
    """The pattern cannot be used; the message says why."""


def compiled(pattern: str, metric: str) -> Find:
    """A function from a line to the texts of metrics by name, None where nothing matches.

    Args:
        pattern: in RE2's syntax.
        metric: the objective, for a pattern without names.

    Raises:
        LogRegexError: no such pattern, one that is too dear, or its groups do not say the metric.
    """
    import re2  # only those who search logs need it

    try:
        expression = _re2(pattern)
    except re2.error as error:
        why = error.args[0] if error.args else "unreadable"
        text = why.decode(errors="replace") if isinstance(why, bytes) else str(why)
        if "too large" in text:
            raise LogRegexError(f"is too large for RE2; {_SIMPLER}") from None
        if _NOT_IN_RE2.match(text):
            text = (
                f"{text}; it has no look-around and no back-references, so write out what is there"
            )
        raise LogRegexError(f"is no regular expression of RE2: {text}") from None
    if expression.programsize > MOST_INSTRUCTIONS:
        raise LogRegexError(
            f"comes to {expression.programsize:,} instructions of RE2; at most "
            f"{MOST_INSTRUCTIONS:,} are possible: {_SIMPLER}"
        )
    if expression.groups > MOST_GROUPS:
        raise LogRegexError(
            f"has {expression.groups} groups; at most {MOST_GROUPS} are possible: write (?:…) "
            "where nothing is to be read"
        )
    names: dict[str, int] = expression.groupindex
    if not names and expression.groups != 1:
        raise LogRegexError(
            "needs exactly one group around the number, such as val_loss=([-+.0-9eE]+)"
        )
    if names and metric not in names:
        raise LogRegexError(f"has no group named {metric}: write (?P<{metric}>…)")

    without = _without_number(pattern, metric if names else "")
    if without and expression.programsize + without.programsize > MOST_INSTRUCTIONS:
        without = None  # both look at a line

    def find(line: str) -> dict[str, str] | None:
        line = _COLOUR.sub("", line[:LINE_CHARS])
        match = expression.search(line)
        if match is None:
            none = without and without.search(line)
            return {metric: none[none.re.groups]} if none else None
        if not names:
            return {metric: _word(line, match, 1)}
        return {name: _word(line, match, n) for name, n in names.items() if match[n] is not None}

    return find


def _re2(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES
    found = re2.compile(pattern, options)
    re2.purge()  # it would keep 128 of them, with all that they take
    return found


def _word(line: str, match: Any, group: int) -> str:
    """What a group found, with what goes on beyond the pattern on either side."""
    begin, end = match.span(group)
    if begin == end:
        return ""
    if end == match.end():
        end = _GOES_ON.match(line, end).end()  # type: ignore[union-attr]
    if begin == match.start():
        begin -= _BEGAN.match(line[:begin][::-1]).end()  # type: ignore[union-attr]
    return line[begin:end]


def _without_number(pattern: str, name: str) -> Any:
    """Finds what stands before the number, and in its last group what is there in its place.

    None: nothing stands before it that says whose it is.
    """
    import re2

    group = re.escape(f"(?P<{name}>") if name else r"\((?!\?)"
    parts = re.finditer(rf"\\.|\[\]?(?:\\.|[^\]])*\]|({group})", pattern, re.DOTALL)
    before = pattern[: next((part.start() for part in parts if part[1]), 0)]
    if not _SAYS_SOMETHING.search(before):
        return None
    try:
        return _re2(before + _NONE)
    except re2.error:  # the group stands in another one
        return None
