"""The port to which trials report: ``POST /reports/SWEEP/TRIAL/TOKEN``, and nothing else.

A port of its own, because every tenant's pods must reach it and none of them the admin port. Bodies
are small and must come quickly; whose address is refused is refused before its body. A stand-by
says 503 with a time to try again: it knows nothing of what other trials have reported. Addresses
hold tokens and are logged nowhere.
"""

import asyncio
from collections.abc import Callable

from aiohttp import web

from gpu_scheduler.sweeps.core.reports import MAX_REPORT_BYTES
from gpu_scheduler.sweeps.runtime.reports import Answer, Reports

_BODY_SECONDS = 5.0
_STANDBY = Answer(503, {"error": "this replica does not lead; try again"}, retry_after_seconds=2)


def app(leading: Callable[[], Reports | None]) -> web.Application:
    """The application; ``leading`` gives who judges reports, None while this replica does not."""

    async def report(request: web.Request) -> web.Response:
        reports = leading()
        if reports is None:
            return _response(_STANDBY)
        where = request.match_info
        sweep, trial, token = where["sweep"], int(where["trial"]), where["token"]
        refused = reports.refusal(sweep, trial, token)
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
        return _response(await reports.take(sweep, trial, token, body))

    made = web.Application(client_max_size=MAX_REPORT_BYTES)
    made.add_routes([web.post("/reports/{sweep}/{trial:[0-9]{1,6}}/{token}", report)])
    return made


def _response(answer: Answer) -> web.Response:
    headers = {}
    if answer.retry_after_seconds:
        headers["Retry-After"] = str(answer.retry_after_seconds)
    return web.json_response(answer.body, status=answer.status, headers=headers)
