"""What `make release` makes of chart and images is what runs: helm installs it on the real node.

As a user would: the packaged chart, the images from their archives under the names that the chart
expects, and no value that names an image.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.api.tenant import until
from tests.e2e.conftest import install_chart

from cluster import Running, build, real_node
from cluster.credentials import REAL_NODE_NAME
from cluster.images import native_architecture
from demo import install
from release import chart
from release.images import NAMES, Builder
from release.source import Source, export
from release.version import image_tag

ROOT = Path(__file__).parents[2]


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return export(ROOT, tmp_path / "source", allow_dirty=True)


@pytest.fixture
def away(real_cluster: Running) -> Iterator[Running]:
    """Without the tier's own release, which comes back afterwards."""
    running = real_cluster
    where = ("-n", install.RELEASE, "--ignore-not-found", "--wait", "--timeout=5m")
    running.helm("uninstall", install.RELEASE, *where)
    try:
        yield running
    finally:
        running.helm("uninstall", install.RELEASE, *where)
        (running.folder / "release").unlink(missing_ok=True)
        install_chart(running)


def test_helm_installs_the_packaged_chart_with_the_archives_images(
    away: Running, source: Source, tmp_path: Path
) -> None:
    builder = Builder(source, (native_architecture(),))
    tag = image_tag(source.version)
    for target in ("operator", "agent"):
        path = tmp_path / f"{target}.oci.tar"
        path.write_bytes(builder.archive(target))
        real_node.import_image(away, path)
    package = tmp_path / "chart.tgz"
    package.write_bytes(chart.package(source, build.binary("helm")))

    away.helm(
        *("install", install.RELEASE, str(package), "-n", install.RELEASE, "--create-namespace"),
        "--set=image.pullPolicy=Never",
        f"--set=nodeSelector.kubernetes\\.io/hostname={REAL_NODE_NAME}",
    )
    where = ("-n", install.RELEASE, "--timeout=180s")
    for workload in (f"deployment/{install.RELEASE}", f"daemonset/{install.RELEASE}-agent"):
        away.kubectl("rollout", "status", workload, *where)
    pods = json.loads(away.kubectl("get", "pods", "-n", install.RELEASE, "-o", "json").stdout)
    images = {c["image"] for pod in pods["items"] for c in pod["spec"]["containers"]}
    assert images == {f"{NAMES[target][0]}:{tag}" for target in ("operator", "agent")}

    job = {
        "apiVersion": "gpu-scheduler.io/v1alpha1",
        "kind": "GPUJob",
        "metadata": {"name": "released", "namespace": "released"},
        "spec": {"gpu": 0.5, "image": "gpu-scheduler/quickstart:1", "command": ["quickstart", "1"]},
    }
    project = {
        "apiVersion": "gpu-scheduler.io/v1alpha1",
        "kind": "GPUProject",
        "metadata": {"name": "released"},
        "spec": {"namespaces": ["released"], "quota": 1, "limit": 1},
    }
    away.kubectl("create", "namespace", "released")
    try:
        for body in (project, job):
            file = tmp_path / "object.json"
            file.write_text(json.dumps(body))
            away.kubectl("apply", "-f", str(file))
        until(lambda: phase(away) == "Succeeded", "the job has succeeded", 120)
    finally:
        away.kubectl("delete", "gpujob", "released", "-n", "released", "--ignore-not-found")
        away.kubectl("delete", "gpuproject", "released", "--ignore-not-found")
        away.kubectl("delete", "namespace", "released", "--wait=false")


def phase(running: Running) -> str:
    path = "-o=jsonpath={.status.phase}"
    return running.kubectl("get", "gpujob", "released", "-n", "released", path).stdout
