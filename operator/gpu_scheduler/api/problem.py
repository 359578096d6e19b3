"""One thing that is wrong with an object, as its user is told.

Made by ``validate`` and its parts, and by whoever judges pod templates.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """A field's path, and a sentence that says what would be right."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"
