"""The API server's part in writing GPUNode and Lease, without HTTP."""

from collections import deque
from typing import Any

from gpu_scheduler.kube import errors

Obj = dict[str, Any]


class FakeApi:
    """Keeps what was written, with versions; ``fail`` holds errors for the next calls."""

    def __init__(self) -> None:
        self.objects: dict[str, Obj] = {}
        self.writes: list[tuple[str, str, Obj]] = []
        self.fail: deque[errors.ApiError] = deque()
        self.version = 100

    async def create(
        self, path: str, body: Any, type: type[Obj], *, timeout_seconds: float = 10.0
    ) -> Obj:
        self._maybe_fail()
        place = f"{path}/{body['metadata']['name']}"
        if place in self.objects:
            raise errors.Conflict(409, "AlreadyExists", place)
        return self._keep("POST", place, {**body, "status": {}}, body)

    async def replace(
        self,
        path: str,
        body: Any,
        type: type[Obj],
        *,
        dry_run: bool = False,
        timeout_seconds: float = 10.0,
    ) -> Obj:
        self._maybe_fail()
        place = path.removesuffix("/status")
        if place not in self.objects:
            raise errors.NotFound(404, "NotFound", path)
        known = self.objects[place]
        if body["metadata"]["resourceVersion"] != known["metadata"]["resourceVersion"]:
            raise errors.Conflict(409, "Conflict", path)
        if dry_run:
            return known
        keep = ("status",) if place == path else ("metadata", "spec")
        return self._keep("PUT", place, body | {k: known[k] for k in keep if k in known}, body)

    def write(self, place: str, **parts: Any) -> str:
        """Somebody else changes an object; its version."""
        known = self.objects.get(place, {"metadata": {"name": place.rsplit("/", 1)[1]}})
        self._keep("", place, known | parts, {})
        return str(self.version)

    def statuses(self) -> list[Obj]:
        return [body["status"] for method, _, body in self.writes if "status" in body]

    def methods(self) -> list[str]:
        return [method for method, _, _ in self.writes if method]

    def _keep(self, method: str, place: str, whole: Obj, body: Obj) -> Obj:
        self.version += 1
        meta = {**whole["metadata"], "resourceVersion": str(self.version), "uid": "uid"}
        self.objects[place] = {**whole, "metadata": meta}
        self.writes.append((method, place, body))
        return self.objects[place]

    def _maybe_fail(self) -> None:
        if self.fail:
            raise self.fail.popleft()
