"""A CRD of ours is deleted and restored while jobs run and wait; watches are refused meanwhile.

The leader says that it is not ready, and which watch it has lost; it gives nothing and takes
nothing away, and is back by itself once the cause is gone. No list that is made now and then helps.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from tests.api import account
from tests.api.agent import Agent, here
from tests.api.caller import Answer
from tests.api.conftest import CRDS, administrator, own_cluster
from tests.api.free_port import free_port
from tests.api.pod_watch import PodWatch
from tests.api.replica import CALM_LEASE, Replica
from tests.api.tenant import GROUP, Tenant, until
from tests.faultproxy import Fault, FaultProxy, Rule

from cluster import Running
from gpu_scheduler.core.model.units import DEVICE_MILLI

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KINDS = ("gpuclasses", "gpunodes", "gpuprojects", "gpujobs")
WATCHED = (*KINDS, "pods", "nodes", "jobs", "namespaces", "resourcequotas", "leases")
ALL = rf"/({'|'.join(WATCHED)})$"
ALLOWED = {"metadata": {"annotations": {"gpu-scheduler.io/allow-deletion": "true"}}}
BODIES = {path.stem.partition("_")[2]: yaml.safe_load(path.read_text()) for path in CRDS}


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with own_cluster("come-and-go") as made:
        yield made


def start(running: Running, kubeconfig: Path | None = None) -> Replica:
    port = str(free_port())
    ports = {"admin_port": port, "admin_host": "127.0.0.1"}
    settings = {**CALM_LEASE, **ports, "resync_seconds": "3600"}
    replica = Replica(running, f"at-{port}", settings, kubeconfig=kubeconfig).start()
    replica.wait_leading()
    return replica


def missing(replica: Replica) -> str:
    """What /readyz says is missing; empty: ready."""
    url = f"http://127.0.0.1:{replica.settings['admin_port']}/readyz"
    try:
        with urllib.request.urlopen(url, timeout=30):
            return ""
    except urllib.error.HTTPError as error:
        assert error.code == 503
        return error.read().decode()


def lost_seconds(replica: Replica, plural: str) -> float:
    """What the metric says of a watch."""
    url = f"http://127.0.0.1:{replica.settings['admin_port']}/metrics"
    name = f'gpusched_watch_lost_seconds{{resource="{plural}"}} '
    with urllib.request.urlopen(url, timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return float(next(line.removeprefix(name) for line in lines if line.startswith(name)))


@dataclass
class KindUnderTest:
    """One of our kinds, whose CRD comes and goes."""

    tenant: Tenant
    plural: str

    @property
    def _crd(self) -> str:
        return f"{DEFINITIONS}/{self.plural}.gpu-scheduler.io"

    def delete(self) -> Answer:
        return self.tenant.admin.send("DELETE", self._crd)

    def goes(self) -> None:
        """Delete it as its owner means it."""
        assert self.tenant.admin.patch(self._crd, ALLOWED).ok
        assert self.delete().ok
        until(lambda: self.tenant.admin.get(self._crd).status == 404, "the CRD is gone")

    def comes(self) -> None:
        assert self.tenant.admin.create(DEFINITIONS, BODIES[self.plural]).ok
        until(self.is_served, f"{self.plural} are served")

    def is_served(self) -> bool:
        try:
            return self.tenant.admin.get(f"{GROUP}/{self.plural}").ok
        except json.JSONDecodeError:  # the API server says it in plain text
            return False


@pytest.mark.parametrize("plural", KINDS)
def test_a_crd_is_not_deleted_by_a_slip_of_the_hand(running: Running, plural: str) -> None:
    kind = KindUnderTest(Tenant(administrator(running)), plural)
    refused = kind.delete()
    assert refused.status == 403
    way_out = f"kubectl annotate crd {plural}.gpu-scheduler.io gpu-scheduler.io/allow-deletion=true"
    assert f"all {plural} of the cluster would go" in refused.message
    assert way_out in refused.message
    everything = kind.tenant.admin.send("DELETE", DEFINITIONS)
    assert everything.status == 403
    assert kind.is_served()


def runs(tenant: Tenant) -> None:
    """A job that holds 0.6 of both GPUs of the agent's node."""
    tenant.submit("runs", gpu=0.6, parallelism=2, completions=2, template=here())
    tenant.wait_phase("runs", "Running")
    tenant.wait_placed("runs", 2)


