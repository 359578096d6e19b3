"""A cluster whose operator a test may kill, and tenants on it: for tests with one replica."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from tests.api.caller import Caller
from tests.api.conftest import administrator, own_cluster
from tests.api.replica import Replica, operating
from tests.api.tenant import Tenant

from cluster import Running


@dataclass(slots=True)
class Site:
    """A cluster whose operator a test may kill."""

    running: Running
    admin: Caller
    replica: Replica

    def restart(self) -> None:
        self.replica.forget()
        self.replica.start().wait_leading()


Team = Callable[..., Tenant]
"""Makes a tenant; its arguments are those of ``Tenant.create``."""


@contextmanager
def site_on(running: Running, settings: Mapping[str, str]) -> Iterator[Site]:
    """An operator with these settings that leads on a cluster."""
    with operating(running, settings) as replica:
        yield Site(running, administrator(running), replica)


@contextmanager
def site_with(name: str, settings: Mapping[str, str]) -> Iterator[Site]:
    """The same on a cluster of its own, of this name."""
    with own_cluster(name) as running, site_on(running, settings) as site:
        yield site


@contextmanager
def team_on(site: Site) -> Iterator[Team]:
    """Tenants that go when the test is over."""
    with ExitStack() as stack:

        def make(**project: Any) -> Tenant:
            made = Tenant(site.admin).create(**project)
            stack.callback(made.delete)
            return made

        yield make
