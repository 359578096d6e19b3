"""Whose the machine's real node is: one file, one lock.

The lock is held while a node starts or stops; the file stays as long as the node does. A node
whose cluster no longer answers (crash, kill -9) is free to be taken over, after cleaning up.
"""

import json
import ssl
import urllib.error
import urllib.request
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

from cluster.errors import ClusterError
from cluster.files import write_whole
from cluster.locks import exclusive
from cluster.node_layout import RUN
from cluster.progress import say

# Not below RUN: that folder is removed with the node, and a removed lock file locks nobody out.
LOCK = Path("/run/gpu-scheduler-real-node.lock")
OWNER = RUN / "owner.json"
# Where nobody listens that is known at once: this is for one who is on a machine that stands still.
_ANSWER_SECONDS = 30.0


class RealNodeTaken(ClusterError):
    """Another cluster that is alive has the machine's real node."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The cluster that a real node belongs to, and what is needed to clean up after it."""

    cluster: str
    folder: str  # of the node
    server: str
    ca_file: str

    def is_alive(self) -> bool:
        """Whether its own API server answers; its CA tells it from a successor on that port."""
        try:
            trust = ssl.create_default_context(cafile=self.ca_file)
            trust.check_hostname = False  # whose certificate it is matters, not its names
            opener = urllib.request.build_opener(
                urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust)
            )
            opener.open(f"{self.server}/readyz", timeout=_ANSWER_SECONDS).close()
        except urllib.error.HTTPError as error:
            error.close()
            return True
        except (OSError, ssl.SSLError):
            return False
        return True


def lock() -> AbstractContextManager[None]:
    """Hold the machine's lock; waits while another process starts or stops a real node."""
    return exclusive(LOCK, on_wait=lambda: say("waiting for another start or stop of a real node"))


def current() -> Owner | None:
    """The owner on record."""
    try:
        return Owner(**json.loads(OWNER.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def record(owner: Owner) -> None:
    """Put an owner on record."""
    OWNER.parent.mkdir(parents=True, exist_ok=True)
    write_whole(OWNER, json.dumps(asdict(owner)))
