"""The pretended driver in real containers: one device, several containers, seen from the node."""

from pathlib import Path

from tests.e2e.pods import created, make_pod, output_of, wait_for_phase
from tests.e2e.waits import until

from cluster import Running, node_gpus, real_node

FIRST, SECOND = (gpu.uuid for gpu in node_gpus.GPUS)
MIB = 1 << 20
HOLD = "/opt/fakegpu/evader-static"


def used_mib(cluster: Running, uuid: str) -> int:
    devices = real_node.driver(cluster).state()["devices"]
    return sum(int(device["used"]) for device in devices if device["uuid"] == uuid) // MIB


def wait_until_used(cluster: Running, uuid: str, mib: int) -> None:
    until(
        lambda: used_mib(cluster, uuid) == mib,
        lambda: f"{mib} MiB are used; {used_mib(cluster, uuid)}",
    )


def asked(cluster: Running, uuid: str, mib: int) -> str:
    """What a container of its own says first that asks for so much of a device."""
    script = f"{HOLD} {mib} >/tmp/said & until [ -s /tmp/said ]; do sleep 0.1; done; cat /tmp/said"
    return output_of(cluster, make_pod().devices(uuid).shell(script)).splitlines()[0]


def test_a_container_with_a_device_has_the_drivers_libraries(real_cluster: Running) -> None:
    show = f"ls {node_gpus.CONTAINER_LIBRARIES}/libcuda.so.1 /var/lib/fakegpu/config"
    seen = output_of(real_cluster, make_pod().devices(FIRST).shell(show)).split()
    assert {Path(path).name for path in seen} == {"libcuda.so.1", "config"}


def test_containers_share_a_device_and_the_node_sees_their_processes(real_cluster: Running) -> None:
    holder = make_pod().devices(FIRST).shell(f"exec {HOLD} 30000").obj()
    holder["spec"]["securityContext"] = {"runAsUser": 65534}
    with created(real_cluster, holder) as name:
        wait_for_phase(real_cluster, name, "Running")
        wait_until_used(real_cluster, FIRST, 30300)
        [process] = real_node.driver(real_cluster).state()["processes"]
        command = Path(f"/proc/{process['pid']}/cmdline").read_text()
        assert command.startswith(HOLD), "the pid is the node's"

        assert asked(real_cluster, FIRST, 20000) == "no 20000 MiB, result 2"
        assert asked(real_cluster, SECOND, 20000) == "holding 20000 MiB, result 0"
    wait_until_used(real_cluster, FIRST, 0)
