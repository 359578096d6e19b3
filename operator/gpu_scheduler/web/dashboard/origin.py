"""Whether a request comes from the dashboard's own page, and not from another site in the browser.

A proxy in front may turn its cookie into the header Authorization, so the header alone does not
show that our page sent a request. ``Sec-Fetch-Site`` is the browser's word, which no page can set;
where it is missing (plain http, programs), ``Origin`` has to name the host that was asked for.
``X-Forwarded-Host`` is believed for that: a page of another origin cannot set it without asking
first (CORS), which is never allowed, and whoever is no browser could set ``Host`` as well.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from gpu_scheduler.web.dashboard.answers import JSON, RefusedAnswer

_FOREIGN = RefusedAnswer(403, "this request comes from another site than the dashboard's")
_OWN = ("same-origin", "none")  # none: typed into the address bar


def check_read(headers: Mapping[str, str]) -> None:
    """Of what changes nothing.

    Raises:
        Refusal: another site asks.
    """
    if headers.get("Sec-Fetch-Site", "none") not in _OWN:
        raise _FOREIGN


def check_change(headers: Mapping[str, str], content_type: str) -> None:
    """Of a POST.

    Raises:
        Refusal: another site asks, or a form.
    """
    if content_type != JSON:
        raise RefusedAnswer(415, f"send Content-Type: {JSON}")
    if headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        raise _FOREIGN
    asked = {headers.get("Host", ""), headers.get("X-Forwarded-Host", "")} - {""}
    origin = urlsplit(headers.get("Origin", ""))
    if origin.scheme not in ("http", "https") or _plain(origin.netloc, origin.scheme) not in {
        _plain(host, origin.scheme) for host in asked
    }:
        raise _FOREIGN


def _plain(host: str, scheme: str) -> str:
    """Without the port that a scheme has by itself: browsers leave it out, proxies may not."""
    return host.strip().lower().removesuffix(":443" if scheme == "https" else ":80")
