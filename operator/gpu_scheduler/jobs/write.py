"""One write to the API server, as a value.

Everything in this package that changes the cluster answers a ``Write``; the runtime sends it. So
what is written can be tested without a server, and the leader can decide at the last instant
whether it may still write at all. Made by ``binding``, ``gate`` and ``evict``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from gpu_scheduler.kube.media_types import JSON

if TYPE_CHECKING:
    from gpu_scheduler.kube.client import Client


@dataclass(frozen=True, slots=True)
class Write:
    """A request: ``body`` is JSON still to be encoded, ``path`` is relative to the server."""

    method: str
    path: str
    body: Mapping[str, Any]
    content_type: str = JSON


async def send(client: "Client", write: Write, *, retry: bool = True) -> bytes:
    """Write it; the answer. Raises what the client raises; ``retry``: as for its requests."""
    return await client.request(
        write.method,
        write.path,
        body=orjson.dumps(write.body),
        content_type=write.content_type,
        retry=retry,
    )


class NotPlaceableError(ValueError):
    """The pod cannot be placed as it is; the message says what is in the way."""
