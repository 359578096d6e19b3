"""An API server that knows only what it was given: GET of objects and lists."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.unit.cli.server import Request, kubeconfig, listening

Body = dict[str, Any]


@dataclass
class Objects:
    """What it knows: lists of bodies by path, a body by its own, and paths that it refuses.

    A list at ``/api/v1/pods`` answers for each namespace and each name, too.
    """

    lists: dict[str, list[Body]] = field(default_factory=dict)
    forbidden: set[str] = field(default_factory=set)
    created: list[tuple[str, Body]] = field(default_factory=list)

    def answer(self, path: str, selector: str) -> tuple[int, Body]:
        if path in self.forbidden:
            return 403, _status(403, "Forbidden", f"you cannot list {path}")
        for known, bodies in self.lists.items():
            root, _, plural = known.rpartition("/")
            if path == known:
                return 200, {"items": [b for b in bodies if _selected(b, selector)]}
            prefix = f"{root}/namespaces/"
            if path.startswith(prefix):
                namespace, _, rest = path.removeprefix(prefix).partition("/")
                there = [b for b in bodies if b["metadata"].get("namespace") == namespace]
                if rest == plural:
                    return 200, {"items": [b for b in there if _selected(b, selector)]}
                if rest.startswith(f"{plural}/"):
                    return _one(there, rest.removeprefix(f"{plural}/"))
            if path.startswith(f"{known}/"):
                return _one(bodies, path.removeprefix(f"{known}/"))
        return 404, _status(404, "NotFound", "the server could not find the requested resource")


def _one(bodies: Sequence[Body], name: str) -> tuple[int, Body]:
    found = next((b for b in bodies if b["metadata"]["name"] == name), None)
    if found is None:
        details = {"name": name}
        return 404, _status(404, "NotFound", f'"{name}" not found') | {"details": details}
    return 200, found


def _selected(body: Mapping[str, Any], selector: str) -> bool:
    labels = body["metadata"].get("labels") or {}
    for part in filter(None, selector.split(",")):
        key, equals, value = part.partition("=")
        if key not in labels or (equals and labels[key] != value):
            return False
    return True


def _status(code: int, reason: str, message: str) -> Body:
    return {"kind": "Status", "code": code, "reason": reason, "message": message}


@contextmanager
def serving(objects: Objects, folder: Path) -> Iterator[str]:
    """A server of these, and the kubeconfig that leads there."""

    def answer(request: Request) -> tuple[int, Body]:
        if request.method == "POST":
            objects.created.append((request.path, request.body))
            return 201, request.body
        return objects.answer(request.path, request.params.get("labelSelector", ""))

    with listening(answer) as port:
        yield kubeconfig(port, folder)
