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
from tests.api.tenant import Tenant
from tests.e2e import ahead
from tests.e2e.ahead import Ahead
from tests.e2e.report_service import endpoints, named
from tests.e2e.waits import NodeTenant, until

from cluster import Running, Settings, connect, lifecycle
from cluster.name_server import NameServer
from cluster.progress import say
from cluster.settings import UNCHECKED_POLICIES
from demo import environment, install

CLUSTER = "e2e"


def _environment(**variables: object) -> str:
    return json.dumps([{"name": name, "value": str(v)} for name, v in variables.items()])


# Waits that are nobody's test are shorter than the defaults: until a node is tried again, and until
# a pod that gives way has had its minute. Who leads is believed to be alive for longer: on a busy
# machine it may come late to its Lease. Everything else is as anybody would install it.
SETTINGS = (
    "--set=scheduling.guaranteeSeconds=2,scheduling.patienceSeconds=1",
    "--set=scheduling.minRuntimeSeconds=2,scheduling.shareWindowSeconds=8",
    "--set=leaderElection.leaseSeconds=60,leaderElection.renewDeadlineSeconds=45",
    f"--set-json=extraEnv={_environment(GPUSCHED_AVOID_SECONDS=1)}",
    "--set=agent.sampleSeconds=1",
    f"--set-json=agent.extraEnv={_environment(GPUSCHED_AGENT_RENEW_SECONDS=2)}",
)
# What few tests need, all in one release.
OPTIONS = ("--set=sweeps.tpe=true", "--set=holders.enabled=true,holders.keepSeconds=1")


@pytest.fixture(scope="session")
def made_ahead(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ahead]:
    """Images, made while the first tests run."""
    modules = {item.path.stem for item in request.session.items}
    with ahead.making(tmp_path_factory.mktemp("ahead"), modules) as found:
        yield found


@pytest.fixture(scope="session")
def real_cluster(request: pytest.FixtureRequest) -> Iterator[Running]:
    """A cluster with the real node `real-0` and nothing installed."""
    if sys.platform != "linux" or os.geteuid() != 0:
        unavailable("the e2e tier needs root on Linux (kubelet and containerd run for real)")
    demo = connect(environment.NAME)
    if demo is not None and demo.state.real_node:
        say("the demo has this machine's real node: stopping it, `make demo` brings it back")
        lifecycle.down(demo.name)
    settings = Settings(
        name=CLUSTER, real_node=True, controllers=UNCHECKED_POLICIES, owner=os.getpid()
    )
    running = lifecycle.up(settings, recreate=True)
    try:
        request.getfixturevalue("made_ahead")
        yield running
    finally:
        lifecycle.down(running.name)


@pytest.fixture(scope="module")
def operated(real_cluster: Running) -> Running:
    """The cluster with the chart installed: two replicas, the node's agent, policies in force."""
    install_chart(real_cluster)
    return real_cluster


def install_chart(cluster: Running) -> None:
    """The release of the tier, unless it is there."""
    install.chart(cluster, image=install.images(cluster), more=_settings(cluster))


def _settings(cluster: Running) -> tuple[str, ...]:
    """With a history of the node, which goes with the cluster, and use that is looked at often.

    The version before knows nothing of either.
    """
    folder = cluster.folder / "history"
    history = f"agent.history.enabled=true,agent.history.megabytes=8,agent.history.folder={folder}"
    often = _environment(GPUSCHED_AVOID_SECONDS=1, GPUSCHED_USAGE_SECONDS=2)
    return (*SETTINGS, f"--set={history}", f"--set-json=extraEnv={often}")


def install_options(cluster: Running) -> None:
    """The release of the tier with what only few tests need, unless it is there.

    The next module that wants the release without has it again.
    """
    image, tpe = install.images(cluster), install.tpe_image(cluster)
    more = (*_settings(cluster), *OPTIONS, f"--set=podAnnotations.tpe={tpe}")
    install.chart(cluster, image=image, more=more)


@pytest.fixture
def admin(operated: Running) -> Caller:
    """The administrator."""
    return Caller(operated.server, operated.ca_file, operated.token())


@pytest.fixture
def tenant(admin: Caller) -> Iterator[Tenant]:
    """A namespace whose project may use both GPUs of the real node."""
    made = NodeTenant(admin).create(quota=2)
    # What a test before this one held is given back when its containers have stopped.
    until(lambda: _is_free(admin), "both GPUs are free")
    yield made
    made.delete()


@pytest.fixture(scope="module")
def owner(operated: Running) -> Iterator[Tenant]:
    """As ``tenant``, for all tests of a module."""
    admin = Caller(operated.server, operated.ca_file, operated.token())
    made = NodeTenant(admin).create(quota=2)
    until(lambda: _is_free(admin), "both GPUs are free")
    yield made
    made.delete()


@pytest.fixture
def names(admin: Caller) -> Iterator[NameServer]:
    """DNS for the Service of reports, which leads to a leader by then, however new that is."""
    until(lambda: endpoints(admin), "the Service of reports leads somewhere")
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


# Modules in this order, all others between the two halves.
_FIRST = ("test_real_node", "test_upgrade")
_LAST = ("test_sweeps", "test_holders", "test_release")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """So that releases change as seldom as possible.

    First those that need the node, or the cluster, as nobody has used it: the node's own tests stop
    and start it, which pods of others would not survive, and policies of the chart would refuse
    theirs. Then the upgrade, which installs the version before; with what it comes to the others go
    on. Last who wants the release otherwise, and who brings one of its own.
    """

    def place(item: pytest.Item) -> int:
        name = item.path.stem
        for number, first in enumerate(_FIRST):
            if name.startswith(first):
                return number - len(_FIRST)
        return _LAST.index(name) + 1 if name in _LAST else 0

    items.sort(key=place)
