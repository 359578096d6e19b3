import json
from pathlib import Path

import pytest
from tests.e2e.pods import created, make_pod, output_of, variables, wait_for_phase

from cluster import Running, node_gpus
from cluster.credentials import REAL_NODE_NAME
from cluster.node_layout import BRIDGE
from cluster.node_network import HARDWARE_ADDRESS

FIRST, SECOND = (gpu.uuid for gpu in node_gpus.GPUS)
SHOW = "env; ls /dev/fakegpu 2>/dev/null | sed 's/^/FILE_/; s/$/=/'"


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


def test_a_plain_pod_runs_and_its_log_can_be_read(real_cluster: Running) -> None:
    assert output_of(real_cluster, make_pod().shell("echo hello from inside")) == (
        "hello from inside\n"
    )


def test_exec_reaches_into_a_running_container(real_cluster: Running) -> None:
    with created(real_cluster, make_pod().shell("touch /tmp/here; sleep 600")) as name:
        wait_for_phase(real_cluster, name, "Running")
        assert real_cluster.kubectl("exec", name, "--", "ls", "/tmp/here").stdout == "/tmp/here\n"


def test_a_pod_reaches_the_api_server_at_the_service_address(real_cluster: Running) -> None:
    seen = output_of(
        real_cluster,
        make_pod().shell(
            'nc -w 5 "$KUBERNETES_SERVICE_HOST" "$KUBERNETES_SERVICE_PORT" </dev/null'
            " && echo connected to $KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT"
        ),
    )
    assert "connected to 10.96.0.1:443" in seen


@pytest.mark.parametrize("wanted", [{FIRST}, {SECOND}, {FIRST, SECOND}], ids=["0", "1", "both"])
def test_a_container_gets_exactly_the_devices_of_its_annotation(
    real_cluster: Running, wanted: set[str]
) -> None:
    pod = make_pod().devices(",".join(sorted(wanted))).shell(SHOW)
    environment = dict(variables(output_of(real_cluster, pod)))
    assert set(environment["NVIDIA_VISIBLE_DEVICES"].split(",")) == wanted
    assert devices_seen(environment) == (wanted, wanted)


@pytest.mark.parametrize("nothing", ["void", ""])
def test_a_container_without_devices_gets_none(real_cluster: Running, nothing: str) -> None:
    environment = dict(variables(output_of(real_cluster, make_pod().devices(nothing).shell(SHOW))))
    assert environment["NVIDIA_VISIBLE_DEVICES"] == nothing
    assert devices_seen(environment) == (set(), set())


def test_an_unknown_device_keeps_the_container_from_starting(real_cluster: Running) -> None:
    with created(real_cluster, make_pod().devices("GPU-of-another-node")) as name:
        wait_for_phase(real_cluster, name, "Failed")
        answer = real_cluster.kubectl("get", "pod", name, "-o", "json")
        state = json.loads(answer.stdout)["status"]["containerStatuses"][0]["state"]
    assert (
        "unresolvable CDI devices nvidia.com/gpu=GPU-of-another-node"
        in (state["terminated"]["message"])
    )


def test_quickstart_shows_its_device_and_its_cap(real_cluster: Running) -> None:
    pod = make_pod().devices(SECOND).variable("GPU_MEMORY_LIMIT_MIB", "20224")
    seen = output_of(real_cluster, pod.variable("QUICKSTART_SECONDS", "1"))
    assert f"device     1 {SECOND}" in seen
    assert "20224 MiB per device" in seen
    assert seen.endswith("done\n")


def test_quickstart_without_a_gpu_fails_and_says_so(real_cluster: Running) -> None:
    with created(real_cluster, make_pod().devices("void")) as name:
        wait_for_phase(real_cluster, name, "Failed")
        assert "was given no GPU" in real_cluster.kubectl("logs", name).stdout


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
