"""The product on a cluster: the chart with the images of this checkout, or a process on this host.

Both are idempotent. With a real node the chart is installed as anybody would install it; its pods
are real containers of the image built from operator/Dockerfile. Called by the demo and by the
end-to-end tests.
"""

import hashlib
import json
import os
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from cluster import ClusterError, Running, images_operator, process, real_node
from cluster.credentials import REAL_NODE_NAME

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "gpu-scheduler"
RELEASE = "gpu-scheduler"  # also its namespace, and the name of its Deployment
REPOSITORY, TAG = "gpu-scheduler/operator", "dev"
READY_SECONDS = 180
HOST_OPERATOR = "operator"


def build_images(*, dashboard: bool = False) -> tuple[Path, ...]:
    """Both images as archives; what was built before of the same sources is kept.

    Args:
        dashboard: the operator's has the front end, which is built.
    """
    return tuple(map(_built, ("operator-dashboard" if dashboard else "operator", "agent")))


def give_images(running: Running, archives: Iterable[Path]) -> str:
    """Give the real node images unless it has them; a digest of what they were built from."""
    return ".".join(_given(running, archive) for archive in archives)


def images(running: Running) -> str:
    """``build_images`` and ``give_images``."""
    return give_images(running, build_images())


def dashboard_image() -> str:
    """The name of the operator's image with the front end, as the chart has it."""
    return images_operator.tag_of("operator-dashboard", f"{REPOSITORY}:{TAG}")


def build_tpe_image() -> Path:
    """As ``build_images``, for the operator's image with Optuna."""
    return _built("operator-tpe")


def tpe_image(running: Running) -> str:
    """As ``images``, for the operator's image with Optuna: ``sweeps.tpe`` in the chart."""
    return _given(running, build_tpe_image())


def _built(target: str) -> Path:
    tag = images_operator.tag_of(target, f"{REPOSITORY}:{TAG}")
    return images_operator.build_image(target, tag, compiled_here=True)


def _given(running: Running, archive: Path) -> str:
    """Give the real node an image; a digest of what is in it."""
    real_node.import_image(running, archive)
    return archive.stem


def chart(
    running: Running,
    *,
    image: str,
    more: tuple[str, ...] = (),
    folder: Path = CHART,
    tag: str = TAG,
) -> bool:
    """`helm upgrade --install`, and wait until every replica is ready.

    Args:
        running: the cluster, with a real node.
        image: from `images`; another one rolls everything out anew.
        more: further options for helm, such as ``--set=key=value``.
        folder: the chart.
        tag: of the images.

    Returns:
        False when just that was installed already.

    Raises:
        ClusterError: helm refused, or replicas or agent did not become ready; with their last
            words.
    """
    options = (
        f"--set=image.repository={REPOSITORY},image.tag={tag},image.pullPolicy=Never",
        # A real program needs a real node: fake ones would only say that it runs.
        f"--set=nodeSelector.kubernetes\\.io/hostname={REAL_NODE_NAME}",
        f"--set=podAnnotations.image={image},agent.podAnnotations.image={image}",
        *more,
    )
    stamp, wanted = running.folder / "release", _digest(options, folder)
    if stamp.exists() and stamp.read_text() == wanted and _ready(running, seconds=10):
        return False
    stamp.unlink(missing_ok=True)
    _clear_interrupted(running)
    where = ("-n", RELEASE, "--create-namespace")
    running.helm("upgrade", "--install", RELEASE, str(folder), *where, *options)
    if not _ready(running, seconds=READY_SECONDS):
        raise ClusterError(f"the operator is not ready after {READY_SECONDS} s\n{_why(running)}")
    running.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    stamp.write_text(wanted)
    return True


def on_host(running: Running) -> bool:
    """CRDs, and the operator as one process beside the cluster, which ends with it.

    Returns:
        False when it ran already.

    Raises:
        ClusterError: it did not take the lead; with the end of its log.
    """
    running.kubectl("apply", "-f", str(ROOT / "crds"))
    running.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    before = running.processes.get(HOST_OPERATOR)
    if before is not None and process.is_alive(before):
        return False
    running.kubectl("create", "namespace", RELEASE, check=False)
    path = os.pathsep.join((str(ROOT / "operator"), os.environ.get("PYTHONPATH", "")))
    running.run_process(
        HOST_OPERATOR,
        ("/usr/bin/env", f"KUBECONFIG={running.kubeconfig}", f"PYTHONPATH={path}",
         "GPUSCHED_ADMIN_PORT=0", f"GPUSCHED_LEASE_NAMESPACE={RELEASE}",
         sys.executable, "-m", "gpu_scheduler.main", "operator"),
    )  # fmt: skip
    log = running.log_file(HOST_OPERATOR)
    running.wait_for(HOST_OPERATOR, lambda: " synced: " in log.read_text(), seconds=60)
    return True


PROGRAMS = {
    "gpu-scheduler": "main",
    "kubectl-gpu": "kubectl_gpu",
    "kubectl_complete-gpu": "kubectl_complete",
}


def command(running: Running) -> Path:
    """Put `kubectl gpu` of this checkout where the cluster's shell finds programs; that folder."""
    folder = running.link_programs()
    source, python = shlex.quote(str(ROOT / "operator")), shlex.quote(sys.executable)
    for name, function in PROGRAMS.items():
        path = folder / name
        run = f"{python} -c 'from gpu_scheduler.main import {function}; {function}()' \"$@\""
        path.write_text(f"#!/bin/sh\nPYTHONPATH={source} exec {run}\n")
        path.chmod(0o755)
    return folder


def _ready(running: Running, *, seconds: int) -> bool:
    waits = (
        ("rollout", "status", f"deployment/{RELEASE}"),
        ("rollout", "status", f"daemonset/{RELEASE}-agent"),
        # Until the agent has told the devices, they are known by the node's labels alone.
        ("wait", "--for=create", f"gpunode/{REAL_NODE_NAME}"),
        ("wait", "--for=jsonpath={.status.devices}", f"gpunode/{REAL_NODE_NAME}"),
    )
    limit = ("-n", RELEASE, f"--timeout={seconds}s")
    return not any(running.kubectl(*wait, *limit, check=False).returncode for wait in waits)


def _clear_interrupted(running: Running) -> None:
    """A helm that was stopped half-way leaves a release that refuses to be upgraded."""
    answer = running.helm("status", RELEASE, "-n", RELEASE, "-o", "json", check=False)
    if answer.returncode == 0:
        status = str(json.loads(answer.stdout)["info"]["status"])
        if status.startswith("pending") or status == "failed":
            running.helm("uninstall", RELEASE, "-n", RELEASE, "--wait")


def _why(running: Running) -> str:
    found = [
        running.kubectl(*command, "-n", RELEASE, check=False).stdout
        for command in (
            ("get", "pods", "-o", "wide"),
            ("logs", f"deployment/{RELEASE}", "--tail=20"),
            ("logs", f"daemonset/{RELEASE}-agent", "--all-containers", "--tail=20"),
            ("get", "events", "--sort-by=.lastTimestamp"),
        )
    ]
    return "\n".join(text[-2000:] for text in found)


def _digest(options: tuple[str, ...], folder: Path) -> str:
    digest = hashlib.sha256("\0".join(options).encode())
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return digest.hexdigest()
