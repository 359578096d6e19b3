"""Two jobs on one GPU in real containers: what each one is given, and what nobody else is."""

import math

import pytest
from tests.api.tenant import Json, Tenant
from tests.e2e.gpu_jobs import (
    FIRST,
    SECOND,
    USABLE_MIB,
    container,
    devices_there,
    environment,
    execute,
    start,
    template,
    wait_running,
)
from tests.e2e.pods import created, make_pod, wait_for_phase

from cluster import Running

SHARES = {"frac05": 0.5, "frac03": 0.3}


@pytest.fixture(scope="module")
def pair(owner: Tenant) -> dict[str, Json]:
    """The running pods of frac05 and frac03."""
    return {name: start(owner, name, gpu=share) for name, share in SHARES.items()}


def test_both_are_on_one_device_of_which_four_fifths_are_taken(
    owner: Tenant, pair: dict[str, Json]
) -> None:
    devices = [
        allocated for name in pair for (a,) in [owner.allocations(name)] for allocated in a.devices
    ]
    assert len({allocated.device for allocated in devices}) == 1
    assert sum(allocated.milli for allocated in devices) == 800
    assert sum(allocated.mib for allocated in devices) <= USABLE_MIB


@pytest.mark.parametrize("name", SHARES)
def test_a_container_sees_its_device_and_no_other(
    operated: Running, owner: Tenant, pair: dict[str, Json], name: str
) -> None:
    device = owner.allocations(name)[0].devices[0].device
    assert environment(operated, pair[name])["NVIDIA_VISIBLE_DEVICES"] == device
    assert devices_there(operated, pair[name]) == ({device}, {device})


@pytest.mark.parametrize("name", SHARES)
def test_the_cap_is_its_share_of_the_usable_memory(
    operated: Running, pair: dict[str, Json], name: str
) -> None:
    cap = math.floor(SHARES[name] * USABLE_MIB)
    found = environment(operated, pair[name])
    assert found["GPU_MEMORY_LIMIT_MIB"] == str(cap)
    assert found["CUPY_GPU_MEMORY_LIMIT"] == str(cap * 1024 * 1024)
    assert execute(operated, pair[name], "cat /etc/gpu-scheduler/memory-limit-mib") == str(cap)


def test_a_shell_without_the_environment_still_finds_cap_and_devices(
    operated: Running, pair: dict[str, Json]
) -> None:
    script = "env -i /bin/cat /etc/gpu-scheduler/memory-limit-mib /etc/gpu-scheduler/devices"
    device = environment(operated, pair["frac05"])["NVIDIA_VISIBLE_DEVICES"]
    assert execute(operated, pair["frac05"], script) == f"20224{device}"


def test_status_says_where_it_runs(owner: Tenant, pair: dict[str, Json]) -> None:
    (placement,) = owner.wait_phase("frac05", "Running")["placements"]
    assert placement["node"] == "real-0"
    assert placement["devices"] == [owner.allocations("frac05")[0].devices[0].device]
    assert placement["memoryMiB"] == 20224


def test_the_next_ones_fill_the_gaps(owner: Tenant, pair: dict[str, Json]) -> None:
    taken = owner.allocations("frac05")[0].devices[0].device
    start(owner, "more03", gpu=0.3)
    start(owner, "frac02", gpu=0.2)
    assert owner.allocations("more03")[0].devices[0].device == ({FIRST, SECOND} - {taken}).pop()
    assert owner.allocations("frac02")[0].devices[0].device == taken
    for name in ("more03", "frac02"):
        owner.remove(name)


def test_a_container_without_a_request_sees_no_device(operated: Running, owner: Tenant) -> None:
    no_gpu = [{"name": "QUICKSTART_ALLOW_NO_GPU", "value": "1"}]
    owner.submit(
        "mixed",
        containers=[{"name": "trainer", "gpu": 0.1}, {"name": "encoder", "gpu": 0.05}],
        template=template(
            container(name="trainer"),
            container(name="encoder"),
            container(name="logger", env=no_gpu),
        ),
    )
    pod = wait_running(owner, "mixed")
    assert environment(operated, pod, container="logger")["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert devices_there(operated, pod, container="logger") == (set(), set())
    assert "GPU_MEMORY_LIMIT_MIB" not in environment(operated, pod, container="logger")
    caps = [
        environment(operated, pod, container=name)["GPU_MEMORY_LIMIT_MIB"]
        for name in ("trainer", "encoder")
    ]
    assert caps == [str(USABLE_MIB * 100 // 1000), str(USABLE_MIB * 50 // 1000)]
    owner.remove("mixed")


def test_a_plain_pod_is_left_alone(operated: Running, owner: Tenant) -> None:
    pod = make_pod("plain").shell("exec quickstart 600").variable("QUICKSTART_ALLOW_NO_GPU", "1")
    with created(operated, pod) as name:
        wait_for_phase(operated, name, "Running")
        found = owner.admin.get(f"/api/v1/namespaces/default/pods/{name}").body
        text = operated.kubectl("exec", name, "--", "sh", "-c", "env; ls /dev").stdout
    assert found["spec"]["schedulerName"] == "default-scheduler"
    assert not [k for k in found["metadata"].get("annotations", {}) if "gpu-scheduler" in k]
    assert "NVIDIA_VISIBLE_DEVICES" not in text and "fakegpu" not in text
