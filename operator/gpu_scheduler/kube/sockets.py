"""Sockets that notice within a minute that their peer is gone without a word.

A machine that lost its power, or a balancer that forgot a connection, closes nothing: what is sent
meets silence, and every request on a kept connection would wait for its whole limit, one connection
after the other. A watch behind a proxy that answers for a server that is gone is beyond this; it
has ``inactivity_seconds``.
"""

import socket

from aiohttp import AddrInfoType

# Seconds of idleness before the first probe and between probes, probes; milliseconds in which what
# was sent must be acknowledged. tcp(7).
_PEER_GONE = {
    "TCP_KEEPIDLE": 20,
    "TCP_KEEPINTVL": 10,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 30_000,
}


def watched_socket(address: AddrInfoType) -> socket.socket:
    """A socket for an address, as aiohttp's connector asks for it."""
    family, kind, protocol, *_ = address
    opened = socket.socket(family, kind, protocol)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _PEER_GONE.items():
        option = getattr(socket, name, None)  # other systems have other names
        if option is not None:
            opened.setsockopt(socket.IPPROTO_TCP, option, value)
    return opened
