"""A cluster with the chart's policies, and replicas on it that act as the operator's account.

Whoever else places is not held to the term of a leader, so the tests of the fence need both.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.api.conftest import administrator, cluster_of, settings
from tests.api.replica import LEASE_NAMESPACE, ROOT, Replica
from tests.api.tenant import until

from cluster import Running
from cluster.credentials import render_kubeconfig

RELEASE = "gpu-scheduler"
CHART = ROOT / "charts" / "gpu-scheduler"
_VALUES = ("crds.enabled=false", "agent.enabled=false")


@contextmanager
def fenced_cluster(purpose: str) -> Iterator[Running]:
    """Four Dell servers of two A100s each, and the release without any pod of its own."""
    with cluster_of(settings(purpose)) as running:
        options = [part for value in _VALUES for part in ("--set", value)]
        where = ("--namespace", LEASE_NAMESPACE, "--create-namespace")
        running.helm("install", RELEASE, str(CHART), *where, *options)
        deployment = ("deployment", RELEASE, "--replicas=0")
        running.kubectl("--namespace", LEASE_NAMESPACE, "scale", *deployment)
        _write_kubeconfig(running)
        yield running


def operator_kubeconfig(running: Running) -> Path:
    return running.folder / "operator.kubeconfig"


def replica(
    running: Running, name: str, chosen: Mapping[str, str], kubeconfig: Path | None = None
) -> Replica:
    """A replica with the operator's token; ``kubeconfig``: one that leads through a proxy."""
    way = kubeconfig or operator_kubeconfig(running)
    return Replica(running, name, dict(chosen), kubeconfig=way)


def in_force(running: Running) -> None:
    """Until the policies judge: a leader's term that is none is refused."""
    until(lambda: is_refused(running, "nobody/0"), "the policies are in force")


def is_refused(running: Running, term: str) -> bool:
    """Whether the API server refuses a placing write of a term, asked as a dry run."""
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": "nobody",
            "labels": {"gpu-scheduler.io/path": "bind"},
            "annotations": {"gpu-scheduler.io/term": term},
        },
        "target": {"kind": "Node", "name": "none"},
    }
    path = f"/api/v1/namespaces/{LEASE_NAMESPACE}/pods/nobody/binding?dryRun=All"
    return administrator(running).create(path, binding).status in (403, 422)


def _write_kubeconfig(running: Running) -> None:
    token = running.kubectl(
        "--namespace", LEASE_NAMESPACE, "create", "token", RELEASE, "--duration=24h"
    ).stdout.strip()
    path = operator_kubeconfig(running)
    path.touch(mode=0o600)
    path.write_text(
        render_kubeconfig(
            name=running.name, server=running.server, ca_file=running.ca_file, token=token
        )
    )
    in_force(running)
