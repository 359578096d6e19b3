"""Where a pod reports: an address with a token in it that this pod alone is given.

The token is drawn when the pod is placed and stands in that pod's annotations, as everything does
that a restarted operator has to know: there is no secret that could be lost or shared. A pod that
takes another's place gets a token of its own. Called at placement and for every report.
"""

import hmac
import secrets
from collections.abc import Callable

TOKEN_BYTES = 16


def address(
    base: str, *where: str | int, draw: Callable[[int], bytes] = secrets.token_bytes
) -> str:
    """A new address under ``base``; empty, like ``base``, where nothing takes reports."""
    if not base:
        return ""
    return "/".join((base.rstrip("/"), *map(str, where), draw(TOKEN_BYTES).hex()))


def token_of(address: str) -> str:
    """The token in an address; empty when there is none."""
    token = address.rpartition("/")[2]
    return token if len(token) == 2 * TOKEN_BYTES else ""


def fits(expected: str, given: str) -> bool:
    """Whether ``given`` is the token; takes as long for every wrong one. None fits an empty one."""
    same = hmac.compare_digest(expected.encode(), given.encode(errors="replace"))
    return same and bool(expected)
