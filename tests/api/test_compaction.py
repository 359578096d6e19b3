"""A watch whose place in history is gone is answered 410: the operator lists anew, nothing is lost.

While the operator stands still, its connections go, objects come and go, etcd forgets how, and the
API server starts afresh: it cannot tell of what was between, as after an hour of standing still.
"""

import base64
import json
import signal
import urllib.request
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from tests.api.replica import STANDBY
from tests.api.site import Site, site_with, team_on
from tests.api.tenant import Tenant, until


@pytest.fixture
def site() -> Iterator[Site]:
    with site_with("compaction", STANDBY) as made:
        yield made


@pytest.fixture
def tenant(site: Site) -> Iterator[Tenant]:
    with team_on(site) as team:
        yield team(quota=8)


def etcd(site: Site, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Ask the cluster's etcd, through its JSON gateway."""
    address = f"http://127.0.0.1:{site.running.state.ports.etcd}/v3/{path}"
    request = urllib.request.Request(address, json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return dict(json.load(answer))


def compact(site: Site) -> None:
    """Have etcd forget all that was."""
    key = base64.b64encode(b"/").decode()
    now = etcd(site, "kv/range", {"key": key, "limit": "1"})["header"]["revision"]
    etcd(site, "kv/compaction", {"revision": now, "physical": True})


def restart_api_server(site: Site) -> None:
    site.running.stop_process("kube-apiserver", kill=True)
    site.running.start_process("kube-apiserver")
    site.running.wait_ready()


def test_what_happened_before_the_compaction_is_seen_all_the_same(
    site: Site, tenant: Tenant
) -> None:
    for name in ("stays", "goes"):
        tenant.submit(name, gpu=4 if name == "goes" else 0.5, parallelism=1)
    # gpu: 4 fits no server of two: it waits, and its end must be seen too.
    tenant.wait_placed("stays")
    tenant.submit("full", gpu=1, parallelism=7)
    tenant.wait_placed("full", 7)
    tenant.submit("waits", gpu=2)
    tenant.wait_reason("waits", "WaitingForGPU")
    process = site.replica.process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    try:
        restart_api_server(site)  # its connections are gone
        for name in ("full", "goes"):
            tenant.remove(name)
        until(lambda: len(tenant.pods()) <= 1, "the pods are gone before anybody looks")
        tenant.submit("new", gpu=0.5)
        compact(site)
        restart_api_server(site)
    finally:
        process.send_signal(signal.SIGCONT)
    tenant.wait_placed("waits")
    tenant.wait_placed("new")
    assert len(tenant.allocations("stays")) == 1
    assert site.replica.alive(), site.replica.told()
    for kind in ("pods", "nodes", "jobs"):  # each watch is opened again when its turn comes
        until(partial(is_refused, site, kind), f"the watch of {kind} is answered 410")


def is_refused(site: Site, kind: str) -> bool:
    """Whether the operator has said of a watch that its place in history is gone."""
    return any("410" in line and kind in line for line in site.replica.told().splitlines())
