"""Tokens as the kubelet gets them for a pod, and as the cluster's own key could sign others.

Fake nodes have no kubelet, so a test asks by the TokenRequest API, as a kubelet does.
"""

import json
import subprocess
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path
from typing import Any

from tests.api.caller import Caller

from gpu_scheduler.api.names import REPORT_AUDIENCE, TOKEN_VOLUME

Json = dict[str, Any]


def projected(admin: Caller, pod: Json) -> str:
    """What the file holds that a kubelet projects into this pod."""
    (volume,) = [v for v in pod["spec"]["volumes"] if v["name"] == TOKEN_VOLUME]
    (source,) = volume["projected"]["sources"]
    asked = source["serviceAccountToken"]
    return token(admin, pod, asked["audience"], seconds=asked["expirationSeconds"])


def token(
    admin: Caller,
    pod: Json,
    audience: str = REPORT_AUDIENCE,
    *,
    bound: bool = True,
    seconds: int = 600,
) -> str:
    """A token of the pod's ServiceAccount; ``bound``: to the pod."""
    meta, account = pod["metadata"], pod["spec"]["serviceAccountName"]
    spec: Json = {"audiences": [audience] if audience else [], "expirationSeconds": seconds}
    if bound:
        named = {"name": meta["name"], "uid": meta["uid"]}
        spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Pod", **named}
    answer = admin.create(
        f"/api/v1/namespaces/{meta['namespace']}/serviceaccounts/{account}/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
    )
    assert answer.ok, answer.message
    return str(answer.body["status"]["token"])


def changed(given: str, **claims: Any) -> str:
    """The token with other claims, and the signature that it had."""
    head, payload, signature = given.split(".")
    return f"{head}.{_text(_claims(payload) | claims)}.{signature}"


def signed(given: str, folder: Path, **claims: Any) -> str:
    """The token with other claims, signed by the key of the cluster that is in this folder."""
    body = f"{_text({'alg': 'ES256'})}.{_text(_claims(given.split('.')[1]) | claims)}"
    key = str(folder / "service-account.key")
    sign = ["openssl", "dgst", "-sha256", "-sign", key]
    der = subprocess.run(sign, input=body.encode(), capture_output=True, check=True).stdout
    numbers, rest = [], der[2:]  # a sequence of two integers, each with a tag and a length
    while rest:
        numbers.append(int.from_bytes(rest[2 : 2 + rest[1]]).to_bytes(32))
        rest = rest[2 + rest[1] :]
    return f"{body}.{_base64(b''.join(numbers))}"


def _claims(payload: str) -> Json:
    found: Json = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return found


def _text(value: Json) -> str:
    return _base64(json.dumps(value).encode())


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")
