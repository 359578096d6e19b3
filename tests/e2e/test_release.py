"""What `make release` makes of chart and images is what runs: helm installs it on the real node.

As a user would: the packaged chart, the images from their archives under the names that the chart
expects, and no value that names an image.
"""

import json
from pathlib import Path

import pytest
from tests.e2e.ahead import Ahead
from tests.e2e.metrics import end_term
from tests.e2e.waits import TIMEOUT, until

from cluster import Running, real_node
from cluster.credentials import REAL_NODE_NAME
from cluster.images_operator import tag_of
from demo import install
from release.images import NAME


@pytest.fixture
def bare(real_cluster: Running) -> Running:
    """Without the tier's own release. Who wants that afterwards installs it."""
    where = ("-n", install.RELEASE, "--ignore-not-found", "--wait", TIMEOUT)
    real_cluster.helm("uninstall", install.RELEASE, *where)
    (real_cluster.folder / "release").unlink(missing_ok=True)
    # helm waits for what it made, and pods are made by that: they have images of their own.
    pods = ("get", "pods", "-n", install.RELEASE, "-o", "name")
    until(lambda: not real_cluster.kubectl(*pods).stdout, "its pods are gone")
    end_term(real_cluster)
    return real_cluster


def test_helm_installs_the_packaged_chart_with_the_archives_images(
    bare: Running, made_ahead: Ahead, tmp_path: Path
) -> None:
    assert made_ahead.packaged is not None
    packaged = made_ahead.packaged.result()
    for archive in packaged.images:
        real_node.import_image(bare, archive)
    bare.helm(
        *(
            "install",
            install.RELEASE,
            str(packaged.chart),
            "-n",
            install.RELEASE,
            "--create-namespace",
        ),
        "--set=image.pullPolicy=Never",
        f"--set=nodeSelector.kubernetes\\.io/hostname={REAL_NODE_NAME}",
    )
    where = ("-n", install.RELEASE, TIMEOUT)
    for workload in (f"deployment/{install.RELEASE}", f"daemonset/{install.RELEASE}-agent"):
        bare.kubectl("rollout", "status", workload, *where)
    pods = json.loads(bare.kubectl("get", "pods", "-n", install.RELEASE, "-o", "json").stdout)
    images = {c["image"] for pod in pods["items"] for c in pod["spec"]["containers"]}
    of_operator = f"{NAME}:{packaged.tag}"
    assert images == {of_operator, tag_of("agent", of_operator)}

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
    bare.kubectl("create", "namespace", "released")
    try:
        for body in (project, job):
            file = tmp_path / "object.json"
            file.write_text(json.dumps(body))
            bare.kubectl("apply", "-f", str(file))
        until(lambda: phase(bare) == "Succeeded", "the job has succeeded")
    finally:
        bare.kubectl("delete", "gpujob", "released", "-n", "released", "--ignore-not-found")
        bare.kubectl("delete", "gpuproject", "released", "--ignore-not-found")
        bare.kubectl("delete", "namespace", "released", "--wait=false")


def phase(running: Running) -> str:
    path = "-o=jsonpath={.status.phase}"
    return running.kubectl("get", "gpujob", "released", "-n", "released", path).stdout
