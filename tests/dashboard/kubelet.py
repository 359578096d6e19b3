"""A kubelet for `kubectl logs` alone: every container of fake nodes has written the same.

The API server takes any certificate of a kubelet where it was given no CA for them, so its own
will do.
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from tests.api.caller import Caller
from tests.dashboard.served import Answering, served

from cluster import Running

NODES = "/api/v1/nodes"


@contextmanager
def kubelet_with(running: Running, admin: Caller, log: str) -> Iterator[None]:
    """All nodes send there who asks for logs."""

    class Handler(Answering):
        def do_GET(self) -> None:
            body = log.encode() if self.path.startswith("/containerLogs/") else b""
            self.answer(200 if body else 404, body)

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(running.folder / "apiserver.crt", running.folder / "apiserver.key")
    with served(Handler, tls) as port:
        at = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }
        for node in admin.get(NODES).body["items"]:
            path = f"{NODES}/{node['metadata']['name']}/status"
            assert admin.patch(path, {"status": at}).ok
        yield
