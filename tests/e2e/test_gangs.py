"""A gang in real containers: pods find each other by the names that they are told.

Two of them train with torchrun, as the example has it. Where roles matter and torch does not, a
program of the standard library does what its rendezvous does: rank 0 listens at MASTER_ADDR and
MASTER_PORT, the others connect there by name, and all agree on who took part.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.api.caller import Caller
from tests.api.tenant import Tenant
from tests.e2e import images_torch
from tests.e2e.gpu_jobs import template

from cluster import Running, node_layout, real_node
from cluster.name_server import NameServer
from demo import install

EXAMPLE = Path(__file__).parents[2] / "examples" / "gang-torchrun.yaml"
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
    connection = None
    while connection is None:  # the name is known once rank 0 has an address
        try:
            connection = socket.create_connection(where, timeout=60)
        except OSError:
            time.sleep(0.3)
    connection.settimeout(None)
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
    """The last JSON that each pod printed, by host name.

    Behind it torchrun may complain of the other, which ended first.
    """
    said: dict[str, str] = {}
    for pod in tenant.pods(job):
        where = ("-n", tenant.name, pod["metadata"]["name"], "-c", "main")
        lines = cluster.kubectl("logs", *where).stdout.splitlines()
        told = [line for line in lines if line.startswith(("{", "[{"))]
        said[pod["spec"]["hostname"]] = told[-1]
    return said


@pytest.fixture
def torch_image(operated: Running) -> str:
    """An image with torch, on the node."""
    real_node.import_image(operated, images_torch.torch_archive())
    return images_torch.TORCH


def test_torchrun_trains_in_two_pods_that_meet_under_the_name_of_the_first(
    operated: Running, tenant: Tenant, names: NameServer, torch_image: str
) -> None:
    code, job = yaml.safe_load_all(EXAMPLE.read_text())
    code["metadata"]["namespace"] = tenant.name
    assert tenant.admin.create(f"/api/v1/namespaces/{tenant.name}/configmaps", code).ok
    (main,) = job["spec"]["template"]["spec"]["containers"]
    main |= {"image": torch_image, "imagePullPolicy": "Never"}
    tenant.submit("torchrun", **job["spec"])
    tenant.wait_phase("torchrun", "Succeeded")

    said = {host: json.loads(line) for host, line in logs(operated, tenant, "torchrun").items()}
    first, second = said["torchrun-0"], said["torchrun-1"]
    assert [(each["rank"], each["size"]) for each in (first, second)] == [(0, 2), (1, 2)]
    assert first["backend"] == second["backend"] == "gloo"
    assert first["sum"] == second["sum"] == 1 + 2, "all_reduce over both"
    assert first["start"] != second["start"]
    assert first["start"] != first["end"] == second["end"], "trained together"
    assert "torchrun-0.torchrun" in names.asked


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
    tenant.wait_phase("team", "Succeeded")
    said = logs(operated, tenant, "team")
    assert sorted(said) == ["team-lead-0", "team-ps-0", "team-work-0", "team-work-1"]
    (met,) = set(said.values())
    ranks = ("lead", "team-lead-0"), ("work", "team-work-0"), ("work", "team-work-1")
    for rank, (role, host) in enumerate((*ranks, ("ps", "team-ps-0"))):
        assert f'{{"rank": {rank}, "role": "{role}", "host": "{host}"}}' in met
    assert "team-lead-0.team" in names.asked
