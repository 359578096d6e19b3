"""Waiting on the real node: for a state, as long as that takes on a busy machine.

The limit only ends a test that hangs: no test may depend on how long a thing took.
"""

import json
import time
from collections.abc import Callable
from typing import Any

from tests.api.tenant import Allocation, Json, Tenant

LIMIT_SECONDS = 300.0
TIMEOUT = f"--timeout={LIMIT_SECONDS:.0f}s"  # for kubectl and helm
_LEAST_PAUSE, _PART, _MOST_PAUSE = 0.05, 0.05, 0.5


def until(condition: Callable[[], Any], what: str | Callable[[], str]) -> Any:
    """The first true value of `condition`; fails with `what` and its last value.

    A field that an object does not have yet is no true value either. Looks less often the longer
    it waits, for a look takes time from what it waits for.
    """
    began = time.monotonic()
    while True:
        try:
            value = condition()
        except (KeyError, IndexError) as missing:
            value, last = None, f"nothing at {missing!r}"
        else:
            last = repr(value)
        if value:
            return value
        waited = time.monotonic() - began
        if waited > LIMIT_SECONDS:
            text = what if isinstance(what, str) else what()
            raise AssertionError(f"not within {waited:.0f} s: {text} (last: {last})")
        time.sleep(min(_MOST_PAUSE, max(_LEAST_PAUSE, _PART * waited)))


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

    def wait_event(self, job: str, reason: str, seconds: float = LIMIT_SECONDS) -> Json:
        """Until the job has an Event of this reason; the last one."""
        return Tenant.wait_event(self, job, reason, seconds)

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
