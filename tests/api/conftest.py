"""The api tier: a real control plane with fake nodes, shared by the tests of one run.

Each pytest-xdist worker has a cluster of its own, and each test a namespace of its own.
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.api.caller import Caller
from tests.api.replica import LEASE_NAMESPACE, Replica
from tests.api.tenant import Tenant

from cluster import Running, Settings, up

CLUSTERS = Path(__file__).parents[1] / "fixtures" / "clusters"
SERVERS = CLUSTERS / "dell-saas.yaml"
CRDS = tuple(sorted((Path(__file__).parents[2] / "crds").glob("*.yaml")))


@pytest.fixture(scope="session")
def control_plane(worker_id: str) -> Iterator[Running]:
    """A cluster with our CRDs and the four Dell servers of two A100s each."""
    running = up(settings(f"api-{os.getpid()}-{worker_id}"))
    try:
        yield running
    finally:
        running.stop()


def settings(name: str, nodes: Path = SERVERS) -> Settings:
    """A cluster with our CRDs that ends with this test run."""
    return Settings(name=name, nodes=(nodes,), crds=CRDS, owner=os.getpid())


@pytest.fixture
def namespace(control_plane: Running) -> Iterator[str]:
    """A namespace that nobody else uses; what is left in it is deleted with it."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    control_plane.kubectl("create", "namespace", name)
    control_plane.kubectl(
        "wait", "--for=create", "serviceaccount/default", f"--namespace={name}", "--timeout=30s"
    )
    yield name
    control_plane.kubectl("delete", "namespace", name, "--wait=false")


@contextmanager
def own_cluster(purpose: str, nodes: Path = SERVERS) -> Iterator[Running]:
    """A cluster that waits for an operator: our CRDs, and a namespace for the Lease."""
    running = up(settings(f"{purpose}-{os.getpid()}", nodes))
    try:
        admin = administrator(running)
        assert admin.create("/api/v1/namespaces", {"metadata": {"name": LEASE_NAMESPACE}}).ok
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def scheduled() -> Iterator[Running]:
    """A cluster with a running operator, for tests that leave it as it was."""
    with own_cluster("sched") as running:
        replica = Replica(running).start()
        try:
            replica.wait_leading()
            yield running
        finally:
            replica.stop()


def administrator(running: Running) -> Caller:
    """The cluster's administrator."""
    return Caller(running.server, running.ca_file, running.token())


@pytest.fixture
def admin(scheduled: Running) -> Caller:
    """The administrator of the scheduled cluster."""
    return administrator(scheduled)


@pytest.fixture
def tenant(admin: Caller) -> Iterator[Tenant]:
    """A project of 8 GPUs, the whole cluster."""
    made = Tenant(admin).create(quota=8)
    yield made
    made.delete()
