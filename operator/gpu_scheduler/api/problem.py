"""One thing that is wrong with an object, as its user is told.

Made by ``validate`` and its parts, and by whoever judges pod templates. However long what somebody
wrote is, no more of it is told, or kept, than shows what is meant.
"""

import re
from dataclasses import dataclass

from gpu_scheduler.core.model.wording import clip
from gpu_scheduler.limits.bounded import QUOTED_CHARS

_MOST_FIELD_CHARS = 200
_MOST_CHARS = 1000
_LONG = re.compile(rf"\S{{{QUOTED_CHARS + 1},}}")


@dataclass(frozen=True, slots=True)
class Problem:
    """A field's path, and a sentence that says what would be right."""

    field: str
    message: str

    def __post_init__(self) -> None:
        """Cut what is too long."""
        if len(self.field) > _MOST_FIELD_CHARS:
            object.__setattr__(self, "field", f"{self.field[: _MOST_FIELD_CHARS - 1]}…")
        if len(self.message) > QUOTED_CHARS:
            object.__setattr__(self, "message", clip(_LONG.sub(_cut, self.message), _MOST_CHARS))

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def _cut(word: re.Match[str]) -> str:
    return f"{word[0][: QUOTED_CHARS - 1]}…"
