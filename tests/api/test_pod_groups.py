"""Kubernetes' own gangs: pods that name a PodGroup, on an API server with its feature gate."""

from collections.abc import Iterator

import pytest
from tests.api.conftest import own_cluster
from tests.api.site import Site, Team, site_on
from tests.api.tenant import Json, Tenant, until
from tests.api.test_shares import SETTINGS, allocation, make_pod, running, template, wait_told

from cluster.programs import KUBERNETES_MINOR

pytestmark = pytest.mark.skipif(KUBERNETES_MINOR < 36, reason="the field is from 1.36")
API = f"scheduling.k8s.io/{'v1beta1' if KUBERNETES_MINOR >= 37 else 'v1alpha2'}"


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    gates = ("GenericWorkload=true",)
    with (
        own_cluster("groups", feature_gates=gates, apis=(API,)) as made,
        site_on(made, SETTINGS) as found,
    ):
        yield found


def pod_group(tenant: Tenant, name: str, policy: Json) -> None:
    path = f"/apis/{API}/namespaces/{tenant.name}/podgroups"
    body = {"metadata": {"name": name}, "spec": {"schedulingPolicy": policy}}
    answer = tenant.admin.create(path, body)
    assert answer.ok, answer


def member(group: str) -> Json:
    made = template("1", controlled=False)
    made["spec"]["schedulingGroup"] = {"podGroupName": group}
    return made


def test_as_many_as_the_podgroup_says_start_together_and_the_others_as_they_come(
    team: Team,
) -> None:
    tenant = team(quota=8)
    for name in ("a", "b"):
        make_pod(tenant, name, member("ring"))
    wait_told(tenant, "a", "no PodGroup ring is known in this namespace")
    pod_group(tenant, "ring", {"gang": {"minCount": 3}})
    wait_told(tenant, "a", "WaitingForGang")
    assert not any(map(allocation, tenant.pods()))
    make_pod(tenant, "c", member("ring"))
    until(lambda: len(running(tenant.pods())) == 3, "all three run")
    make_pod(tenant, "d", member("ring"))
    until(lambda: len(running(tenant.pods())) == 4, "and the next one by itself")


def test_of_a_basic_podgroup_each_starts_when_it_fits(team: Team) -> None:
    tenant = team(quota=8)
    pod_group(tenant, "some", {"basic": {}})
    make_pod(tenant, "a", member("some"))
    until(lambda: len(running(tenant.pods())) == 1, "it runs alone")
