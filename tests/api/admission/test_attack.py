"""A tenant with ``edit`` does a little of its worst; `make attack` does it for fifteen minutes.

The operator runs with the chart's account and policies. Nobody's time is measured.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import pytest
from tests.api.account import kubeconfig
from tests.api.admission.conftest import account_token
from tests.api.admission.objects import LEADER
from tests.api.caller import Caller
from tests.api.fake_nodes import node, with_nodes
from tests.api.replica import CALM_LEASE, LEASE, Replica
from tests.api.tenant import GROUP, Tenant, until
from tests.attack.attacker import Attacker, Scene
from tests.attack.attacks import ATTACKS, Attack
from tests.attack.given import Given
from tests.attack.on_gpus import pod
from tests.attack.requests_made import RequestsMade
from tests.attack.stand import OPERATOR, take_reports, tenant
from tests.attack.verdict import Minute, Verdict, is_let_in
from tests.perf.procfs import memory
from tests.soak.checker import Checker
from tests.soak.site import Site

from cluster import Running
from cluster.credentials import render_kubeconfig

HOME, COMPAT, ELSEWHERE, HONEST = "worst-home", "worst-compat", "worst-elsewhere", "honest"
LIMIT, GPUS, CARD_MIB = 2, 8, 16384
NODES = ("worst-0", "worst-1")
# As by default: how often an object is written is judged as well.
SETTINGS = {**CALM_LEASE, "status_seconds": "1.0", "recheck_seconds": "30"}


@dataclass
class Fight:
    """Who attacks, who looks, and who stands it."""

    site: Site
    replica: Replica
    attacker: Caller
    scene: Scene
    given: dict[str, Given]
    checker: Checker
    requests: RequestsMade
    honest: Tenant
    verdict: Verdict = field(default_factory=Verdict)


@pytest.fixture(scope="module")
def fight(cluster: Running, admin: Caller) -> Iterator[Fight]:
    site = Site(cluster, 1, admin=admin, editor=admin)
    token = tenant(admin, HOME, COMPAT, ELSEWHERE, quota=1, limit=LIMIT)
    attacker = Caller(cluster.server, cluster.ca_file, token)
    honest = Tenant(admin, HONEST).create(quota=2)
    path = kubeconfig(cluster)
    path.touch(mode=0o600)
    told = {"name": cluster.name, "server": cluster.server, "ca_file": cluster.ca_file}
    path.write_text(render_kubeconfig(**told, token=account_token(admin)))
    nodes = [node(each, "NVIDIA-A100-PCIE-40GB", GPUS) for each in NODES]
    for each in nodes:
        for offers in ("capacity", "allocatable"):
            each["status"][offers] = {**each["status"][offers], "nvidia.com/gpu": str(GPUS)}
    replica = Replica(cluster, "attacked", dict(SETTINGS), kubeconfig=path)
    reports = take_reports(replica)
    with with_nodes(admin, *nodes):
        replica.start().wait_leading()
        given = {
            HOME: Given(site, HOME, LIMIT * 1000, plugin=True),
            COMPAT: Given(site, COMPAT, LIMIT * 1000),
            ELSEWHERE: Given(site, ELSEWHERE, 0),
        }
        checker = Checker(site, lambda on, device: f"{on}/{device}", CARD_MIB)
        followed = [*(each.watch.follow for each in given.values()), checker.watch.follow]
        threads = [site.act("watch", follow, until=site.stop) for follow in followed]
        requests = RequestsMade(cluster.folder / "logs" / "audit.log", OPERATOR)
        scene = Scene(HOME, COMPAT, ELSEWHERE, NODES, reports, few=True)
        yield Fight(site, replica, attacker, scene, given, checker, requests, honest)
        site.stop.set()
        replica.stop()
        for thread in threads:
            thread.join()
    for project in (HOME, HONEST):
        admin.send("DELETE", f"{GROUP}/gpuprojects/{project}")
    for namespace in (HOME, COMPAT, ELSEWHERE, HONEST):
        admin.send("DELETE", f"/api/v1/namespaces/{namespace}")
    admin.send("DELETE", LEADER)
    admin.send("DELETE", LEASE)


@pytest.mark.parametrize(
    "attack", [each for each in ATTACKS if each.withstood], ids=lambda each: str(each.name)
)
def test_an_attack_brings_nobody_a_gpu_and_the_operator_no_harm(
    fight: Fight, attack: Attack
) -> None:
    attacker = Attacker(attack.name, fight.attacker, fight.scene, Random(1))
    attack.step(attacker)
    for namespace, given in fight.given.items():
        marker = pod(f"after-{attack.name}", nodeName=NODES[0])
        made = fight.site.admin.create(f"/api/v1/namespaces/{namespace}/pods", marker)
        assert made.ok, made
        uid = made.body["metadata"]["uid"]
        until(lambda given=given, uid=uid: given.knows(uid), "all before it was seen")
        found, given.found = given.found, {}
        assert found == {}
    assert "599" not in attacker.answers
    assert fight.replica.alive()
    fight.verdict.answers = {**fight.verdict.answers, attack.name: dict(attacker.answers)}


def test_after_all_of_it_every_promise_was_kept(fight: Fight) -> None:
    fight.honest.submit("job", gpu=0.5)
    fight.honest.wait_placed("job")
    process, verdict = fight.replica.process, fight.verdict
    assert process is not None
    transitions = fight.site.admin.get(LEASE).body["spec"].get("leaseTransitions", 0)
    statuses = [status for found in verdict.answers.values() for status in found]
    fight.requests.read()
    assert fight.requests.times
    verdict.minutes = [
        Minute(
            number=1,
            operator_mb=round(memory(process.pid).peak_rss_mib * 1.048576),
            api_server_mb=0,
            operator_requests_a_second=0.0,
            pod_wait_seconds=0.0,
            job_wait_seconds=0.0,
            whole_job_seconds=0.0,
            plain_pod_seconds=0.0,
            write_seconds=0.0,
            replicas_ended=int(not fight.replica.alive()),
            lease_transitions=int(transitions),
            attacks_let_in=sum(map(is_let_in, statuses)),
            attacks_refused=0,
            log_lines=0,
        )
    ]
    told = fight.replica.told().splitlines()
    verdict.unexpected = [line for line in told if line.endswith(": unexpected")]
    verdict.most_for_one = fight.requests.most_for_one()
    verdict.cards_above_capacity = [above.card for above in fight.checker.above]
    verdict.failures = fight.site.failures
    assert verdict.broken() == []
