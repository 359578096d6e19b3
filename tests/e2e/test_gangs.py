"""A gang in real containers: pods find each other by the names that they are told.

torch is too large for the images here, so a program of the standard library does what its
rendezvous does: rank 0 listens at MASTER_ADDR and MASTER_PORT, the others connect there by name,
and all agree on who took part.
"""

from collections.abc import Iterator

import pytest
from tests.api.caller import Caller
from tests.api.tenant import Tenant
from tests.e2e.gpu_jobs import template
from tests.e2e.name_server import NameServer

from cluster import Running, node_layout
from demo import install

IMAGE = f"{install.REPOSITORY}:{install.TAG}"  # has Python, and is on the node already
RENDEZVOUS = """
import json, os, socket, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
me = {"rank": rank, "role": os.environ["GPUJOB_ROLE"], "host": socket.gethostname()}
assert os.environ["PET_NODE_RANK"] == str(rank)
assert os.environ["PET_NNODES"] == os.environ["GPUJOB_WORLD_SIZE"] == str(size)
assert os.environ["GPUJOB_HOSTS"].split(",")[rank].split(".")[0] == me["host"], me
if rank == 0:
    with socket.create_server(("", where[1])) as server:
        peers = [server.accept()[0].makefile("rw") for _ in range(size - 1)]
        everybody = [me] + [json.loads(peer.readline()) for peer in peers]
        for peer in peers:
            print(json.dumps(everybody), file=peer, flush=True)
else:
    for attempt in range(100):  # the name is known once rank 0 has an address
        try:
            connection = socket.create_connection(where, timeout=60)
            break
        except OSError:
            time.sleep(0.3)
    peer = connection.makefile("rw")
    print(json.dumps(me), file=peer, flush=True)
    everybody = json.loads(peer.readline())
print(json.dumps(sorted(everybody, key=lambda each: each["rank"])), flush=True)
"""
PROGRAM = template(
    {
        "name": "main",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["/opt/venv/bin/python", "-c", RENDEZVOUS],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
)


@pytest.fixture
def names(admin: Caller, tenant: Tenant) -> Iterator[NameServer]:
    """DNS for the pods of the tenant."""
    path = f"/apis/discovery.k8s.io/v1/namespaces/{tenant.name}/endpointslices"

    def addresses() -> dict[str, str]:
        found = {}
        for each in admin.get(path).body["items"]:
            service = each["metadata"]["labels"]["kubernetes.io/service-name"]
            for endpoint in each.get("endpoints") or ():
                if "hostname" in endpoint:
                    found[f"{endpoint['hostname']}.{service}"] = endpoint["addresses"][0]
        return found

    with NameServer(node_layout.ADDRESS, addresses) as server:
        yield server


def logs(cluster: Running, tenant: Tenant, job: str) -> dict[str, str]:
    """The last line that each pod printed, by host name."""
    return {
        pod["spec"]["hostname"]: cluster.kubectl(
            "logs", "-n", tenant.name, pod["metadata"]["name"], "-c", "main"
        ).stdout.splitlines()[-1]
        for pod in tenant.pods(job)
    }


def test_two_pods_with_a_gpu_each_meet_under_the_name_of_the_first(
    operated: Running, tenant: Tenant, names: NameServer
) -> None:
    tenant.submit(
        "pair", gang=True, parallelism=2, gpu=1, framework="torch", template=PROGRAM, retries=0
    )
    tenant.wait_phase("pair", "Succeeded", 120)
    met = (
        '[{"rank": 0, "role": "worker", "host": "pair-0"}, '
        '{"rank": 1, "role": "worker", "host": "pair-1"}]'
    )
    assert logs(operated, tenant, "pair") == {"pair-0": met, "pair-1": met}
    assert "pair-0.pair" in names.asked


def test_roles_meet_with_and_without_a_gpu(
    operated: Running, tenant: Tenant, names: NameServer
) -> None:
    roles = [
        {"name": "lead", "gpu": 0.5},
        {"name": "work", "replicas": 2, "gpu": 0.5},
        {"name": "ps"},
    ]
    tenant.submit(
        "team",
        roles=roles,
        framework="torch",
        distinctGPUs=False,
        template=PROGRAM,
        retries=0,
    )
    tenant.wait_phase("team", "Succeeded", 120)
    said = logs(operated, tenant, "team")
    assert sorted(said) == ["team-lead-0", "team-ps-0", "team-work-0", "team-work-1"]
    (met,) = set(said.values())
    ranks = ("lead", "team-lead-0"), ("work", "team-work-0"), ("work", "team-work-1")
    for rank, (role, host) in enumerate((*ranks, ("ps", "team-ps-0"))):
        assert f'{{"rank": {rank}, "role": "{role}", "host": "{host}"}}' in met
