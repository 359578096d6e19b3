"""The e2e tier: one cluster with a real node for the whole session, and one release of the chart.

Real containers through a real kubelet, containerd and NVIDIA's container runtime. Needs root on
Linux; the tier is skipped elsewhere, and with CI=true that is a failure.
"""

import json
import os
import sys
from collections.abc import Generator, Iterator

import pytest
from tests.api.caller import Caller
from tests.api.tenant import Tenant, until
from tests.e2e.name_server import NameServer
from tests.e2e.report_service import named

from cluster import Running, Settings, connect, lifecycle
from cluster.progress import say
from demo import environment, install

CLUSTER = "e2e"

# Shorter than the defaults, so that no test waits a minute until a node is tried again, a silent
# agent is believed to be gone or a pod that gives way has had its minute; everything else is as
# anybody would install it.
AGENT_LEASE_SECONDS = 8


def _environment(**variables: object) -> str:
    return json.dumps([{"name": name, "value": str(v)} for name, v in variables.items()])


QUICK = (
    "--set=scheduling.guaranteeSeconds=2,scheduling.patienceSeconds=1",
    "--set=scheduling.minRuntimeSeconds=2,scheduling.shareWindowSeconds=8",
    f"--set-json=extraEnv={_environment(GPUSCHED_AVOID_SECONDS=1)}",
    "--set-json=agent.extraEnv="
    + _environment(
        GPUSCHED_AGENT_LEASE_SECONDS=AGENT_LEASE_SECONDS, GPUSCHED_AGENT_RENEW_SECONDS=2
    ),
)


@pytest.fixture(scope="session")
def real_cluster() -> Iterator[Running]:
    """A cluster with the real node `real-0` and nothing installed."""
    if sys.platform != "linux" or os.geteuid() != 0:
        unavailable("the e2e tier needs root on Linux (kubelet and containerd run for real)")
    demo = connect(environment.NAME)
    if demo is not None and demo.state.real_node:
        say("the demo has this machine's real node: stopping it, `make demo` brings it back")
        lifecycle.down(demo.name)
    settings = Settings(name=CLUSTER, real_node=True, owner=os.getpid())
    running = lifecycle.up(settings, recreate=True)
    try:
        yield running
    finally:
        lifecycle.down(running.name)


@pytest.fixture(scope="session")
def operated(real_cluster: Running) -> Running:
    """The cluster with the chart installed: two replicas, the node's agent, policies in force."""
    install_chart(real_cluster)
    return real_cluster


def install_chart(cluster: Running) -> None:
    """The release of the tier, unless it is there."""
    install.chart(cluster, image=install.images(cluster), more=QUICK)


@pytest.fixture
def admin(operated: Running) -> Caller:
    """The administrator."""
    return Caller(operated.server, operated.ca_file, operated.token())


@pytest.fixture
def tenant(admin: Caller) -> Iterator[Tenant]:
    """A namespace whose project may use both GPUs of the real node."""
    made = Tenant(admin).create(quota=2)
    # What a test before this one held is given back when its containers have stopped.
    until(lambda: _is_free(admin), "both GPUs are free", 60)
    yield made
    made.delete()


@pytest.fixture
def names(admin: Caller) -> Iterator[NameServer]:
    """DNS for the Service of reports."""
    with named(admin) as server:
        yield server


def _is_free(admin: Caller) -> bool:
    pods = admin.get("/api/v1/pods?labelSelector=gpu-scheduler.io/job").body["items"]
    return not pods


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows the last words of operator and agent."""
    report = yield
    running = getattr(item, "funcargs", {}).get("operated")
    if report.failed and isinstance(running, Running):
        report.sections.append(("operator and agent", _last_words(running)))
    return report


def _last_words(running: Running) -> str:
    where = ("-n", install.RELEASE)
    pods = running.kubectl("get", "pods", *where, "-o", "name", check=False).stdout.split()
    texts = [running.kubectl("get", "pods", *where, check=False).stdout]
    for pod in pods:
        for more in ((), ("--previous",)):
            done = running.kubectl("logs", pod, *where, "--tail=25", *more, check=False)
            if done.stdout:
                texts.append(f"{pod} {' '.join(more)}\n{done.stdout[-4000:]}")
    return "\n".join(texts)


def unavailable(reason: str) -> None:
    """Skip with ``reason``; where CI=true nothing may be skipped."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that need the node, or the cluster, as nobody has used it come first.

    The node's own tests stop and start it, which pods of others would not survive, and policies of
    the chart would refuse theirs. Then the upgrade, which installs the version before.
    """

    def place(item: pytest.Item) -> int:
        name = item.path.name
        return 0 if name.startswith("test_real_node") else 1 if name == "test_upgrade.py" else 2

    items.sort(key=place)
