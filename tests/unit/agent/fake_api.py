"""The API server's part in writing GPUNode and Lease, without HTTP."""

from collections import deque
from typing import Any

from gpu_scheduler.kube import errors

Obj = dict[str, Any]


class FakeApi:
    """Keeps what was applied; ``fail`` holds errors for the next calls."""

    def __init__(self) -> None:
        self.objects: dict[str, Obj] = {"/api/v1/nodes/n1": {"metadata": {"uid": "node-uid"}}}
        self.applied: list[tuple[str, Obj]] = []
        self.fail: deque[errors.ApiError] = deque()

    async def get(self, path: str) -> Obj:
        self._maybe_fail()
        if path not in self.objects:
            raise errors.NotFound(404, "NotFound", path)
        return self.objects[path]

    async def apply(
        self, path: str, body: Any, field_manager: str, *, timeout_seconds: float = 10.0
    ) -> None:
        assert field_manager == "gpu-scheduler-agent"
        self._maybe_fail()
        if path.endswith("/status") and path.removesuffix("/status") not in self.objects:
            raise errors.NotFound(404, "NotFound", path)
        self.applied.append((path, body))
        self.objects[path.removesuffix("/status")] = body

    def statuses(self) -> list[Obj]:
        return [body["status"] for path, body in self.applied if path.endswith("/status")]

    def _maybe_fail(self) -> None:
        if self.fail:
            raise self.fail.popleft()
