"""Where the real node keeps its things, and the names it takes on the machine.

A machine holds one real node at a time, so its names (bridge, cgroup, run folder) are fixed: what
a crashed run left behind can be found without knowing that run. Sockets live under ``/run``
because their paths must stay below 108 bytes however deep the cluster's folder is; those of the
kubelet lie in its own folder, so that must not be too deep.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from cluster.credentials import REAL_NODE_NAME

NODE_NAME = REAL_NODE_NAME
BRIDGE = "gpusched0"  # at most 15 characters
NETWORK = "gpu-scheduler-real"  # of the CNI configuration; prefixes its result files
SUBNET = "10.97.0.0/24"
ADDRESS = "10.97.0.1"  # of the bridge: gateway of the pods and InternalIP of the node
CGROUP = "gpu-scheduler"
RUN = Path("/run/gpu-scheduler")
SOCKET_BYTES = 107  # the longest path of a socket


@dataclass(frozen=True, slots=True)
class NodeLayout:
    """Folders and files of the node; ``folder`` is below the cluster's own folder."""

    folder: Path

    def bytes_too_many(self) -> int:
        """How much shorter the path of ``folder`` has to be for the kubelet's sockets."""
        longest = self.kubelet_root / "pod-resources" / str(2**32 - 1)
        return max(0, len(os.fsencode(longest)) - SOCKET_BYTES)

    @property
    def logs(self) -> Path:
        """The cluster's logs; they stay when the node goes."""
        return self.folder.parent / "logs"

    @property
    def containerd_config(self) -> Path:
        """Also what its process is recognised by."""
        return self.folder / "containerd.toml"

    @property
    def containerd_root(self) -> Path:
        """Images and snapshots."""
        return self.folder / "containerd"

    @property
    def images(self) -> Path:
        """Which archives were imported, by kind."""
        return self.folder / "images"

    @property
    def containerd_log(self) -> Path:
        """Standard output and error of containerd."""
        return self.logs / "containerd.log"

    @property
    def kubelet_config(self) -> Path:
        """Also what its process is recognised by."""
        return self.folder / "kubelet.yaml"

    @property
    def kubelet_root(self) -> Path:
        """Pods' volumes; some of them are mounts."""
        return self.folder / "kubelet"

    @property
    def kubelet_log(self) -> Path:
        """Standard output and error of the kubelet."""
        return self.logs / "kubelet.log"

    @property
    def static_pods(self) -> Path:
        """Manifests of pods that the kubelet runs without being told by the API server."""
        return self.folder / "static-pods"

    @property
    def pod_logs(self) -> Path:
        """What the containers printed."""
        return self.folder / "pod-logs"

    @property
    def cni_config(self) -> Path:
        """The folder of the network's configuration."""
        return self.folder / "cni"

    @property
    def addresses(self) -> Path:
        """Pod addresses that are taken."""
        return self.folder / "addresses"

    @property
    def xdg_config(self) -> Path:
        """XDG_CONFIG_HOME of containerd, for NVIDIA's container runtime."""
        return self.folder / "xdg"

    @property
    def nvidia_log(self) -> Path:
        """What NVIDIA's container runtime did for each container."""
        return self.logs / "nvidia-container-runtime.log"

    @property
    def cdi(self) -> Path:
        """The folder of CDI specifications."""
        return self.folder / "cdi"

    @property
    def fakegpu(self) -> Path:
        """What the processes of the pretended NVIDIA driver share."""
        return self.folder / "fakegpu"

    @property
    def state(self) -> Path:
        """Of containerd at run time: bundles, network namespaces, shims' addresses."""
        return RUN / "state"

    @property
    def runc_state(self) -> Path:
        """Of runc at run time."""
        return RUN / "runc"

    @property
    def socket(self) -> Path:
        """Where containerd answers."""
        return RUN / "containerd.sock"
