"""Tokens of pods, and an API server that says whose they are."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from tests.unit.runtime.fake_client import FakeClient, Sent
from tests.unit.runtime.virtual_loop import clock

from gpu_scheduler.api.names import REPORT_AUDIENCE
from gpu_scheduler.runtime.reports.report_tokens import ReportTokens, Sender
from gpu_scheduler.runtime.reports.token_reviews import TokenReviews

SIGNED, FORGED = "c2lnbmVk", "Zm9yZ2Vk"
HERE = "10.0.0.1"


def token(
    pod: str, audience: Any = REPORT_AUDIENCE, signature: str = SIGNED, at: float = 0.0, **more: Any
) -> str:
    """As the API server makes it; ``signature`` FORGED: somebody else does."""
    bound = {"namespace": "team-a", "pod": {"name": "a", "uid": pod}}
    audiences = [audience] if isinstance(audience, str) else audience
    claims = {"aud": audiences, "exp": at + 600, "iat": at, "kubernetes.io": bound, **more}
    payload = urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJSUzI1NiJ9.{payload}.{signature}"


def sender(text: str, address: str = HERE) -> Sender:
    """Who brings this token."""
    return Sender(f"Bearer {text}", address)


def of(pod: str, address: str = HERE) -> Sender:
    """The pod itself."""
    return sender(token(pod), address)


def review(sent: Sent) -> dict[str, Any]:
    """What the API server says."""
    spec = sent.body["spec"]
    claims = claims_of(spec["token"])
    if not spec["token"].endswith(SIGNED) or not set(spec["audiences"]) & set(claims["aud"]):
        return {"status": {"error": "invalid bearer token"}}
    extra = {"authentication.kubernetes.io/pod-uid": [claims["kubernetes.io"]["pod"]["uid"]]}
    user = {"username": "system:serviceaccount:team-a:default", "extra": extra}
    return {"status": {"authenticated": True, "audiences": spec["audiences"], "user": user}}


def claims_of(text: str) -> Any:
    """What stands in a token."""
    payload = text.split(".")[1]
    return json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def judges(reply: Any = review) -> tuple[ReportTokens, FakeClient]:
    """Who judges tokens, and the API server that it asks."""
    client = FakeClient(reply)
    asked: Any = client
    return ReportTokens(TokenReviews(asked, clock=clock), clock=clock, now=now), client


def now() -> float:
    """The time of day, which begins with a test's loop."""
    return clock() - 1000.0
