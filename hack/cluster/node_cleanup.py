"""Take the real node away again, whatever state it is in.

Works from names and folders alone, so it is the same for an orderly stop, after kill -9 of the
kubelet or containerd, and for what a crashed run of another day left. Nothing is deleted below a
folder that still has something mounted in it.
"""

import contextlib
import shutil
import subprocess
import time
from pathlib import Path

from cluster import node_cgroups, node_network, process
from cluster.errors import ClusterError
from cluster.mounts import mounts_below
from cluster.node_layout import NETWORK, RUN, NodeLayout

_CNI_RESULTS = Path("/var/lib/cni/results")
_CONTAINER_LOGS = Path("/var/log/containers")
_DEVICE_PLUGINS = Path("/var/lib/kubelet/device-plugins")
_SHIM_SOCKETS = Path("/run/containerd/s")


class CleanupIncomplete(ClusterError):
    """Something of the node could not be removed; the message lists it."""


def clean(layout: NodeLayout) -> None:
    """Remove every process, mount, interface, cgroup and file of the node.

    Raises:
        CleanupIncomplete: with the list of what is left.
    """
    sockets = _shim_sockets(layout)  # containerd forgets the address of a shim that it sees die
    left = _end_processes(layout)
    mounts = _unmount(layout)
    left += [f"mount {path}" for path in mounts]
    node_network.down()
    left += [f"cgroup {path}" for path in _remove_cgroups()]
    _remove_traces(layout, {*sockets, *_shim_sockets(layout)})
    if not mounts:
        for folder in (layout.folder, RUN):
            shutil.rmtree(folder, ignore_errors=True)
            if folder.exists():
                left.append(f"folder {folder}")
    if left:
        raise CleanupIncomplete("the real node could not be removed whole: " + ", ".join(left))


def _end_processes(layout: NodeLayout) -> list[str]:
    # The kubelet first: it would restart what ends. containerd last: it would report the ends.
    kubelet = process.with_arguments(f"--config={layout.kubelet_config}")
    left = process.stop(kubelet, grace_seconds=3)
    for _ in range(5):  # a process may fork while it is being ended
        if not (pids := node_cgroups.processes()):
            break
        process.stop(process.by_pid(pids), grace_seconds=0)
    left += process.by_pid(node_cgroups.processes())
    shims = process.with_arguments("-address", str(layout.socket))
    left += process.stop(shims, grace_seconds=0)
    containerd = process.with_arguments(f"--config={layout.containerd_config}")
    left += process.stop(containerd, grace_seconds=3)
    return [f"process {each.pid}" for each in left]


def _unmount(layout: NodeLayout) -> list[Path]:
    for options in ([], ["--lazy"]):
        if not (mounts := mounts_of(layout)):
            return []
        subprocess.run(["umount", *options, *map(str, mounts)], capture_output=True)
    return mounts_of(layout)


def mounts_of(layout: NodeLayout) -> list[Path]:
    """What is mounted in the node's folders, the inner before the outer."""
    found = [mount for folder in (layout.folder, RUN) for mount in mounts_below(folder)]
    return sorted(found, key=lambda mount: len(mount.parts), reverse=True)


def _remove_cgroups() -> list[Path]:
    deadline = time.monotonic() + 30
    # A cgroup stays busy for a moment after its last process has ended.
    while (left := node_cgroups.remove()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def _shim_sockets(layout: NodeLayout) -> set[Path]:
    """Where the shims of the node's sandboxes listen, those that have ended as well."""
    found: set[Path] = set()
    for address in layout.state.glob("io.containerd.runtime.v2.task/k8s.io/*/address"):
        with contextlib.suppress(FileNotFoundError):  # containerd may be at work
            found.add(Path(address.read_text().strip().removeprefix("unix://")))
    return {path for path in found if path.parent == _SHIM_SOCKETS}


def _remove_traces(layout: NodeLayout, sockets: set[Path]) -> None:
    """Files that the kubelet, containerd and CNI write at fixed places, ours among them only."""
    sandboxes = set()
    for result in _CNI_RESULTS.glob(f"{NETWORK}-*-eth0"):
        sandboxes.add(result.name.removeprefix(f"{NETWORK}-").removesuffix("-eth0"))
        result.unlink(missing_ok=True)
    for sandbox in sandboxes:
        (_CNI_RESULTS / f"cni-loopback-{sandbox}-lo").unlink(missing_ok=True)

    for link in _CONTAINER_LOGS.glob("*.log"):
        if link.is_symlink() and link.readlink().is_relative_to(layout.pod_logs):
            link.unlink(missing_ok=True)

    for socket in sockets:
        socket.unlink(missing_ok=True)

    plugin_socket = _DEVICE_PLUGINS / "kubelet.sock"
    if str(plugin_socket) not in Path("/proc/net/unix").read_text():  # nobody else listens there
        plugin_socket.unlink(missing_ok=True)

    for folder in (_CNI_RESULTS, _CONTAINER_LOGS, _SHIM_SOCKETS, _DEVICE_PLUGINS):
        _remove_if_empty(folder)
    for folder in (_CNI_RESULTS, _SHIM_SOCKETS, _DEVICE_PLUGINS):
        _remove_if_empty(folder.parent)


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return
