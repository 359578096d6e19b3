"""The port to which running programs report, and nothing else.

``POST /reports/SWEEP/TRIAL/TOKEN``: how a trial goes. ``POST /reports/checkpoints/POD/TOKEN``: that
a pod has saved its work. A port of its own, because every tenant's pods must reach it and none of
them the admin port. Bodies are small and must come quickly; whose address is refused is refused
before its body. A stand-by says 503 with a time to try again: it cannot write, and knows nothing of
what other trials have reported. Addresses hold tokens and are logged nowhere.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from aiohttp import web

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.runtime.answer import Answer
from gpu_scheduler.runtime.operator import Operator
from gpu_scheduler.sweeps.core.reports import MAX_REPORT_BYTES

_BODY_SECONDS = 5.0
_STANDBY = Answer(503, {"error": "this replica does not lead; try again"}, retry_after_seconds=2)

_Judges = tuple[Callable[[], Answer | None], Callable[[bytes], Awaitable[Answer]]]
"""Who says before a body comes whether it is taken, and who takes it."""


def app(leading: Callable[[], Operator | None]) -> web.Application:
    """The application; ``leading`` gives who leads here, None while this replica does not."""

    async def report(
        judges: Callable[[Operator, Mapping[str, str]], _Judges], request: web.Request
    ) -> web.Response:
        leader = leading()
        if leader is None:
            return _response(_STANDBY)
        refusal, take = judges(leader, request.match_info)
        refused = refusal()
        if refused is not None:
            return _response(refused)
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                body = await request.read()
        except TimeoutError:
            return _response(Answer(408, {"error": f"no body within {_BODY_SECONDS:g} s"}))
        except (ConnectionError, web.RequestPayloadError, RuntimeError):
            if request.transport is not None and request.content.exception() is None:
                raise  # they are still there, so the mistake is ours
            return _response(Answer(400, {"error": "the body broke off"}))
        except web.HTTPRequestEntityTooLarge:
            sentence = f"a report has at most {MAX_REPORT_BYTES:,} bytes"
            return _response(Answer(413, {"error": sentence}))
        return _response(await take(body))

    made = web.Application(client_max_size=MAX_REPORT_BYTES)
    made.add_routes(
        [
            web.post("/reports/checkpoints/{pod}/{token}", partial(report, _of_pod)),
            web.post("/reports/{sweep}/{trial:[0-9]{1,6}}/{token}", partial(report, _of_trial)),
        ]
    )
    return made


def _of_trial(leader: Operator, where: Mapping[str, str]) -> _Judges:
    address = where["sweep"], int(where["trial"]), where["token"]
    return partial(leader.reports.refusal, *address), partial(leader.reports.take, *address)


def _of_pod(leader: Operator, where: Mapping[str, str]) -> _Judges:
    address = PodUID(where["pod"]), where["token"]
    return partial(leader.checkpoints.refusal, *address), partial(leader.checkpoints.take, *address)


def _response(answer: Answer) -> web.Response:
    headers = {}
    if answer.retry_after_seconds:
        headers["Retry-After"] = str(answer.retry_after_seconds)
    return web.json_response(answer.body, status=answer.status, headers=headers)
