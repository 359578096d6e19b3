"""A kubelet for `kubectl logs` alone: every container of fake nodes has written the same.

The API server takes any certificate of a kubelet where it was given no CA for them, so its own
will do.
"""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.api.caller import Caller

from cluster import Running

NODES = "/api/v1/nodes"


@contextmanager
def kubelet_with(running: Running, admin: Caller, log: str) -> Iterator[None]:
    """All nodes send there who asks for logs."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = log.encode() if self.path.startswith("/containerLogs/") else b""
            self.send_response(200 if body else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(running.folder / "apiserver.crt", running.folder / "apiserver.key")
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    at = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": server.server_port}},
    }
    try:
        for node in admin.get(NODES).body["items"]:
            path = f"{NODES}/{node['metadata']['name']}/status"
            assert admin.patch(path, {"status": at}).ok
        yield
    finally:
        server.shutdown()
        server.server_close()
