"""Where the real node keeps its things, and the names it takes on the machine.

A machine holds one real node at a time, so its names (bridge, cgroup, run folder) are fixed: what
a crashed run left behind can be found without knowing that run. Sockets live under ``/run``
because their paths must stay below 108 bytes however deep the cluster's folder is; those of the
kubelet lie in its own folder, so that must not be too deep.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from string import Template

from cluster.credentials import REAL_NODE_NAME

NODE_NAME = REAL_NODE_NAME
BRIDGE = "gpusched0"  # at most 15 characters
NETWORK = "gpu-scheduler-real"  # of the CNI configuration; prefixes its result files
SUBNET = "10.97.0.0/24"
ADDRESS = "10.97.0.1"  # of the bridge: gateway of the pods and InternalIP of the node
CGROUP = "gpu-scheduler"
RUN = Path("/run/gpu-scheduler")
_TEMPLATES = Path(__file__).parent / "node"
SOCKET_BYTES = 107  # the longest path of a socket


def fill(template: str, target: Path, **values: object) -> None:
    """Write a file of the node from its template in ``node/``; its folder too."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(Template((_TEMPLATES / template).read_text()).substitute(values))


class _Below:
    """A path of a layout: below its folder, or absolute."""

    def __init__(self, path: str | Path) -> None:
        self._path = path

    def __get__(self, layout: "NodeLayout", _owner: type) -> Path:
        return Path(os.path.normpath(layout.folder / self._path))


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

    # By its configuration each of the two processes is recognised, too.
    containerd_config = _Below("containerd.toml")
    kubelet_config = _Below("kubelet.yaml")
    containerd_log = _Below("../logs/containerd.log")
    kubelet_log = _Below("../logs/kubelet.log")
    nvidia_log = _Below("../logs/nvidia-container-runtime.log")  # of its container runtime
    containerd_root = _Below("containerd")  # images and snapshots
    images = _Below("images")  # which archives were imported, by kind
    kubelet_root = _Below("kubelet")  # pods' volumes; some of them are mounts
    static_pods = _Below("static-pods")  # manifests that the kubelet runs without being told
    pod_logs = _Below("pod-logs")  # what the containers printed
    cni_config = _Below("cni")  # the folder of the network's configuration
    addresses = _Below("addresses")  # of pods, that are taken
    xdg_config = _Below("xdg")  # XDG_CONFIG_HOME of containerd, for NVIDIA's container runtime
    cdi = _Below("cdi")  # the folder of CDI specifications
    fakegpu = _Below("fakegpu")  # what the processes of the pretended NVIDIA driver share
    state = _Below(RUN / "state")  # of containerd at run time: bundles, namespaces, shims
    runc_state = _Below(RUN / "runc")
    socket = _Below(RUN / "containerd.sock")  # where containerd answers
