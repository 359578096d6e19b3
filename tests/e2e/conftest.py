"""The e2e tier: one cluster with a real node for the whole session.

Real containers through a real kubelet, containerd and NVIDIA's container runtime. Needs root on
Linux; the tier is skipped elsewhere, and with CI=true that is a failure.
"""

import os
import sys
from collections.abc import Iterator

import pytest

from cluster import Running, Settings, lifecycle

CLUSTER = "e2e"


@pytest.fixture(scope="session")
def real_cluster() -> Iterator[Running]:
    """A cluster with the real node `real-0` and nothing installed."""
    if sys.platform != "linux" or os.geteuid() != 0:
        unavailable("the e2e tier needs root on Linux (kubelet and containerd run for real)")
    running = lifecycle.up(Settings(name=CLUSTER, real_node=True), recreate=True)
    yield running
    running.stop()


def unavailable(reason: str) -> None:
    """Skip with ``reason``; where CI=true nothing may be skipped."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The node's own tests first: they stop and start it, and pods of others would not survive."""
    items.sort(key=lambda item: not item.path.name.startswith("test_real_node"))
