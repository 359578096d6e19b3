import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.pods import created, make_pod, output, started, variables, wait_for_phase
from tests.e2e.waits import until

from cluster import Running, node_gpus
from cluster.credentials import REAL_NODE_NAME
from cluster.node_layout import BRIDGE
from cluster.node_network import HARDWARE_ADDRESS

FIRST, SECOND = (gpu.uuid for gpu in node_gpus.GPUS)
SHOW = "env; ls /dev/fakegpu 2>/dev/null | sed 's/^/FILE_/; s/$/=/'"
WANTED = {"0": {FIRST}, "1": {SECOND}, "both": {FIRST, SECOND}}
CALL = (
    'nc -w 5 "$KUBERNETES_SERVICE_HOST" "$KUBERNETES_SERVICE_PORT" </dev/null'
    " && echo connected to $KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT"
)
Names = dict[str, str]


@pytest.fixture(scope="module")
def pods(real_cluster: Running) -> Iterator[Names]:
    """Names of pods by what they show; all are made at once, for most of it is waiting."""
    made = {
        "plain": make_pod().shell("echo hello from inside"),
        "exec": make_pod().shell("touch /tmp/here; sleep 600"),
        "call": make_pod().shell(CALL),
        "void": make_pod().devices("void").shell(SHOW),
        "": make_pod().devices("").shell(SHOW),
        "unknown": make_pod().devices("GPU-of-another-node"),
        "capped": make_pod()
        .devices(SECOND)
        .variable("GPU_MEMORY_LIMIT_MIB", "20224")
        .variable("QUICKSTART_SECONDS", "1"),
        "no gpu": make_pod().devices("void"),
    }
    for which, devices in WANTED.items():
        made[which] = make_pod().devices(",".join(sorted(devices))).shell(SHOW)
    with started(real_cluster, made) as names:
        yield names


def devices_seen(environment: dict[str, str]) -> tuple[set[str], set[str]]:
    """UUIDs by the variables, and by the files, that the container runtime put in."""
    by_variable = {
        value
        for name, value in environment.items()
        if name.startswith("FAKE_GPU_") and name != "FAKE_GPU_DRIVER"
    }
    files = {name.removeprefix("FILE_") for name in environment if name.startswith("FILE_")}
    return by_variable, files


def test_the_node_carries_the_labels_of_gpu_feature_discovery(real_cluster: Running) -> None:
    answer = real_cluster.kubectl("get", "node", REAL_NODE_NAME, "-o", "json")
    labels = json.loads(answer.stdout)["metadata"]["labels"]
    assert labels["nvidia.com/gpu.count"] == "2"
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-A100-PCIE-40GB"
    assert labels["nvidia.com/gpu.memory"] == "40960"


def test_a_plain_pod_runs_and_its_log_can_be_read(real_cluster: Running, pods: Names) -> None:
    assert output(real_cluster, pods["plain"]) == "hello from inside\n"


def test_exec_reaches_into_a_running_container(real_cluster: Running, pods: Names) -> None:
    wait_for_phase(real_cluster, pods["exec"], "Running")
    look = ("exec", pods["exec"], "--", "ls", "/tmp/here")
    seen = until(lambda: real_cluster.kubectl(*look, check=False).stdout, "its program has begun")
    assert seen == "/tmp/here\n"


def test_a_pod_reaches_the_api_server_at_the_service_address(
    real_cluster: Running, pods: Names
) -> None:
    assert "connected to 10.96.0.1:443" in output(real_cluster, pods["call"])


@pytest.mark.parametrize("which", WANTED)
def test_a_container_gets_exactly_the_devices_of_its_annotation(
    real_cluster: Running, pods: Names, which: str
) -> None:
    environment = dict(variables(output(real_cluster, pods[which])))
    assert set(environment["NVIDIA_VISIBLE_DEVICES"].split(",")) == WANTED[which]
    assert devices_seen(environment) == (WANTED[which], WANTED[which])


@pytest.mark.parametrize("nothing", ["void", ""])
def test_a_container_without_devices_gets_none(
    real_cluster: Running, pods: Names, nothing: str
) -> None:
    environment = dict(variables(output(real_cluster, pods[nothing])))
    assert environment["NVIDIA_VISIBLE_DEVICES"] == nothing
    assert devices_seen(environment) == (set(), set())


def test_an_unknown_device_keeps_the_container_from_starting(
    real_cluster: Running, pods: Names
) -> None:
    wait_for_phase(real_cluster, pods["unknown"], "Failed")
    answer = real_cluster.kubectl("get", "pod", pods["unknown"], "-o", "json")
    state = json.loads(answer.stdout)["status"]["containerStatuses"][0]["state"]
    assert (
        "unresolvable CDI devices nvidia.com/gpu=GPU-of-another-node"
        in (state["terminated"]["message"])
    )


def test_quickstart_shows_its_device_and_its_cap(real_cluster: Running, pods: Names) -> None:
    seen = output(real_cluster, pods["capped"])
    assert f"device     1 {SECOND}" in seen
    assert "20224 MiB per device" in seen
    assert seen.endswith("done\n")


def test_quickstart_without_a_gpu_fails_and_says_so(real_cluster: Running, pods: Names) -> None:
    wait_for_phase(real_cluster, pods["no gpu"], "Failed")
    assert "was given no GPU" in real_cluster.kubectl("logs", pods["no gpu"]).stdout


def test_the_way_to_the_gateway_does_not_change_when_pods_come_and_go(
    real_cluster: Running,
) -> None:
    bridge = Path("/sys/class/net") / BRIDGE
    pods = [make_pod("comes").shell("sleep 60") for _ in range(3)]
    with created(real_cluster, pods[0]) as first:
        wait_for_phase(real_cluster, first, "Running")
        seen = {(bridge / "address").read_text().strip()}
        for pod in pods[1:]:
            with created(real_cluster, pod) as name:
                wait_for_phase(real_cluster, name, "Running")
                seen.add((bridge / "address").read_text().strip())
    assert seen == {HARDWARE_ADDRESS}
    assert (bridge / "addr_assign_type").read_text().strip() == "3"  # set, not taken from a port
