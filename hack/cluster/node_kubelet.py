"""The real node's kubelet: configuration, start, readiness.

It registers with the labels of GPU feature discovery and its true CPU count and memory: what the
kubelet admits is checked against the real machine, so requests in examples stay small.
"""

from collections.abc import Mapping
from pathlib import Path

from cluster import node_packages, process
from cluster.node_layout import ADDRESS, CGROUP, NODE_NAME, NodeLayout, fill


def write_configuration(layout: NodeLayout, *, ca_file: Path) -> None:
    """Write the kubelet's configuration."""
    layout.static_pods.mkdir(parents=True, exist_ok=True)
    fill(
        "kubelet.yaml",
        layout.kubelet_config,
        address=ADDRESS,
        ca_file=ca_file,
        socket=layout.socket,
        pod_logs=layout.pod_logs,
        static_pods=layout.static_pods,
        volume_plugins=layout.folder / "volume-plugins",
        cgroup=CGROUP,
    )


def start(
    layout: NodeLayout,
    *,
    kubelet: Path,
    kubeconfig: Path,
    labels: Mapping[str, str],
    mark: Path,
) -> None:
    """Start the kubelet; it registers the node by itself.

    Args:
        layout: where its files are.
        kubelet: the program.
        kubeconfig: how it reaches the API server.
        labels: of the node.
        mark: the cluster's run folder, by which the cluster knows its processes.
    """
    process.spawn(
        [
            "/usr/bin/env",
            f"PATH={node_packages.PATH}",
            str(kubelet),
            f"--config={layout.kubelet_config}",
            f"--kubeconfig={kubeconfig}",
            f"--root-dir={layout.kubelet_root}",
            f"--cert-dir={layout.kubelet_root / 'pki'}",
            f"--hostname-override={NODE_NAME}",
            f"--node-ip={ADDRESS}",
            "--node-labels=" + ",".join(f"{key}={value}" for key, value in labels.items()),
        ],
        log=layout.kubelet_log,
        mark=mark,
    )
