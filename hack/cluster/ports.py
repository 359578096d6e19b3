"""Which TCP ports a cluster uses: a block of its own, so that clusters run side by side.

Blocks lie below the range from which Linux takes ports for outgoing connections, so a
client cannot take a port between the choice and its use.
"""

import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass

from cluster.errors import ClusterError

BLOCK = 10
FIRST = 21_000
LAST = 30_000


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of one cluster, all on 127.0.0.1 (the API server's too, but for a real node)."""

    etcd: int
    etcd_peer: int
    api_server: int
    controller_manager: int
    scheduler: int


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` of this machine now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True


def block(first: int) -> Ports:
    """The ports of the block that starts at `first`."""
    return Ports(*range(first, first + 5))


def choose(taken: Collection[int], free: Callable[[int], bool] = is_free) -> int:
    """The first port of a block of which no port is in use.

    Args:
        taken: first ports of blocks that other clusters hold, running or not.
        free: tells whether a port can be listened on.

    Raises:
        ClusterError: every block is in use.
    """
    for first in range(FIRST, LAST, BLOCK):
        if first not in taken and all(free(port) for port in range(first, first + BLOCK)):
            return first
    raise ClusterError(
        f"no {BLOCK} free ports between {FIRST} and {LAST}: stop clusters with "
        "`python -m cluster down --all`"
    )
