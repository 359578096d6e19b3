"""A watch whose place in history is gone gets 410 and begins anew, and nothing is lost."""

import base64
import json
import urllib.request
from typing import Any

import pytest
from tests.api.site import Site, site_with, team_on
from tests.api.tenant import until

pytestmark = pytest.mark.usefixtures()


def etcd(site: Site, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Ask the cluster's etcd, through its JSON gateway."""
    address = f"http://127.0.0.1:{site.running.state.ports.etcd}/v3/{path}"
    request = urllib.request.Request(address, json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return dict(json.load(answer))


def compact(site: Site) -> int:
    """Forget all history; the revision of now."""
    key = base64.b64encode(b"/").decode()
    now = etcd(site, "kv/range", {"key": key, "limit": "1"})["header"]["revision"]
    etcd(site, "kv/compaction", {"revision": now, "physical": True})
    return int(now)
