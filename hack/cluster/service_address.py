"""The address 10.96.0.1 on the loopback device: how pods of a real node call the API server.

One cluster of a machine may have it, for the API server then takes port 443 of all
addresses. The owner's name is in a file, so that only the owner takes the address away.
"""

import os
import shutil
import sys
from pathlib import Path

from cluster.cache import cluster_folder, clusters_folder
from cluster.commands import run
from cluster.control_plane import REAL_NODE_PORT, SERVICE_ADDRESS
from cluster.errors import ClusterError
from cluster.ports import is_free
from cluster.process import is_alive
from cluster.state import load


def why_no_real_node() -> str | None:
    """What keeps this machine from running a real node, or None."""
    if sys.platform != "linux":
        return "it needs Linux"
    if os.geteuid() != 0:
        return "it needs root"
    return None if shutil.which("ip") else "it needs the program `ip` of the package iproute2"


def add(name: str) -> None:
    """Takes the address for the cluster `name`.

    Raises:
        ClusterError: another cluster holds it, or something else uses port 443.
    """
    owner = _owner()
    if owner is not None and owner != name and _has_api_server(owner):
        raise ClusterError(
            f"cluster {owner} has the real node of this machine: "
            f"stop it with `python -m cluster down --name {owner}`"
        )
    if not is_free(REAL_NODE_PORT):
        raise ClusterError(
            f"port {REAL_NODE_PORT} of this machine is in use, and pods of a real node need it: "
            "stop what listens there, or use --no-real-node"
        )
    _owner_file().write_text(name)
    _ip("replace")


def remove(name: str) -> None:
    """Gives the address back if the cluster `name` holds it."""
    if _owner() == name:
        _ip("del")
        _owner_file().unlink(missing_ok=True)


def _has_api_server(name: str) -> bool:
    state = load(cluster_folder(name))
    service = state.services.get("kube-apiserver") if state else None
    return service is not None and service.process is not None and is_alive(service.process)


def _owner_file() -> Path:
    return clusters_folder() / ".real-node-owner"


def _owner() -> str | None:
    try:
        return _owner_file().read_text() or None
    except FileNotFoundError:
        return None


def _ip(verb: str) -> None:
    command = ["ip", "address", verb, f"{SERVICE_ADDRESS}/32", "dev", "lo"]
    run(command, check=verb != "del")
