"""Waiting on the real node: for a state, as long as that takes on a busy machine.

The limit only ends a test that hangs: no test may depend on how long a thing took.
"""

import json
from collections.abc import Callable
from typing import Any

from tests.api import tenant
from tests.api.tenant import Allocation, Json, Tenant

LIMIT_SECONDS = 300.0
TIMEOUT = f"--timeout={LIMIT_SECONDS:.0f}s"  # for kubectl and helm


def until(condition: Callable[[], Any], what: str | Callable[[], str]) -> Any:
    """``tenant.until``, with the limit of this tier."""
    return tenant.until(condition, what, LIMIT_SECONDS)


class NodeTenant(Tenant):
    """A tenant whose pods really run, and who waits for them as long as it takes."""

    __slots__ = ()

    def delete(self) -> None:
        """Remove everything and wait until its GPUs are free again; nobody says a long goodbye."""
        self.admin.send("DELETE", self._jobs)
        self.admin.send("DELETE", f"/apis/apps/v1/namespaces/{self.name}/deployments")
        # Before who made them deletes them: the kubelet keeps to the first time that it was given.
        self.admin.send("DELETE", f"{self._pods}?gracePeriodSeconds=1")
        until(lambda: not self.pods(), f"the pods of {self.name} are gone")
        Tenant.delete(self)

    def wait_event(
        self, job: str, reason: str, seconds: float = LIMIT_SECONDS, words: str = ""
    ) -> Json:
        """Until the job has an Event of this reason that has these words; one of them."""
        return Tenant.wait_event(self, job, reason, seconds, words)

    def wait_reason(self, name: str, reason: str, seconds: float = LIMIT_SECONDS) -> str:
        """Until the job has this reason; its message."""
        return Tenant.wait_reason(self, name, reason, seconds)

    def wait_phase(self, name: str, phase: str, seconds: float = LIMIT_SECONDS) -> Json:
        """Until the job has this phase, or one that it does not leave any more; its status."""

        def status() -> Json | None:
            found = self.status(name)
            ended = found.get("phase") in ("Succeeded", "Failed")
            return found if ended or found.get("phase") == phase else None

        found: Json = until(status, lambda: f"{name} is {phase}; {json.dumps(self.status(name))}")
        assert found["phase"] == phase, f"{name} is not {phase}; {json.dumps(found)}"
        return found

    def wait_placed(
        self, job: str, pods: int = 1, seconds: float = LIMIT_SECONDS
    ) -> list[Allocation]:
        """Until so many pods of the job are placed; their allocations."""
        return Tenant.wait_placed(self, job, pods, seconds)
