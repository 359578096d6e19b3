"""Options of a command as one value: a function with an argument for each would have a dozen."""

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def gathered(name: str, kind: Any) -> Callable[[F], F]:
    """Give a command those of its options that are fields of a dataclass as one, of this name."""
    names = [field.name for field in fields(kind)]

    def decorate(command: F) -> F:
        @wraps(command)
        def run(**given: Any) -> None:
            value = kind(**{each: given.pop(each) for each in names})
            command(**{name: value}, **given)

        return run  # type: ignore[return-value]

    return decorate
