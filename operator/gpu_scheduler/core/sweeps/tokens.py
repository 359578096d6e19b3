"""The token with which a trial reports: it fits that trial of that sweep and no other.

Computed from a secret of the installation, so nothing is stored and every replica can check it.
Called when a trial is placed, and for every report that comes in.
"""

import hmac
from hashlib import blake2b

_PERSON = b"sweep-report"


def token(secret: bytes, sweep_uid: str, trial: int) -> str:
    """The token of a trial, 32 hexadecimal digits.

    Raises:
        ValueError: a secret of less than 16 bytes, which could be guessed, or of more than 64.
    """
    if not 16 <= len(secret) <= 64:
        raise ValueError("a secret has 16 to 64 bytes")
    text = f"{sweep_uid}/{trial}".encode()
    return blake2b(text, digest_size=16, key=secret, person=_PERSON).hexdigest()


def fits(secret: bytes, sweep_uid: str, trial: int, given: str) -> bool:
    """Whether ``given`` is the token of that trial; takes as long for every wrong one."""
    return hmac.compare_digest(
        token(secret, sweep_uid, trial).encode(), given.encode(errors="replace")
    )
