"""The object by which the API server is asked whose a token is."""

from collections.abc import Sequence
from typing import Any

import msgspec


class User(msgspec.Struct, frozen=True):
    """Whose it is."""

    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class TokenStatus(msgspec.Struct, frozen=True):
    """What was found; ``audiences``: of those asked for, whom it is meant for."""

    authenticated: bool = False
    audiences: list[str] = []
    user: User = User()


class TokenReview(msgspec.Struct, frozen=True):
    """The answer."""

    status: TokenStatus = TokenStatus()


def question(token: str, audiences: Sequence[str] = ()) -> dict[str, Any]:
    """The body that asks; without audiences: whether it is meant for the API server itself."""
    spec: dict[str, Any] = {"token": token}
    if audiences:
        spec["audiences"] = [*audiences]
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
