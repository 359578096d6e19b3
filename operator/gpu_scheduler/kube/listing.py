"""Whole collections, page by page: all at once might never get here in time.

For those who look once, or now and then; who follows a collection uses a reflector. Called by the
resync of our own kinds and by the commands.
"""

from typing import Any

from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.transport import Param

_PAGE_SECONDS = 30.0


async def list_all(
    client: Client, path: str, *, page_size: int = 500, selector: str = ""
) -> list[dict[str, Any]]:
    """All objects of a collection, as JSON.

    Args:
        client: Where from.
        path: The collection.
        page_size: Objects in one answer.
        selector: Of labels; empty: all.

    Raises:
        ApiError: a page could not be had.
    """
    found: list[dict[str, Any]] = []
    params: dict[str, Param] = {"limit": page_size}
    if selector:
        params["labelSelector"] = selector
    while True:
        page = await client.get(path, None, timeout_seconds=_PAGE_SECONDS, **params)
        found += page["items"]
        rest = (page.get("metadata") or {}).get("continue")
        if not rest:
            return found
        params["continue"] = rest
