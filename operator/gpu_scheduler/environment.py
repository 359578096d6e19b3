"""Settings out of the environment variables of one prefix, checked by a model.

A value that cannot be used ends the start with a sentence that names the variable. Called for the
settings of the operator and of the agent.
"""

from collections.abc import Container, Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

S = TypeVar("S", bound=BaseModel)


class SettingsError(ValueError):
    """A setting cannot be used; the message names it."""


def read(
    model: type[S],
    prefix: str,
    environ: Mapping[str, str],
    may_be_empty: Container[str] = (),
    **defaults: str,
) -> S:
    """Settings from ``environ``; an empty variable counts as absent, but those that may be empty.

    Raises:
        SettingsError: an unknown variable with the prefix, or a value that cannot be used.
    """
    given = {
        key.removeprefix(prefix).lower(): value
        for key, value in environ.items()
        if key.startswith(prefix) and (value != "" or key in may_be_empty)
    }
    try:
        return model.model_validate(defaults | given)
    except ValidationError as error:
        first = error.errors()[0]
        raise SettingsError(f"{prefix}{first['loc'][0]}".upper() + f": {first['msg']}") from None
