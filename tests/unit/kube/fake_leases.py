"""A store for one Lease with an API server's rules, delays, and ways to fail."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.unit.kube.virtual_time import VirtualTime

from gpu_scheduler.kube import errors

Lease = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Trip:
    """How one request fares.

    ``there`` and ``back`` are seconds; an answer later than the request's timeout is as good as
    lost, but the effect stays.
    """

    there: float = 0.0
    back: float = 0.0
    arrives: bool = True


class LeaseStore:
    """What all candidates share."""

    def __init__(self) -> None:
        self.lease: Lease | None = None
        self.version = 0
        self.history: list[tuple[str, str]] = []

    def get(self) -> Lease:
        if self.lease is None:
            raise errors.NotFound(404, "NotFound", "no lease")
        return copy.deepcopy(self.lease)

    def create(self, body: Lease) -> Lease:
        if self.lease is not None:
            raise errors.Conflict(409, "AlreadyExists", "there")
        return self._store(body)

    def replace(self, body: Lease) -> Lease:
        if self.lease is None:  # of an object that is gone, its uid is what does not match
            raise errors.Conflict(409, "Conflict", "Precondition failed: UID in precondition")
        current = self.get()
        if body["metadata"]["resourceVersion"] != current["metadata"]["resourceVersion"]:
            raise errors.Conflict(409, "Conflict", "stale")
        return self._store(body)

    def _store(self, body: Lease) -> Lease:
        self.version += 1
        self.lease = copy.deepcopy(body)
        self.lease["metadata"]["resourceVersion"] = str(self.version)
        self.history.append((body["spec"]["holderIdentity"], body["spec"]["renewTime"]))
        return copy.deepcopy(self.lease)


class LeaseClient:
    """One candidate's way to the store; ``trip`` decides how each request fares."""

    def __init__(
        self, store: LeaseStore, time: VirtualTime, trip: Callable[[], Trip] = Trip
    ) -> None:
        self.store = store
        self.time = time
        self.trip = trip
        self.options: list[dict[str, Any]] = []

    async def get(self, path: str, *, timeout_seconds: float) -> Lease:
        return await self._travel(self.store.get, timeout_seconds)

    async def create(self, path: str, body: Any, type: type[Lease], **options: Any) -> Lease:
        self.options.append(options)
        return await self._travel(lambda: self.store.create(body), options["timeout_seconds"])

    async def replace(self, path: str, body: Any, type: type[Lease], **options: Any) -> Lease:
        self.options.append(options)
        return await self._travel(lambda: self.store.replace(body), options["timeout_seconds"])

    async def _travel(self, act: Callable[[], Lease], timeout_seconds: float) -> Lease:
        trip = self.trip()
        # The server was told the timeout: it does not act on a request later than that.
        if not trip.arrives or trip.there > timeout_seconds:
            await self.time.sleep(timeout_seconds)
            raise errors.Unavailable(message="lost on the way")
        await self.time.sleep(trip.there)
        try:
            answer = act()
        except errors.ApiError as error:
            refused: errors.ApiError | None = error
        else:
            refused = None
        if trip.there + trip.back > timeout_seconds:
            await self.time.sleep(timeout_seconds - trip.there)
            raise errors.Unavailable(message="answer lost", maybe_applied=True)
        await self.time.sleep(trip.back)
        if refused is not None:
            raise refused
        return answer
