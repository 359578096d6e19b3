"""How the dashboard answers: JSON, a ``Problem`` where there is no answer, strict headers always.

No answer may be framed, read by another origin, or kept by a proxy. There is no cookie.
"""

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from gpu_scheduler.dashboard.pages import BadQuestionError
from gpu_scheduler.dashboard.rows import View
from gpu_scheduler.dashboard.views import ProblemView
from gpu_scheduler.kube.unexpected import unexpected

JSON = "application/json"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class RefusedAnswer(Exception):
    """Why there is no answer: an HTTP status, a sentence, after how long to ask again (0: no)."""

    def __init__(self, status: int, sentence: str, retry_after_seconds: int = 0) -> None:
        super().__init__(status, sentence)
        self.status = status
        self.sentence = sentence
        self.retry_after_seconds = retry_after_seconds


def json(view: View, status: int = 200) -> web.Response:
    """A view that nobody shares."""
    return web.Response(body=msgspec.json.encode(view), status=status, content_type=JSON)


def problem(refusal: RefusedAnswer) -> web.Response:
    """Why not, for people."""
    answer = json(ProblemView(error=refusal.sentence), refusal.status)
    if refusal.status == 401:
        answer.headers["WWW-Authenticate"] = "Bearer"
    if refusal.retry_after_seconds:
        answer.headers["Retry-After"] = str(refusal.retry_after_seconds)
    return answer


def told(handler: Handler) -> Handler:
    """A handler whose refusals, and defects, are answered in words; a defect is logged."""

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except RefusedAnswer as refusal:
            return problem(refusal)
        except BadQuestionError as error:
            return problem(RefusedAnswer(400, str(error)))
        except web.HTTPRequestEntityTooLarge:
            return problem(RefusedAnswer(413, "the body of the request is too large"))
        except (web.HTTPException, ConnectionError):
            raise
        except Exception:
            if request.transport is None or request.transport.is_closing():
                raise  # they went away, which some event loops say by odd errors
            resource = request.match_info.route.resource
            unexpected("dashboard", resource.canonical if resource is not None else "a request")
            return problem(
                RefusedAnswer(500, "this is a defect of the GPU scheduler; its log says more")
            )

    return answer


async def strict(request: web.Request, answer: web.StreamResponse) -> None:
    """Put the headers on whatever is answered; for ``on_response_prepare``."""
    answer.headers.update(HEADERS)
    answer.headers.setdefault("Cache-Control", "no-store")
    answer.headers["Server"] = "gpu-scheduler"
