"""The Service to which pods report: where it leads, and its name for pods.

Without a kube-proxy a stand-in for DNS leads the name straight to its endpoint, the leader's pod.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.api.caller import Caller

from cluster import node_layout
from cluster.name_server import NameServer
from demo import install

SERVICE = f"{install.RELEASE}-reports"
NAME = f"{SERVICE}.{install.RELEASE}.svc"


@contextmanager
def named(admin: Caller) -> Iterator[NameServer]:
    """DNS for the Service of reports."""
    known: dict[str, str] = {}
    asked = 0.0

    def addresses() -> dict[str, str]:
        nonlocal asked, known
        if time.monotonic() - asked > 1:  # trials report often, and ask before each report
            asked = time.monotonic()
            found = endpoints(admin)
            known = {NAME: found[-1]} if found else {}
        return known

    with NameServer(node_layout.ADDRESS, addresses) as server:
        yield server


def endpoints(admin: Caller) -> list[str]:
    """Where the Service for reports leads."""
    path = f"/apis/discovery.k8s.io/v1/namespaces/{install.RELEASE}/endpointslices"
    query = f"?labelSelector=kubernetes.io/service-name%3D{SERVICE}"
    return [
        address
        for each in admin.get(path + query).body["items"]
        for endpoint in each.get("endpoints") or ()
        if endpoint["conditions"].get("ready")
        for address in endpoint["addresses"]
    ]
