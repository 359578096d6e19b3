"""What the demo has in place of cluster DNS: the one name that its pods ask for.

Trials report to a Service, and the local cluster has neither DNS nor kube-proxy. So the name leads
straight to the leader's pod. A program of the cluster, which ends with it: `python -m demo.names
FOLDER`.
"""

import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from cluster import ClusterError, Running, node_layout, process
from cluster.api_client import ApiClient
from cluster.name_server import NameServer
from demo.install import RELEASE

PROGRAM = "names"
SERVICE = f"{RELEASE}-reports"
NAME = f"{SERVICE}.{RELEASE}.svc"
SLICES = f"/apis/discovery.k8s.io/v1/namespaces/{RELEASE}/endpointslices"
KEPT_SECONDS = 1.0  # trials report often, and ask before each report
HACK = Path(__file__).parents[1]


def start(running: Running) -> None:
    """Answer from now on, unless it does already."""
    before = running.processes.get(PROGRAM)
    if before is None or not process.is_alive(before):
        path = f"PYTHONPATH={HACK}"
        here = (sys.executable, "-m", "demo.names", str(running.folder))
        running.run_process(PROGRAM, ("/usr/bin/env", path, *here))


class Leader:
    """Where the Service leads, asked for at most once a second."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._known: dict[str, str] = {}
        self._asked = 0.0

    def addresses(self) -> dict[str, str]:
        """By name; what was known last where the API server does not answer."""
        if time.monotonic() - self._asked > KEPT_SECONDS:
            self._asked = time.monotonic()
            with suppress(ClusterError, OSError):  # the next question asks again
                self._known = self._look()
        return self._known

    def _look(self) -> dict[str, str]:
        query = f"{SLICES}?labelSelector=kubernetes.io/service-name%3D{SERVICE}"
        found = [
            str(address)
            for each in self._client.get(query)["items"]  # type: ignore[attr-defined]
            for endpoint in each.get("endpoints") or ()
            if endpoint["conditions"].get("ready")
            for address in endpoint["addresses"]
        ]
        return {NAME: found[-1]} if found else {}


def main() -> int:
    """Answer until somebody ends it."""
    folder = Path(sys.argv[1])
    leader = Leader(Running(folder.name, folder).client())
    with NameServer(node_layout.ADDRESS, leader.addresses):
        while True:
            signal.pause()


if __name__ == "__main__":
    sys.exit(main())
