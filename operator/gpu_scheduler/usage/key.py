"""The key with which a leader asks an agent: drawn in memory, and of each agent another one.

An agent is told its digest in its orders, so neither who reads these nor who has another node's key
can ask. Nothing is stored, and no right is needed for it.
"""

import hashlib
import hmac
from secrets import token_bytes

_HEADER = "Bearer "


class UsageKeys:
    """All keys of a leader."""

    def __init__(self) -> None:
        """Draw the secret."""
        self._secret = token_bytes(32)

    def header(self, agent_uid: str) -> str:
        """What the header Authorization says to the agent whose pod has this UID."""
        return f"{_HEADER}{self._key(agent_uid)}"

    def digest(self, agent_uid: str) -> str:
        """What that agent is told."""
        return digest(self._key(agent_uid))

    def _key(self, agent_uid: str) -> str:
        return hmac.new(self._secret, agent_uid.encode(), hashlib.sha256).hexdigest()


def digest(key: str) -> str:
    """Of a key, in hex."""
    return hashlib.sha256(key.encode()).hexdigest()


def may_ask(header: str, told: str) -> bool:
    """Whether a header Authorization shows the key whose digest an agent was told."""
    if not told or not header.startswith(_HEADER):
        return False
    return hmac.compare_digest(digest(header.removeprefix(_HEADER)), told)
