"""Leader election on a ``coordination.k8s.io/v1`` Lease.

Invariants, all on clocks that only go forward, while the machine is suspended too: we count as
leader from the *start* of our last successful renewal; a candidate takes a held lease only after it
saw the same record for its whole duration, counted from the *end* of its first look; and every
write carries the resourceVersion that was looked at, so of two candidates one gets a 409. Hence
nobody's ``remaining`` is above 0 while another holds the lease, as long as clocks run at the same
rate. Who deletes the lease ends nobody's leadership: the holder makes it again, as client-go does.
A candidate looks at least once a second, so a lease that was given back has a new holder within 1.2
s. Give the elector a client of its own, so that renewals never queue behind other requests. Needs
get, create and update.
"""

import logging
import math
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, Unpack

from gpu_scheduler.kube import errors, paths
from gpu_scheduler.kube.backoff import Timing
from gpu_scheduler.kube.failures import LastWords
from gpu_scheduler.kube.times import micro_timestamp
from gpu_scheduler.kube.transport import RequestOptions
from gpu_scheduler.kube.unexpected import unexpected

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0  # at most between a candidate's looks: what an orderly end costs
_RELEASE_TRIES = 3  # a renewal of ours that was cut off may land in between
_Lease = dict[str, Any]


def boot_seconds() -> float:
    """Seconds since the machine was booted, those that it was suspended for included.

    ``time.monotonic`` leaves those out on Linux (clock_gettime(2)): a leader that slept through its
    lease would wake up with an open fence. Elsewhere it is the best there is.
    """
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class LeaseClient(Protocol):
    """The part of the client that the election needs."""

    async def get(self, path: str, *, timeout_seconds: float) -> _Lease:
        """Read the Lease."""

    async def create(
        self, path: str, body: object, type: type[_Lease], **options: Unpack[RequestOptions]
    ) -> _Lease:
        """Create it."""

    async def replace(
        self, path: str, body: object, type: type[_Lease], **options: Unpack[RequestOptions]
    ) -> _Lease:
        """Update it, if metadata.resourceVersion is current."""


class _Taken(Exception):
    """Somebody else holds the lease."""


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """How long a Lease is held, and how often it is renewed.

    Attributes:
        lease_seconds: How long others must leave the lease alone after a renewal. In the object
            this is a whole number of at least 1, so it is rounded up there; it only makes others
            wait longer.
        renew_deadline_seconds: Without a renewal for this long, leadership is given up.
        retry_seconds: Time between renewals; between looks at somebody else's lease it is no more
            than a second.

    Raises:
        ValueError: they are not retry < renew deadline < lease.
    """

    lease_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_seconds: float = 2.0

    def __post_init__(self) -> None:
        """Check them."""
        if not 0 < self.retry_seconds < self.renew_deadline_seconds < self.lease_seconds:
            raise ValueError(
                f"lease: retry ({self.retry_seconds:g} s) must be below the renew deadline "
                f"({self.renew_deadline_seconds:g} s), and that below the lease "
                f"({self.lease_seconds:g} s)"
            )

    @property
    def write_seconds(self) -> float:
        """So long after the last renewal a write must have ended.

        Half-way between the renew deadline and the lease's end: the other half is for what the
        server still does after we hung up, and for clocks that drift.
        """
        return (self.renew_deadline_seconds + self.lease_seconds) / 2

    @property
    def attempt_seconds(self) -> float:
        """Limit of one renewal."""
        return self.renew_deadline_seconds / 3


DEFAULT_TIMES = LeaseTimes()
"""As of client-go."""

_BOOT_TIMING = Timing(clock=boot_seconds)


@dataclass(frozen=True, slots=True)
class _Sighting:
    """A record as a candidate saw it, and until when it must be left alone."""

    record: tuple[object, ...]
    expires_at: float


