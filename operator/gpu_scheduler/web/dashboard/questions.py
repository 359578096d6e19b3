"""From an address to a page and what is asked of it: the table of pages, as patterns.

``/api/v1/queue?project=a`` asks for the same as the stream of ``/queue?project=a``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import parse_qsl, unquote

from gpu_scheduler.dashboard.pages import BadQuestionError, Page, RequestParameters
from gpu_scheduler.web.dashboard.answers import RefusedAnswer

MOST_CHARS = 2000  # of an address
_MOST_PARAMETERS = 16
_PART = re.compile(r"\{(\w+)\}")
NAMESPACE = "namespace"  # the part, or the parameter, that names one


@dataclass(frozen=True)
class Question:
    """A page, and what is asked of it."""

    page: Page
    asked: RequestParameters

    @cached_property
    def key(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Equal for equal questions."""
        return self.page.path, tuple(sorted(self.asked.items()))

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Those that it is about."""
        found = self.asked.get(NAMESPACE, "")
        return (found,) if found else ()


class Questions:
    """All that can be asked."""

    def __init__(self, pages: Sequence[Page]) -> None:
        """Paths as aiohttp writes them: ``{name}`` is one part of an address."""
        self._pages = [(_pattern(page.path), page) for page in pages]

    def read(self, address: str) -> Question:
        """Of an address below /api/v1, with its parameters; it may begin with a slash.

        Raises:
            Refusal: there is no such page.
            BadQuestionError: the parameters are none.
        """
        if len(address) > MOST_CHARS:
            raise RefusedAnswer(414, f"an address has at most {MOST_CHARS} characters")
        path, _, query = address.removeprefix("/").partition("?")
        for pattern, page in self._pages:
            if match := pattern.match(path):
                parts = {name: unquote(part) for name, part in match.groupdict().items()}
                return Question(page, _with(parts, query))
        raise RefusedAnswer(404, "there is no such page")


def _pattern(path: str) -> re.Pattern[str]:
    pieces = _PART.split(path.removeprefix("/"))  # text, name, text, name, ...
    texts = [f"(?P<{p}>[^/]+)" if n % 2 else re.escape(p) for n, p in enumerate(pieces)]
    return re.compile(rf"{''.join(texts)}\Z")


def _with(parts: dict[str, str], query: str) -> RequestParameters:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        raise BadQuestionError(f"an address has at most {_MOST_PARAMETERS} parameters") from None
    for name, value in pairs:
        if name in parts:
            raise BadQuestionError(f"{name[:40]}: is there twice")
        parts[name] = value
    return parts
