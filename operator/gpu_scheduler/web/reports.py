"""The port to which running programs report, and nothing else.

``POST /reports/trials/POD``: how a trial goes. ``POST /reports/checkpoints/POD``: that a pod has
saved its work. POD is the uid, and a token in the header Authorization shows that it is this pod
that speaks. A port of its own, because every tenant's pods must reach it and none of them the admin
port. Bodies are small and must come quickly; who is refused is refused before a body. A stand-by
says 503 with a time to try again: it cannot write, and knows nothing of what other trials have
reported. Tokens are logged nowhere.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from aiohttp import web

from gpu_scheduler.api.search import MAX_REPORT_BYTES
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.runtime.operator import Operator
from gpu_scheduler.runtime.reports.answer import Answer, refusal
from gpu_scheduler.runtime.reports.report_tokens import ReportJudge, Sender

_BODY_SECONDS = 5.0
_STANDBY = refusal(503, "this replica does not lead; try again", 2)
_OF_BEFORE = refusal(
    410,
    "addresses with a token in them are of an earlier version of the GPU scheduler, which placed "
    "this pod: nothing that it reports is taken any more",
)


def app(leading: Callable[[], Operator | None]) -> web.Application:
    """The application; ``leading`` gives who leads here, None while this replica does not."""

    async def report(
        judge_of: Callable[[Operator], ReportJudge], request: web.Request
    ) -> web.Response:
        leader = leading()
        if leader is None:
            return _response(_STANDBY)
        judge, pod = judge_of(leader), PodUID(request.match_info["pod"])
        sender = Sender(request.headers.get("Authorization", ""), request.remote or "")
        refused = await judge.refusal(pod, sender)
        if refused is not None:
            return _response(refused)
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                body = await request.read()
        except TimeoutError:
            return _response(refusal(408, f"no body within {_BODY_SECONDS:g} s"))
        except (ConnectionError, web.RequestPayloadError, RuntimeError):
            if request.transport is not None and request.content.exception() is None:
                raise  # they are still there, so the mistake is ours
            return _response(refusal(400, "the body broke off"))
        except web.HTTPRequestEntityTooLarge:
            return _response(refusal(413, f"a report has at most {MAX_REPORT_BYTES:,} bytes"))
        return _response(await judge.take(pod, body))

    async def of_before(request: web.Request) -> web.Response:
        return _response(_OF_BEFORE)

    made = web.Application(client_max_size=MAX_REPORT_BYTES)
    made.add_routes(
        [
            web.post(
                "/reports/trials/{pod}", partial(report, lambda leader: leader.sweeping.reports)
            ),
            web.post(
                "/reports/checkpoints/{pod}",
                partial(report, lambda leader: leader.reports.checkpoints),
            ),
            web.post("/reports/{sweep}/{trial}/{token}", of_before),
        ]
    )
    return made


def _response(answer: Answer) -> web.Response:
    headers = {"WWW-Authenticate": "Bearer"} if answer.status == 401 else {}
    if answer.retry_after_seconds:
        headers["Retry-After"] = str(answer.retry_after_seconds)
    return web.json_response(answer.body, status=answer.status, headers=headers)
