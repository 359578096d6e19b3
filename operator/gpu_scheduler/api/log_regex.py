"""``resultFrom.logRegex``: what it finds on a line of a log.

RE2 takes time in proportion to the line whatever the pattern (Python's own expressions can take
exponential time), and to the number of its instructions, which counted repetitions multiply: both
are bounded here, so no line takes long. What all lines of a log, and all logs of a namespace, may
take is bounded where logs are read. A pattern without named groups has exactly one group, the
objective; with names, each names a metric. No pattern is kept once it is not used any more.
"""

import re
from collections.abc import Callable

LINE_CHARS = 4096  # of a line that are looked at, from its beginning
MOST_INSTRUCTIONS = 4000  # of RE2 for a pattern; it may look at each of them for each character
MOST_GROUPS = 20
# Of a pattern that is in use. It bounds the time to read a pattern, too: 17 ms for the worst known.
_MEMORY_BYTES = 512 << 10

_NOT_IN_RE2 = re.compile(r"invalid perl operator: \(\?(?:[=!]|<[=!])|invalid escape sequence: \\\d")
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

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES
    try:
        expression = re2.compile(pattern, options)
        re2.purge()  # it would keep 128 of them, with all that they take
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
    names: list[str] = list(expression.groupindex)
    if not names and expression.groups != 1:
        raise LogRegexError(
            "needs exactly one group around the number, such as val_loss=([-+.0-9eE]+)"
        )
    if names and metric not in names:
        raise LogRegexError(f"has no group named {metric}: write (?P<{metric}>…)")

    def find(line: str) -> dict[str, str] | None:
        match = expression.search(line[:LINE_CHARS])
        if match is None:
            return None
        if not names:
            return {metric: match[1] or ""}
        return {name: match[name] for name in names if match[name] is not None}

    return find
