"""Objects of the API as JSON gives them, which another version may have written otherwise.

What is not there, or is of another kind than it should be, reads as empty.
"""

from collections.abc import Mapping
from typing import Any

Body = Mapping[str, Any]


def part(body: Body, *path: str) -> Body:
    """What is at a path, if it is an object; else an empty one."""
    found: Any = body
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def listed(body: Body, *path: str) -> list[Any]:
    """What is at a path, if it is a list; else an empty one."""
    found = part(body, *path[:-1]).get(path[-1])
    return list(found) if isinstance(found, list) else []


def text(body: Body, *path: str) -> str:
    """What is at a path, if it is a text; else an empty one."""
    found = part(body, *path[:-1]).get(path[-1])
    return found if isinstance(found, str) else ""


def name_of(body: Body) -> str:
    """metadata.name."""
    return text(body, "metadata", "name")


def labels_of(body: Body) -> dict[str, str]:
    """metadata.labels."""
    return {str(k): str(v) for k, v in part(body, "metadata", "labels").items()}
