"""Install, upgrade, uninstall, install again: what a release leaves behind, and what not."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster import Running, Settings, down, up

CHART = Path(__file__).parents[2] / "charts" / "gpu-scheduler"
RELEASE = "gpu-scheduler"
PROJECT = """
apiVersion: gpu-scheduler.io/v1alpha1
kind: GPUProject
metadata: {name: team-a}
spec: {namespaces: [team-a], quota: 1}
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    running = up(Settings(name=f"release-{os.getpid()}", owner=os.getpid()))
    try:
        yield running
    finally:
        down(running.name)


def release(cluster: Running, verb: str, *values: str) -> str:
    return cluster.helm(verb, RELEASE, str(CHART), "-n", RELEASE, *values).stdout


def named(cluster: Running, kinds: str) -> set[str]:
    """Names of the objects of some kinds that belong to the release."""
    label = f"app.kubernetes.io/part-of={RELEASE}"
    return set(cluster.kubectl("get", kinds, "-A", "-l", label, "-o", "name").stdout.split())


def test_a_release_comes_changes_goes_and_comes_back(cluster: Running) -> None:
    notes = release(cluster, "install", "--create-namespace")
    assert "kind: GPUProject" in notes
    assert "kind: GPUJob" in notes
    cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    cluster.kubectl("apply", "-f", "-", input=PROJECT)

    release(cluster, "upgrade", "--set=replicaCount=1", "--set=admission.enabled=false")
    deployment = cluster.kubectl("get", "deployment", RELEASE, "-n", RELEASE, "-o", "yaml").stdout
    assert "replicas: 1" in deployment
    assert not named(cluster, "validatingadmissionpolicies,poddisruptionbudgets")

    cluster.helm("uninstall", RELEASE, "-n", RELEASE)
    assert not named(cluster, "deployments,services,serviceaccounts,clusterroles,priorityclasses")
    ours = len(list((CHART / "files/crds").glob("*.yaml")))
    assert len(named(cluster, "crds")) == ours, "crds.keep leaves them"
    assert "team-a" in cluster.kubectl("get", "gpuprojects").stdout

    release(cluster, "install")
    assert f"validatingadmissionpolicy.admissionregistration.k8s.io/{RELEASE}-operator" in named(
        cluster, "validatingadmissionpolicies"
    )
    assert "team-a" in cluster.kubectl("get", "gpuprojects").stdout
