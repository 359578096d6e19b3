"""The real node of a local cluster: this machine's kubelet and containerd, pretended A100s.

Needs root on Linux; a
machine holds one real node at a time. Whatever ``start`` puts on the machine ``stop`` takes away,
also when the cluster or this process was killed in between.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cluster import (
    fake_driver,
    images,
    node_cgroups,
    node_cleanup,
    node_containerd,
    node_gpus,
    node_kubelet,
    node_network,
    node_owner,
    node_packages,
    process,
)
from cluster.credentials import kubeconfig_file
from cluster.errors import ClusterError
from cluster.fake_driver import FakeDriver
from cluster.node_layout import NODE_NAME, NodeLayout
from cluster.node_owner import Owner
from cluster.progress import say
from cluster.running import Running

READY_TIMEOUT_SECONDS = 180.0
# What is made once, before a node can start; each may be called ahead, beside other work.
PARTS: tuple[Callable[[], object], ...] = (
    fake_driver.binaries,
    images.pause_archive,
    images.quickstart_archive,
)

RUNTIME_CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "nvidia"},
    "handler": "nvidia",
}


def start(running: Running) -> None:
    """Start the node and wait until pods can be placed on it.

    Raises:
        ClusterError: not root, another cluster has the node, or a part did not start.
    """
    begin(running)
    join(running)


def begin(running: Running, archives: Iterable[Path] = ()) -> None:
    """Start what needs no API server: network, pretended driver, containerd with its images.

    Args:
        running: the cluster that the node will join.
        archives: of further images, as for ``import_image``.

    Raises:
        ClusterError: not root, another cluster has the node, or a part did not start.
    """
    if sys.platform != "linux" or os.geteuid() != 0:
        raise ClusterError("a real node needs root on Linux; without it, use fake nodes only")
    node_packages.ensure_packages(node_packages.NODE)
    layout = node_layout(running)
    if more := layout.bytes_too_many():
        raise ClusterError(
            f"{layout.folder} is {more} bytes too long for the kubelet's sockets: "
            "GPU_SCHEDULER_CACHE moves it to a shorter path"
        )
    with node_owner.lock():
        _make_room(running)
        with _cleaned(layout):
            _begin(running, layout)
    for archive in archives:
        import_image(running, archive)


def join(running: Running) -> None:
    """Start the kubelet of a node that has begun, and wait until pods can be placed on it.

    Raises:
        ClusterError: a part did not start.
    """
    layout = node_layout(running)
    with node_owner.lock(), _cleaned(layout):
        _join(running, layout)


@contextmanager
def _cleaned(layout: NodeLayout) -> Iterator[None]:
    """Nothing is left of a node that did not start."""
    try:
        yield
    except BaseException:
        node_cleanup.clean(layout)
        raise


def stop(running: Running) -> None:
    """Take the node away; nothing happens when the machine's node is not this cluster's."""
    if os.geteuid() != 0:
        return
    with node_owner.lock():
        owner = node_owner.current()
        if owner is not None and owner.folder == str(node_layout(running).folder):
            node_cleanup.clean(node_layout(running))


def import_image(running: Running, archive: Path) -> None:
    """Make an archive's images available to pods, under the names that it carries.

    One of the cache (a digest is in its name) is imported once, until another of its kind is.
    """
    layout = node_layout(running)
    kind, _, digest = archive.stem.rpartition("-")
    given = layout.images / kind
    if kind and given.exists() and given.read_text() == digest:
        return
    node_containerd.import_image(layout, archive)
    if kind:
        given.parent.mkdir(exist_ok=True)
        given.write_text(digest)


def driver(running: Running) -> FakeDriver:
    """The node's pretended NVIDIA driver: to break its devices, and to see what is used."""
    return FakeDriver(fake_driver.binaries(), node_layout(running).fakegpu)


def node_layout(running: Running) -> NodeLayout:
    """Where this cluster's real node keeps its things."""
    return NodeLayout(running.folder.resolve() / "real-node")


def _make_room(running: Running) -> None:
    owner = node_owner.current()
    if owner is not None:
        own = owner.folder == str(node_layout(running).folder)
        if not own and owner.is_alive():
            raise node_owner.RealNodeTaken(
                f"this machine's real node belongs to the cluster {owner.cluster!r} "
                f"({Path(owner.folder).parent}): stop that one first, or use fake nodes only"
            )
        say(f"removing what is left of the real node of {owner.cluster!r}")
        node_cleanup.clean(NodeLayout(Path(owner.folder)))
    if kubelets := process.outside_containers("kubelet"):
        raise ClusterError(
            f"this machine is a Kubernetes node already (kubelet, pid {kubelets[0].pid}); a second "
            "kubelet would take its devices away: use fake nodes only"
        )


def _begin(running: Running, layout: NodeLayout) -> None:
    layout.logs.mkdir(parents=True, exist_ok=True)
    # On record before anything exists: a crash from here on leaves an owner to clean up after.
    node_owner.record(
        Owner(
            cluster=running.name,
            folder=str(layout.folder),
            server=running.server,
            ca_file=str(running.ca_file),
        )
    )
    node_network.up()
    node_cgroups.create()
    node_network.write_cni(layout)
    pretended = FakeDriver(fake_driver.binaries(), layout.fakegpu)
    gpus = node_gpus.pretended(running.state.gpus)
    pretended.configure(
        node_gpus.driver_configuration(context_mib=fake_driver.CONTEXT_MIB, gpus=gpus)
    )
    node_gpus.write_cdi(layout.cdi, driver=pretended, gpus=gpus)
    node_containerd.write_configuration(
        layout,
        nvidia_container_runtime=running.binary("nvidia-container-runtime"),
        pause_image=images.PAUSE,
    )
    node_containerd.start(layout, mark=running.folder)
    for archive in (images.pause_archive(), images.quickstart_archive()):
        node_containerd.import_image(layout, archive)


def _join(running: Running, layout: NodeLayout) -> None:
    node_kubelet.write_configuration(layout, ca_file=running.ca_file)
    node_kubelet.start(
        layout,
        kubelet=running.binary("kubelet"),
        kubeconfig=kubeconfig_file(running.folder, "kubelet"),
        labels=node_gpus.node_labels(node_gpus.pretended(running.state.gpus)),
        mark=running.folder,
    )
    running.kubectl("apply", "-f", "-", input=json.dumps(RUNTIME_CLASS))
    _wait_until_ready(running, layout)


def _wait_until_ready(running: Running, layout: NodeLayout) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        answer = running.kubectl(
            "get", "node", NODE_NAME, "--ignore-not-found", "-o", "json"
        ).stdout
        if answer and _is_ready(json.loads(answer)):
            return
        time.sleep(0.2)
    log = layout.kubelet_log.read_text(errors="replace")[-2000:]
    raise ClusterError(f"node {NODE_NAME} is not Ready after {READY_TIMEOUT_SECONDS:.0f} s:\n{log}")


def _is_ready(node: dict[str, Any]) -> bool:
    """Ready, and the node-lifecycle controller has taken the not-ready taint off again."""
    conditions: Sequence[dict[str, str]] = node["status"].get("conditions", ())
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and not node["spec"].get("taints")
