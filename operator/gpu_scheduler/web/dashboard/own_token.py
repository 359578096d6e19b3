"""What is done by the user's own rights: their token goes to the API server with each request.

Suspend and resume are merge patches of ``spec.suspend``, logs are read: nothing else. The client
has no credentials of ours, so where the user may not, nobody does. Tokens are kept nowhere.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine
from typing import Any

import orjson

from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.kube import errors, paths
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.media_types import MERGE_PATCH
from gpu_scheduler.limits.rate_limiter import RateLimiter
from gpu_scheduler.limits.slots import Slots
from gpu_scheduler.web.dashboard.access import Reader
from gpu_scheduler.web.dashboard.answers import RefusedAnswer
from gpu_scheduler.web.dashboard.identities import Identity

MOST_LINES, MOST_BYTES = 1000, 1 << 20
AT_ONCE, AT_ONCE_OF_ONE = 10, 4
PER_SECOND, BURST = 1.0, 30.0  # of one user
WAIT_SECONDS = 15.0

_NAME = re.compile(r"\A[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?\Z", re.ASCII)
_BUSY = RefusedAnswer(429, "too many requests of yours; try again", 5)
_LATE = RefusedAnswer(503, "the API server takes too long; try again", 2)
_AWAY = RefusedAnswer(503, "the API server does not answer; try again", 2)


class OwnToken:
    """Sends requests for users."""

    def __init__(self, client: Client, clock: Callable[[], float]) -> None:
        """``client``: without credentials; ``clock``: monotonic seconds."""
        connection = client.connection
        assert not (connection.token or connection.token_file), "ours would be sent"
        assert not (connection.certificate_pem or connection.certificate_file), "ours would be sent"
        self._client = client
        self._clock = clock
        self._slots = Slots(lambda: AT_ONCE, AT_ONCE_OF_ONE)
        self._often: RateLimiter[Identity] = RateLimiter(PER_SECOND, BURST)

    async def set_suspended(
        self, reader: Reader, namespace: str, name: str, suspended: bool
    ) -> None:
        """Suspend a GPUJob, or let it go on.

        Raises:
            Refusal: as the API server says.
        """
        path = paths.of_group(GROUP, VERSION, "gpujobs", *_checked(namespace, name))
        body = orjson.dumps({"spec": {"suspend": suspended}})
        sent = self._client.request(
            "PATCH", path, body=body, content_type=MERGE_PATCH, token=reader.token, retry=False
        )
        await self._answered(reader, sent)

    async def logs(
        self, reader: Reader, namespace: str, pod: str, params: dict[str, str | int | bool]
    ) -> bytes:
        """The end of a log.

        Raises:
            Refusal: as the API server says.
        """
        path = paths.core("pods", *_checked(namespace, pod), "log")
        bounded = {**params, "limitBytes": MOST_BYTES}
        sent = self._client.request(
            "GET", path, params=bounded, accept="*/*", token=reader.token, retry=False
        )
        return (await self._answered(reader, sent))[-MOST_BYTES:]

    async def _answered(self, reader: Reader, sent: Coroutine[Any, Any, bytes]) -> bytes:
        try:
            if not self._often.spend(reader.who, self._clock()):
                raise _BUSY
            async with asyncio.timeout(WAIT_SECONDS), self._slots.of(str(hash(reader.who))):
                return await sent
        except TimeoutError:
            raise _LATE from None
        except errors.Unavailable:
            raise _AWAY from None
        except errors.ApiError as error:
            status = error.status if error.status >= 400 else 502
            raise RefusedAnswer(status, error.message or "the API server says no") from None
        finally:
            sent.close()  # where its turn never came


def _checked(namespace: str, name: str) -> tuple[str, str]:
    """Both, so that each is one part of a path and no more."""
    for each in (namespace, name):
        if not _NAME.match(each):
            raise RefusedAnswer(400, "no object of Kubernetes can be called so")
    return namespace, name
