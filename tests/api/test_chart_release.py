"""Install, upgrade, uninstall, install again: what a release leaves behind, and what not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.api.conftest import bare_settings, cluster_of
from tests.api.tenant import until

from cluster import Running

CHART = Path(__file__).parents[2] / "charts" / "gpu-scheduler"
CRDS = CHART / "files" / "crds"
RELEASE = "gpu-scheduler"
PROJECT = """
apiVersion: gpu-scheduler.io/v1alpha1
kind: GPUProject
metadata: {name: team-a}
spec: {namespaces: [team-a], quota: 1}
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with cluster_of(bare_settings("release")) as running:
        yield running


def release(cluster: Running, verb: str, *values: str) -> str:
    return cluster.helm(verb, RELEASE, str(CHART), "-n", RELEASE, *values).stdout


def is_known(cluster: Running, plural: str) -> bool:
    """Whether kubectl knows what that is."""
    return cluster.kubectl("get", plural, check=False).returncode == 0


def named(cluster: Running, kinds: str) -> set[str]:
    """Names of the objects of some kinds that belong to the release."""
    label = f"app.kubernetes.io/part-of={RELEASE}"
    return set(cluster.kubectl("get", kinds, "-A", "-l", label, "-o", "name").stdout.split())


def test_a_release_comes_changes_goes_and_comes_back(cluster: Running) -> None:
    notes = release(cluster, "install", "--create-namespace")
    assert "kind: GPUProject" in notes
    assert "kind: GPUJob" in notes
    cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    until(lambda: is_known(cluster, "gpuprojects"), "discovery, which kubectl asks, has the kind")
    cluster.kubectl("apply", "-f", "-", input=PROJECT)

    release(cluster, "upgrade", "--set=replicaCount=1", "--set=admission.enabled=false")
    deployment = cluster.kubectl("get", "deployment", RELEASE, "-n", RELEASE, "-o", "yaml").stdout
    assert "replicas: 1" in deployment
    assert not named(cluster, "validatingadmissionpolicies,poddisruptionbudgets")

    cluster.helm("uninstall", RELEASE, "-n", RELEASE)
    assert not named(cluster, "deployments,services,serviceaccounts,clusterroles,priorityclasses")
    ours = len(list(CRDS.glob("*.yaml")))
    assert len(named(cluster, "crds")) == ours, "crds.keep leaves them"
    assert "team-a" in cluster.kubectl("get", "gpuprojects").stdout

    release(cluster, "install")
    assert f"validatingadmissionpolicy.admissionregistration.k8s.io/{RELEASE}-operator" in named(
        cluster, "validatingadmissionpolicies"
    )
    assert "team-a" in cluster.kubectl("get", "gpuprojects").stdout


def delete_crds(cluster: Running, *which: str) -> str:
    """Why they are not deleted; empty: they would be."""
    done = cluster.kubectl("delete", *which, "--dry-run=server", check=False)
    return done.stderr if done.returncode else ""


def test_crds_go_with_a_release_that_was_told_so_and_by_no_slip_of_the_hand(
    cluster: Running,
) -> None:
    release(cluster, "upgrade", "--install", "--create-namespace")
    crds = sorted(path.stem.replace("gpu-scheduler.io_", "") for path in CRDS.glob("*.yaml"))
    names = [f"{plural}.gpu-scheduler.io" for plural in crds]
    until(lambda: delete_crds(cluster, "crd", names[0]), "the policy is in force")
    for which in (("crd", "--all"), ("-f", str(CRDS))):
        said = delete_crds(cluster, *which)
        for name in names:
            assert f"kubectl annotate crd {name} gpu-scheduler.io/allow-deletion=true" in said
    cluster.kubectl("annotate", "crd", names[0], "gpu-scheduler.io/allow-deletion=true")
    assert not delete_crds(cluster, "crd", names[0])

    release(cluster, "upgrade", "--set=crds.keep=false")
    cluster.helm("uninstall", RELEASE, "-n", RELEASE)
    until(lambda: not named(cluster, "crds,validatingadmissionpolicies"), "nothing is left")
