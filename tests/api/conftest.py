"""The api tier: a real control plane with fake nodes, shared by the tests of one run.

Each pytest-xdist worker has a cluster of its own, and each test a namespace of its own.
"""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import Running, Settings, up

CLUSTERS = Path(__file__).parents[1] / "fixtures" / "clusters"


@pytest.fixture(scope="session")
def control_plane(worker_id: str) -> Iterator[Running]:
    """A cluster with the four Dell servers of two A100s each."""
    name = f"api-{os.getpid()}-{worker_id}"
    running = up(Settings(name=name, nodes=(CLUSTERS / "dell-saas.yaml",)))
    try:
        yield running
    finally:
        running.stop()


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