class Elector:
    """A candidate for, and then the holder of, one Lease.

    Args:
        client: A client without a fence, best one of its own.
        namespace: Of the Lease.
        name: Of the Lease; it is created when absent.
        identity: Of this process and no other, not even of an earlier one in the same pod: add
            something random to the pod's name.
        times: How long it is held, and how often renewed.
        timing: Its clock also goes while the machine is suspended.

    Raises:
        ValueError: no identity.
    """

    def __init__(
        self,
        client: LeaseClient,
        namespace: str,
        name: str,
        identity: str,
        times: LeaseTimes = DEFAULT_TIMES,
        timing: Timing = _BOOT_TIMING,
    ) -> None:
        if not identity:
            raise ValueError("lease: identity is empty, which means a released lease")
        self.identity = identity
        self._client = client
        self._namespace = namespace
        self._name = name
        self._path = paths.lease(namespace, name)
        self._times = times
        self._clock = timing.clock
        self._sleep = timing.sleep
        self._random = timing.random
        self._renewed_at: float | None = None  # start of the last successful renewal
        self._claimed = False  # a write of ours may have put our identity into the lease
        self._lease: _Lease = {}  # as of our last write
        self._sighting: _Sighting | None = None
        self._failure = LastWords(timing.clock)

    def remaining(self) -> float:
        """Seconds within which a write may start and must have ended; 0: none may start.

        A write may start until the renew deadline and then has until half-way to the lease's end.
        """
        if self._renewed_at is None:
            return 0.0
        age = self._clock() - self._renewed_at
        return self._times.write_seconds - age if age < self._times.renew_deadline_seconds else 0.0

    async def acquire(self) -> None:
        """Wait until we are the leader, through any failure of the API server."""
        while True:
            try:
                if await self._try_to_acquire():
                    logger.info("%s holds the lease %s", self.identity, self._path)
                    return
            except errors.ApiError as error:
                self._say(error)
            except Exception:
                unexpected("lease", self._path)
            delay = min(self._times.retry_seconds, _LOOK_SECONDS) * (1.0 + 0.2 * self._random())
            if self._sighting is not None:
                until_free = self._sighting.expires_at - self._clock()
                if until_free > 0:
                    delay = min(delay, until_free)
            await self._sleep(delay)

    async def hold(self) -> str:
        """Renew until leadership is lost; the caller then ends the process.

        Returns:
            Why it was lost.
        """
        why, failure = "never held", ""
        while self._renewed_at is not None:
            deadline = self._renewed_at + self._times.renew_deadline_seconds
            why = f"not renewed within {self._times.renew_deadline_seconds:g} s{failure}"
            await self._sleep(min(self._times.retry_seconds, max(0.0, deadline - self._clock())))
            if self._clock() >= deadline:
                break
            try:
                await self._renew(deadline - self._clock())
                failure = ""
            except _Taken as taken:
                why = f"it is now held by {taken}"
                break
            except errors.ApiError as error:
                self._say(error)
                failure = failure or f"; it began with: {error}"
            except Exception as error:  # such as of an answer that is none: the next may be better
                unexpected("lease", self._path)
                failure = failure or f"; it began with: {error!r}"
        self._renewed_at = None
        return f"{self.identity} lost the lease {self._path}: {why}"

    async def release(self) -> None:
        """Give the lease up, so that the next leader need not wait.

        Call it when ``hold`` has been cancelled and no write is in flight any more that could land
        after the next leader has looked. If the server does not answer, the lease runs out by
        itself.
        """
        self._renewed_at = None
        if not self._claimed:
            return
        for left in reversed(range(_RELEASE_TRIES)):
            try:
                lease = await self._read()
                if lease["spec"].get("holderIdentity") == self.identity:
                    await self._write(lease, {**lease["spec"], "holderIdentity": ""})
                    logger.info("%s released the lease %s", self.identity, self._path)
                return
            except errors.NotFound:
                return
            except errors.Conflict as error:
                if not left:
                    logger.warning("lease: not released: %s", error)
            except Exception as error:
                logger.warning("lease: not released: %s", error)
                return

    def _say(self, error: errors.ApiError) -> None:
        if self._failure.news(error):
            logger.warning("lease: %s", error)

    async def _try_to_acquire(self) -> bool:
        try:
            lease = await self._read()
        except errors.NotFound:
            if self._sighting is not None and self._clock() < self._sighting.expires_at:
                return False  # deleted under a holder who may not have noticed yet
            return await self._claim(None)
        spec = lease["spec"]
        holder = spec.get("holderIdentity")
        if not holder or (holder == self.identity and self._claimed):
            return await self._claim(lease)
        record = tuple(
            spec.get(name)
            for name in ("holderIdentity", "renewTime", "acquireTime", "leaseTransitions")
        )
        now = self._clock()
        if self._sighting is None or self._sighting.record != record:
            duration = float(spec.get("leaseDurationSeconds") or self._times.lease_seconds)
            self._sighting = _Sighting(record, now + duration)
            return False
        return now >= self._sighting.expires_at and await self._claim(lease)

    async def _claim(self, lease: _Lease | None) -> bool:
        """Write ourselves into a lease that is free; False when somebody was faster."""
        started = self._clock()
        now = _micro_time()
        spec = {"holderIdentity": self.identity, "acquireTime": now, "leaseTransitions": 0}
        self._claimed = True
        try:
            if lease is None:
                self._lease = await self._create(spec)
            else:
                old = lease["spec"]
                changed = old.get("holderIdentity") != self.identity
                spec["leaseTransitions"] = int(old.get("leaseTransitions") or 0) + changed
                self._lease = await self._write(lease, {**old, **spec})
        except errors.Conflict:
            return False
        self._sighting = None
        self._renewed_at = started
        return True

    async def _renew(self, seconds: float) -> None:
        started = self._clock()
        try:
            self._lease = await self._write(self._lease, self._lease["spec"], seconds)
        except (errors.Conflict, errors.NotFound):
            # An answer of ours got lost, somebody else wrote, or the lease was deleted, which the
            # API server calls a conflict, too: look who holds it.
            try:
                lease = await self._read()
            except errors.NotFound:
                logger.warning("lease: %s is gone and is made again", self._path)
                started = self._clock()
                self._lease = await self._create(self._lease["spec"], seconds)
            else:
                holder = lease["spec"].get("holderIdentity")
                if holder != self.identity:
                    raise _Taken(holder or "nobody") from None
                started = self._clock()
                self._lease = await self._write(lease, lease["spec"], seconds)
        self._renewed_at = started

    async def _read(self) -> _Lease:
        lease = await self._client.get(self._path, timeout_seconds=self._times.attempt_seconds)
        lease.setdefault("spec", {})
        return lease

    async def _create(self, spec: _Lease, seconds: float = math.inf) -> _Lease:
        return await self._client.create(
            paths.lease(self._namespace),
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": self._name, "namespace": self._namespace},
                "spec": self._timed(spec),
            },
            dict,
            **self._options(min(seconds, self._times.attempt_seconds)),
        )

    async def _write(self, lease: _Lease, spec: _Lease, seconds: float = math.inf) -> _Lease:
        return await self._client.replace(
            self._path,
            {**lease, "spec": self._timed(spec)},
            dict,
            **self._options(min(seconds, self._times.attempt_seconds)),
        )

    def _timed(self, spec: _Lease) -> _Lease:
        seconds = max(1, math.ceil(self._times.lease_seconds))
        return {**spec, "leaseDurationSeconds": seconds, "renewTime": _micro_time()}

    def _options(self, seconds: float) -> dict[str, Any]:
        # One attempt at a time: the loops here do the retrying, and know when to stop.
        return {"timeout_seconds": max(seconds, 0.001), "retry": False, "fenced": False}


def _micro_time() -> str:
    """The wall clock as a MicroTime; only shown to people, never compared."""
    return micro_timestamp(datetime.now(UTC))
