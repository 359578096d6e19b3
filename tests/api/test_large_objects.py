"""Objects at the API server's own limits: what cannot be read is told, and keeps nobody waiting."""

import sys
from collections.abc import Iterator

import pytest
from tests.api.replica import CALM_LEASE
from tests.api.site import Site, Team
from tests.api.tenant import GROUP, Json, Tenant

CONTAINERS = [{"name": "main", "image": "example/placeholder:1"}]
DEPTH = 5000
SETTINGS = CALM_LEASE


@pytest.fixture
def deep_stack() -> Iterator[None]:
    """The test itself has to read what it wrote."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(4 * DEPTH)
    yield
    sys.setrecursionlimit(before)


def template(**pod: object) -> Json:
    return {"spec": {"containers": CONTAINERS, **pod}}


def submit_deep(tenant: Tenant) -> bool:
    """A GPUJob that is nested so deep; whether the API server has taken it."""
    text = (
        '{"apiVersion":"gpu-scheduler.io/v1alpha1","kind":"GPUJob","metadata":{"name":"deep"},'
        '"spec":{"gpu":0.5,"template":{"spec":{"containers":[{"name":"main","image":"x"}],"foo":'
        + "[" * DEPTH
        + "]" * DEPTH
        + "}}}}"
    )
    return tenant.admin.send("POST", f"{GROUP}/namespaces/{tenant.name}/gpujobs", text.encode()).ok


def test_what_is_too_large_is_invalid_and_a_new_leader_reads_the_rest(
    site: Site, team: Team, deep_stack: None
) -> None:
    tenant = team(quota=2)
    tenant.submit("elements", gpu=0.5, template=template(foo=[{}] * 40_000))
    tenant.submit("long", gpu=0.5, args=["x" * 300_000])
    taken = submit_deep(tenant)
    try:
        assert "fields and entries" in tenant.wait_reason("elements", "Invalid")
        assert "at most 262144 are read" in tenant.wait_reason("long", "Invalid")
        if taken:
            assert "nested" in tenant.wait_reason("deep", "Invalid")
        site.replica.kill()
        site.restart()
        tenant.submit("good", gpu=0.5)
        tenant.wait_placed("good", 1)
    finally:
        if taken:
            tenant.remove("deep")