def uids(tenant: Tenant) -> set[str]:
    """Of its pods."""
    return {str(pod["metadata"]["uid"]) for pod in tenant.pods("runs")}


def comes_and_goes(kind: KindUnderTest, replica: Replica) -> None:
    """Its CRD is deleted and restored while a job runs; another is submitted meanwhile."""
    tenant, plural = kind.tenant, kind.plural
    running = uids(tenant)
    kind.goes()
    until(lambda: f"/{plural}: lost" in missing(replica), "the leader says it")
    until(lambda: lost_seconds(replica, plural) > 0, "so does the metric")
    if plural != "gpujobs":
        tenant.submit(f"since-{plural}", gpu=0.6, template=here())
    kind.comes()
    if plural == "gpuprojects":
        assert tenant.project(tenant.name, namespaces=[tenant.name], quota=8).ok
    if plural == "gpunodes":
        Agent(tenant.admin).start()
    until(lambda: not missing(replica), "the leader sees it again")
    until(lambda: lost_seconds(replica, plural) == 0, "so does the metric")
    if plural == "gpujobs":  # as from Git; its pods are others
        runs(tenant)
        until(lambda: not uids(tenant) & running, "those that were are gone")
    else:
        until(
            lambda: "0.4 free on one GPU" in tenant.status(f"since-{plural}").get("message", ""),
            lambda: f"it is planned with, and finds no room: {tenant.status(f'since-{plural}')}",
        )
        assert uids(tenant) == running


def test_a_kind_that_is_gone_and_restored_is_seen_again_and_nothing_is_given_twice(
    running: Running,
) -> None:
    tenant = Tenant(administrator(running)).create(quota=8)
    replica = start(running)
    try:
        Agent(tenant.admin).start()
        with PodWatch(running, tenant.name) as watch:
            runs(tenant)
            for plural in KINDS:
                comes_and_goes(KindUnderTest(tenant, plural), replica)
        assert max(watch.peak.milli.values()) <= DEVICE_MILLI
        assert watch.peak.placements == 4, "no pod but those that run, and run again"
        for plural in KINDS:
            lines = [line.partition(f"/{plural}: ")[2] for line in replica.told().splitlines()]
            said = [line for line in lines if line]
            assert "nothing is decided meanwhile" in said[0] and "back after" in said[-1]
            assert len(said) == len(set(said)), "each change is said once"
    finally:
        replica.stop()
        tenant.delete()


def cut() -> Rule:
    """Watches, once it is released; not lists that are streamed, which end by themselves."""
    return Rule(Fault.CUT, "GET", ALL, "^(?!.*sendInitialEvents).*watch=", seconds=None)


def cut_and_refused(proxy: FaultProxy, status: int, replica: Replica, tenant: Tenant) -> None:
    """All watches break and are refused; what was submitted meanwhile is placed afterwards."""
    (before,) = proxy.rules
    until(lambda: before.held == len(WATCHED), lambda: f"all is watched: {before.held}")
    refusal = Rule(Fault.REFUSE, "GET", ALL, "watch=", status=status)
    proxy.rules[:] = [refusal, cut()]
    proxy.release(before)

    def all_are_lost() -> bool:
        lost = missing(replica)
        return all(f"/{each}: lost" in lost for each in WATCHED) and (
            lost.count(f"({status})") == len(WATCHED)
        )

    until(all_are_lost, lambda: f"all are lost: {missing(replica)}")
    tenant.submit(f"at-{status}", gpu=0.6)
    proxy.rules.remove(refusal)
    until(lambda: not missing(replica), lambda: f"all are back: {missing(replica)}")
    tenant.wait_placed(f"at-{status}")


def test_watches_that_are_cut_and_refused_are_back_by_themselves(
    running: Running, tmp_path: Path
) -> None:
    tenant = Tenant(administrator(running)).create(quota=8)
    with FaultProxy.of(running, rules=[cut()]) as proxy:
        path = proxy.kubeconfig(account.kubeconfig(running), tmp_path / "kubeconfig")
        replica = start(running, path)
        try:
            with PodWatch(running, tenant.name) as watch:
                for status in (403, 404, 410):
                    cut_and_refused(proxy, status, replica, tenant)
            assert max(watch.peak.milli.values()) <= DEVICE_MILLI
            assert watch.peak.placements == 3
        finally:
            replica.stop()
            tenant.delete()
