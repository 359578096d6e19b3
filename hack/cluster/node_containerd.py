"""The real node's containerd: configuration, start, images.

A containerd of its own beside whatever the machine runs, with two runtime handlers: runc, and
``nvidia``, which is NVIDIA's container runtime as users have it.
"""

import time
from pathlib import Path

from cluster import node_packages, process
from cluster.commands import Done, run
from cluster.errors import ClusterError
from cluster.mounts import can_stack
from cluster.node_layout import RUN, NodeLayout, fill

START_TIMEOUT_SECONDS = 120.0


class ContainerdFailed(ClusterError):
    """containerd did not start or refused an image; the message ends with its log or answer."""


def write_configuration(
    layout: NodeLayout, *, nvidia_container_runtime: Path, pause_image: str
) -> None:
    """Write containerd's configuration and that of NVIDIA's container runtime."""
    runc = node_packages.program(node_packages.RUNC)
    fill(
        "containerd.toml",
        layout.containerd_config,
        root=layout.containerd_root,
        state=layout.state,
        socket=layout.socket,
        pause_image=pause_image,
        cni_plugins=node_packages.program(node_packages.CNI).parent,
        cni_config=layout.cni_config,
        snapshotter="overlayfs" if can_stack(layout.folder) else "native",
        runc=runc,
        runc_state=layout.runc_state,
        nvidia_container_runtime=nvidia_container_runtime,
    )
    nvidia = layout.xdg_config / "nvidia-container-runtime" / "config.toml"
    log, template = layout.nvidia_log, "nvidia-container-runtime.toml"
    fill(template, nvidia, log=log, runc=runc, cdi=layout.cdi)


def start(layout: NodeLayout, *, mark: Path) -> None:
    """Start containerd and wait until it answers.

    Args:
        layout: where its files are.
        mark: the cluster's run folder, by which the cluster knows its processes.

    Raises:
        ContainerdFailed: when it does not, with the end of its log.
    """
    RUN.mkdir(mode=0o711, parents=True, exist_ok=True)
    process.spawn(
        [
            "/usr/bin/env",
            f"PATH={node_packages.PATH}",
            f"XDG_CONFIG_HOME={layout.xdg_config}",
            str(node_packages.program(node_packages.CONTAINERD)),
            f"--config={layout.containerd_config}",
        ],
        log=layout.containerd_log,
        mark=mark,
    )
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while ctr(layout, "version").returncode:
        if time.monotonic() > deadline:
            log = layout.containerd_log.read_text(errors="replace")[-2000:]
            raise ContainerdFailed(f"containerd does not answer:\n{log}")
        time.sleep(0.05)


def import_image(layout: NodeLayout, archive: Path) -> None:
    """Import a docker-archive under the names that it carries.

    Raises:
        ContainerdFailed: with containerd's answer.
    """
    done = ctr(layout, "--namespace=k8s.io", "images", "import", str(archive))
    if done.returncode:
        raise ContainerdFailed(f"{archive.name} was not imported: {done.stderr.strip()}")


def ctr(layout: NodeLayout, *arguments: str) -> Done:
    """Run containerd's own client against the node."""
    return run(["ctr", f"--address={layout.socket}", *arguments], check=False)
