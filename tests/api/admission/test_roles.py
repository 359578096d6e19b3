"""What the operator and people may do, as the API server's authorizer sees it."""

import pytest
from tests.api.admission.objects import PROJECT, RELEASE
from tests.api.caller import Caller

from cluster import Running


@pytest.mark.parametrize(
    ("verb", "resource", "group"),
    [
        ("watch", "gpujobs", "gpu-scheduler.io"),
        ("delete", "gpujobs", "gpu-scheduler.io"),
        ("patch", "gpujobs/status", "gpu-scheduler.io"),
        ("patch", "gpuprojects/status", "gpu-scheduler.io"),
        ("watch", "gpuclasses", "gpu-scheduler.io"),
        ("patch", "gpuclasses/status", "gpu-scheduler.io"),
        ("create", "jobs", "batch"),
        ("delete", "jobs", "batch"),
        ("watch", "namespaces", ""),
        ("create", "pods", ""),
        ("delete", "pods", ""),
        ("create", "pods/binding", ""),
        ("create", "pods/eviction", ""),
        ("patch", "pods/status", ""),
        ("get", "persistentvolumeclaims", ""),
        ("create", "services", ""),
        ("create", "events", ""),
        ("list", "events", ""),
        ("watch", "resourcequotas", ""),
        ("create", "tokenreviews", "authentication.k8s.io"),
    ],
)
def test_the_operator_may(operator: Caller, verb: str, resource: str, group: str) -> None:
    assert operator.may(verb, resource, PROJECT, group=group)


@pytest.mark.parametrize(
    ("verb", "resource", "group"),
    [
        ("get", "secrets", ""),
        ("list", "secrets", ""),
        ("watch", "secrets", ""),
        ("create", "serviceaccounts/token", ""),
        ("list", "customresourcedefinitions", "apiextensions.k8s.io"),
        ("list", "configmaps", ""),
        ("delete", "namespaces", ""),
        ("patch", "namespaces", ""),
        ("create", "pods/exec", ""),
        ("get", "nodes", ""),
        ("patch", "nodes", ""),
        ("delete", "services", ""),
        ("get", "gpujobs", "gpu-scheduler.io"),
        ("patch", "gpujobs", "gpu-scheduler.io"),
        ("create", "gpuprojects", "gpu-scheduler.io"),
        ("patch", "gpuclasses", "gpu-scheduler.io"),
        ("patch", "gpunodes/status", "gpu-scheduler.io"),
        ("update", "gpujobs/status", "gpu-scheduler.io"),
        ("patch", "events", ""),
        ("watch", "events", ""),
        ("patch", "resourcequotas", ""),
        ("get", "leases", "coordination.k8s.io"),
        ("create", "clusterrolebindings", "rbac.authorization.k8s.io"),
        ("impersonate", "users", ""),
        ("create", "subjectaccessreviews", "authorization.k8s.io"),  # the dashboard is off
    ],
)
def test_the_operator_may_not(operator: Caller, verb: str, resource: str, group: str) -> None:
    assert not operator.may(verb, resource, PROJECT, group=group)


def test_the_operator_holds_leases_in_its_own_namespace_alone(operator: Caller) -> None:
    assert operator.may("create", "leases", RELEASE, group="coordination.k8s.io")
    assert not operator.may("create", "leases", PROJECT, group="coordination.k8s.io")


def test_people_write_jobs_but_neither_status_nor_projects_nor_bindings(editor: Caller) -> None:
    ours = "gpu-scheduler.io"
    for verb in ("create", "patch", "delete", "list"):
        assert editor.may(verb, "gpujobs", PROJECT, group=ours)
    assert not editor.may("patch", "gpujobs/status", PROJECT, group=ours)
    assert not editor.may("create", "gpuprojects", group=ours)
    assert not editor.may("patch", "gpunodes", group=ours)
    assert not editor.may("create", "gpuclasses", group=ours)
    assert not editor.may("create", "pods/binding", PROJECT)
    assert not editor.may("create", "bindings", PROJECT)


def test_viewers_read_jobs(cluster: Running, editor: Caller) -> None:
    viewer = Caller(cluster.server, cluster.ca_file, cluster.token("view-user"))
    assert viewer.may("list", "gpujobs", PROJECT, group="gpu-scheduler.io")
    assert not viewer.may("create", "gpujobs", PROJECT, group="gpu-scheduler.io")
