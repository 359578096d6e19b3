"""``resultFrom.logRegex``: what it finds on a line of a log.

RE2 takes time in proportion to the line whatever the pattern, so nobody can hold up the operator
with one (Python's own expressions can take exponential time). A pattern without named groups has
exactly one group, the objective; with names, each names a metric.
"""

from collections.abc import Callable

LINE_CHARS = 4096  # of a line that are looked at, from its beginning

Find = Callable[[str], dict[str, str] | None]


class LogRegexError(ValueError):
    """The pattern cannot be used; the message says why."""


def compiled(pattern: str, metric: str) -> Find:
    """A function from a line to the texts of metrics by name, None where nothing matches.

    Args:
        pattern: in RE2's syntax.
        metric: the objective, for a pattern without names.

    Raises:
        LogRegexError: no such pattern, or its groups do not say the metric.
    """
    import re2  # only those who search logs need it

    options = re2.Options()
    options.log_errors = False
    try:
        expression = re2.compile(pattern, options)
    except re2.error as error:
        why = error.args[0] if error.args else "unreadable"
        text = why.decode(errors="replace") if isinstance(why, bytes) else str(why)
        raise LogRegexError(f"is no regular expression of RE2: {text}") from None
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
