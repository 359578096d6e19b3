"""A token that the API server takes for some more seconds, and then finds expired.

A TokenRequest gives none for less than ten minutes. So one of those is signed anew, by the key of
the cluster, with another end.
"""

import json
import subprocess
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode

from cluster import Running


def expiring(running: Running, token: str, seconds: float) -> str:
    """The same account's, for so long."""
    head, claims, _ = token.split(".")
    body = json.loads(urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    body["exp"] = int(time.time() + seconds)
    signed = f"{head}.{_encoded(json.dumps(body).encode())}"
    key = str(running.folder / "service-account.key")
    sign = ("openssl", "dgst", "-sha256", "-sign", key)  # ES256, as the header says
    made = subprocess.run(sign, input=signed.encode(), capture_output=True, check=True)
    return f"{signed}.{_encoded(_raw(made.stdout))}"


def _raw(signature: bytes) -> bytes:
    """Two numbers of 32 bytes, of the DER that openssl writes: a sequence of two integers."""
    found, at = b"", 2
    for _ in range(2):
        size = signature[at + 1]
        found += signature[at + 2 : at + 2 + size].lstrip(b"\0").rjust(32, b"\0")
        at += 2 + size
    return found


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
