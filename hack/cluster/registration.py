"""Creates fake nodes in the API server, many at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import cast

from cluster.api_client import ApiClient, Object
from cluster.nodes import complete

_CONNECTIONS = 8


def register(nodes: Sequence[Object], connect: Callable[[], ApiClient]) -> list[str]:
    """Creates those of `nodes` that are not there yet and returns the names of all.

    Raises:
        ClusterError: an object is not a usable Node, or the server refused one.
    """
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    completed = [complete(node, now=now) for node in nodes]

    def create(share: list[Object]) -> None:
        with connect() as client:
            for node in share:
                client.create("/api/v1/nodes", node)

    shares = [completed[first::_CONNECTIONS] for first in range(_CONNECTIONS)]
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        list(pool.map(create, filter(None, shares)))
    return [cast(dict[str, str], node["metadata"])["name"] for node in completed]
