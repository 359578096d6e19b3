"""The api tier: a real control plane with fake nodes.

Each pytest-xdist worker has one cluster, for a cluster costs more CPU than most files of tests; a
test has a namespace or a project of its own there. Whoever starts an operator on it stops it again,
and only those that break the control plane itself have a cluster of their own.
"""

import os
import uuid
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.api import account
from tests.api.by_length import LongestFirst
from tests.api.caller import Caller
from tests.api.replica import LEASE_NAMESPACE, last_words, operating
from tests.api.tenant import Tenant
from xdist.remote import Producer

from cluster import Running, Settings, down, up
from cluster.settings import UNCHECKED_POLICIES

if TYPE_CHECKING:
    from tests.api.site import Site, Team

CLUSTERS = Path(__file__).parents[1] / "fixtures" / "clusters"
SERVERS = CLUSTERS / "dell-saas.yaml"
OF_ALL = (
    "rbac.authorization.k8s.io/v1/clusterroles",
    "rbac.authorization.k8s.io/v1/clusterrolebindings",
    "admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "apiextensions.k8s.io/v1/customresourcedefinitions",
    "scheduling.k8s.io/v1/priorityclasses",
    "node.k8s.io/v1/runtimeclasses",
    "gpu-scheduler.io/v1alpha1/gpuclasses",
)
CRDS = tuple(sorted((Path(__file__).parents[2] / "crds").glob("*.yaml")))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LongestFirst:
    return LongestFirst(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows the last words of the operators."""
    report = yield
    if report.failed and (words := last_words()):
        report.sections.append(("operators", words))
    return report


@pytest.fixture(scope="session")
def control_plane() -> Iterator[Running]:
    """The worker's cluster: our CRDs, four Dell servers of two A100s each, and no operator."""
    with own_cluster("api") as running:
        yield running


def bare_settings(purpose: str) -> Settings:
    """A cluster without our kinds that ends with this test run."""
    name = f"{purpose}-{os.getpid()}"
    return Settings(name=name, controllers=UNCHECKED_POLICIES, owner=os.getpid())


def settings(purpose: str) -> Settings:
    """A cluster with our CRDs that ends with this test run."""
    # Its controllers ask more often than by default: thousands of pods go in seconds, not minutes.
    return replace(bare_settings(purpose), nodes=(SERVERS,), crds=CRDS, qps=100)


@contextmanager
def cluster_of(wanted: Settings) -> Iterator[Running]:
    """The cluster of these settings, for as long as the context lasts."""
    running = up(wanted)
    try:
        yield running
    finally:
        down(running.name)


@contextmanager
def own_cluster(purpose: str, **more: tuple[str, ...]) -> Iterator[Running]:
    """A cluster that waits for an operator; there are its namespace and its account.

    ``more``: other ``Settings``.
    """
    with cluster_of(replace(settings(purpose), **more)) as running:
        admin = administrator(running)
        assert admin.create("/api/v1/namespaces", {"metadata": {"name": LEASE_NAMESPACE}}).ok
        account.make(running)
        yield running


@pytest.fixture
def namespace(control_plane: Running) -> Iterator[str]:
    """A namespace that nobody else uses; what is left in it goes with it.

    Nobody waits for that: its pods end at once, but those of a Job that has gone before them keep
    their finalizer for a minute.
    """
    admin = administrator(control_plane)
    made = Tenant(admin, f"test-{uuid.uuid4().hex[:8]}").create()
    yield made.name
    assert admin.send("DELETE", f"/api/v1/namespaces/{made.name}").ok


@pytest.fixture(scope="module", autouse=True)
def left_as_it_was(request: pytest.FixtureRequest) -> Iterator[None]:
    """A file leaves nothing on the worker's cluster that would decide how the next one ends.

    Which file is the next one is by how long they take, so another one on every machine.
    """
    module = request.node
    items = (each for each in request.session.items if each.getparent(pytest.Module) is module)
    if not any("control_plane" in getattr(each, "fixturenames", ()) for each in items):
        yield
        return
    admin = administrator(request.getfixturevalue("control_plane"))
    before = _of_all(admin)
    yield
    assert _of_all(admin) == before


def _of_all(admin: Caller) -> set[str]:
    """What is there for every namespace, but for nodes and projects, each of which has one user."""
    found = set()
    for kind in OF_ALL:
        answer = admin.get(f"/apis/{kind}")
        assert answer.ok, answer.message
        found |= {f"{kind}/{each['metadata']['name']}" for each in answer.body["items"]}
    return found


@pytest.fixture(scope="module")
def site(control_plane: Running, request: pytest.FixtureRequest) -> Iterator["Site"]:
    """The cluster with an operator by the module's ``SETTINGS``, which tests may kill."""
    from tests.api.site import site_on

    with site_on(control_plane, request.module.SETTINGS) as made:
        yield made


@pytest.fixture
def team(site: "Site") -> Iterator["Team"]:
    """Makes tenants on the site, which go when the test is over."""
    from tests.api.site import team_on

    with team_on(site) as make:
        yield make


@pytest.fixture(scope="module")
def scheduled(control_plane: Running) -> Iterator[Running]:
    """The cluster with a running operator, for tests that leave it as it was."""
    with operating(control_plane):
        yield control_plane


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
