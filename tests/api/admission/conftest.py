"""One cluster with the chart installed, and its users, for all tests of the chart's policies.

It is not the tier's shared one: there the operator may run as an administrator, whose placements
these policies would refuse.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.api.admission.objects import (
    ALLOCATION,
    ELSEWHERE,
    EXEMPT,
    LEADER,
    PROJECT,
    RELEASE,
    lead,
    make_namespace,
    make_project,
    picking,
    pod,
    pods,
    refused,
    wait_until,
)
from tests.api.caller import Caller
from tests.api.conftest import cluster_of

from cluster import Running, Settings

# A pod that is there before the policies are, with more of everything than they look through.
BEFORE = pod(ELSEWHERE, annotations={f"x/{n}": "" for n in range(1200)})
BEFORE["metadata"]["labels"] = BEFORE["metadata"]["annotations"]
BEFORE["metadata"]["finalizers"] = ["x/stays"]
BEFORE["spec"]["schedulingGates"] = [{"name": f"x/{n}"} for n in range(250)]

CHART = Path(__file__).parents[3] / "charts" / "gpu-scheduler"


@pytest.fixture(scope="package")
def cluster() -> Iterator[Running]:
    wanted = Settings(name=f"admission-{os.getpid()}", audit=True, owner=os.getpid())
    with cluster_of(wanted) as running:
        yield running


def caller(cluster: Running, user: str) -> Caller:
    return Caller(cluster.server, cluster.ca_file, cluster.token(user))


@pytest.fixture(scope="package")
def admin(cluster: Running) -> Caller:
    """A cluster administrator, after the chart was installed and the policies took effect."""
    admin = caller(cluster, "admin")
    make_namespace(admin, ELSEWHERE)
    answer = admin.create(pods(ELSEWHERE), BEFORE)
    assert answer.ok, answer.message
    cluster.helm("install", RELEASE, str(CHART), "-n", RELEASE, "--create-namespace")
    make_namespace(admin, PROJECT)
    admin.create(
        "/apis/node.k8s.io/v1/runtimeclasses",
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": "nvidia"},
            "handler": "nvidia",
        },
    )
    make_project(admin, PROJECT, [PROJECT])
    forged = pod(PROJECT, annotations={ALLOCATION: "{}"})
    wait_until(lambda: refused(admin.create(pods(PROJECT) + "?dryRun=All", forged)))
    wait_until(lambda: refused(admin.create(pods(PROJECT) + "?dryRun=All", picking(PROJECT))))
    binding = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "n"}}
    binding["metadata"] = {"name": "none", "annotations": {ALLOCATION: "{}"}}
    wait_until(lambda: refused(admin.create(pods(PROJECT, "none/binding"), binding)))
    return admin


@pytest.fixture(scope="package")
def editor(cluster: Running, admin: Caller) -> Caller:
    """A user with the `edit` role in both namespaces, once it is aggregated."""
    editor = caller(cluster, "edit-user")
    wait_until(lambda: editor.may("create", "gpujobs", PROJECT, group="gpu-scheduler.io"))
    wait_until(lambda: editor.may("create", "pods", ELSEWHERE))
    return editor


@pytest.fixture(scope="package")
def exempt(admin: Caller, editor: Caller) -> str:
    """A namespace in which pods may pick GPUs, for the same users."""
    make_namespace(admin, EXEMPT)
    wait_until(lambda: editor.may("create", "pods", EXEMPT))
    return EXEMPT


def account_token(admin: Caller, bound_to: dict[str, str] | None = None) -> str:
    """A token of the operator's own service account; ``bound_to``: the pod that it is given to."""
    spec = {"boundObjectRef": bound_to} if bound_to else {}
    answer = admin.create(
        f"/api/v1/namespaces/{RELEASE}/serviceaccounts/{RELEASE}/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
    )
    assert answer.ok, answer.message
    return str(answer.body["status"]["token"])


@pytest.fixture(scope="package")
def operator(cluster: Running, admin: Caller) -> Caller:
    """The operator's own service account, with a token as anybody could have stolen it."""
    operator = Caller(cluster.server, cluster.ca_file, account_token(admin))
    wait_until(lambda: operator.may("create", "pods", PROJECT))
    wait_until(lambda: refused(operator.create(pods(PROJECT), pod(PROJECT))))
    return operator


@pytest.fixture(scope="package")
def replica(cluster: Running, admin: Caller, operator: Caller) -> tuple[str, Caller]:
    """A pod of the operator, and the token that it gets."""
    answer = admin.create(pods(RELEASE), pod(RELEASE, serviceAccountName=RELEASE))
    assert answer.ok, answer.message
    meta = answer.body["metadata"]
    bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
    caller = Caller(cluster.server, cluster.ca_file, account_token(admin, bound))
    return pods(RELEASE, meta["name"]), caller


@pytest.fixture
def term(admin: Caller, operator: Caller) -> Iterator[str]:
    """The term of a leader, as the LimitRange tells it and the policies know it."""
    lead(admin, operator, "leader-a", 3)
    yield "leader-a/3"
    assert admin.send("DELETE", LEADER).ok
