"""The real node's network: a bridge, its CNI configuration, and the way to the API server.

No iptables and no kube-proxy: pods reach the `kubernetes` Service because the cluster puts its
address on the loopback interface of this machine, where the API server listens on all addresses.
Pods reach each other and this machine, nothing else.
"""

from pathlib import Path

from cluster.commands import run
from cluster.node_layout import ADDRESS, BRIDGE, NETWORK, SUBNET, NodeLayout, fill

# Locally administered; the last four bytes are the address in SUBNET.
HARDWARE_ADDRESS = "0a:58:" + ":".join(f"{int(part):02x}" for part in ADDRESS.split("."))


def write_cni(layout: NodeLayout) -> None:
    """Write the CNI configuration of the bridge."""
    values = {"network": NETWORK, "bridge": BRIDGE, "addresses": layout.addresses}
    target = layout.cni_config / "10-bridge.conflist"
    fill("cni.conflist", target, **values, subnet=SUBNET, gateway=ADDRESS)


def up() -> None:
    """Bring the bridge up; its address is the node's and must be there before the kubelet.

    It has a hardware address of its own: without one a bridge takes the lowest of its ports, and
    when a pod's coming or going changes that, all others send into the void for ten seconds.
    """
    prefix = SUBNET.partition("/")[2]
    _ip("link", "add", BRIDGE, "address", HARDWARE_ADDRESS, "type", "bridge")
    _ip("address", "add", f"{ADDRESS}/{prefix}", "dev", BRIDGE)
    _ip("link", "set", BRIDGE, "up")


def down() -> None:
    """Remove the bridge and what hangs on it."""
    ports = Path(f"/sys/class/net/{BRIDGE}/brif")
    for port in ports.iterdir() if ports.is_dir() else ():
        # Gone with its namespace a moment later anyway; not waiting for that.
        _ip("link", "delete", port.name, check=False)
    if Path(f"/sys/class/net/{BRIDGE}").exists():
        _ip("link", "delete", BRIDGE, check=False)


def _ip(*arguments: str, check: bool = True) -> None:
    run(["ip", *arguments], check=check)
