import json
from pathlib import Path

import pytest

from cluster import node_gpus
from cluster.fake_driver import FakeDriver
from cluster.node_gpus import GPUS

FILES = Path("/files")


def edits_by_device() -> dict[str, dict[str, list[object]]]:
    specification = node_gpus.cdi_specification(FILES)
    return {each["name"]: each["containerEdits"] for each in specification["devices"]}


def test_every_device_is_known_by_uuid_and_by_index() -> None:
    edits = edits_by_device()
    assert set(edits) == {*(gpu.uuid for gpu in GPUS), *(str(gpu.index) for gpu in GPUS), "all"}
    for gpu in GPUS:
        assert edits[gpu.uuid] == edits[str(gpu.index)]


def test_the_edits_of_two_devices_have_nothing_in_common() -> None:
    first, second = (json.dumps(edits_by_device()[gpu.uuid]) for gpu in GPUS)
    assert GPUS[0].uuid in first and GPUS[0].uuid not in second
    assert GPUS[1].uuid in second and GPUS[1].uuid not in first


def test_all_is_the_sum_of_the_devices() -> None:
    edits = edits_by_device()
    for part in ("env", "mounts"):
        assert edits["all"][part] == [each for gpu in GPUS for each in edits[gpu.uuid][part]]


def test_driver_libraries_reach_every_container_with_a_device() -> None:
    driver = FakeDriver(Path("/build"), Path("/shared"))
    mounts = node_gpus.cdi_specification(FILES, driver)["containerEdits"]["mounts"]
    to = {mount["hostPath"]: mount["containerPath"] for mount in mounts}
    assert to["/build/libcuda.so.1"].endswith("/libcuda.so.1")
    assert set(to) == {*map(str, (*driver.libraries, *driver.programs)), "/shared"}
    assert "mounts" not in node_gpus.cdi_specification(FILES)["containerEdits"]


def test_the_files_that_are_mounted_exist(tmp_path: Path) -> None:
    node_gpus.write_cdi(tmp_path)
    specification = json.loads((tmp_path / "nvidia.json").read_text())
    mounts = [
        mount for each in specification["devices"] for mount in each["containerEdits"]["mounts"]
    ]
    assert mounts
    assert all(Path(mount["hostPath"]).is_file() for mount in mounts)


def test_labels_and_the_driver_tell_the_same() -> None:
    labels = node_gpus.node_labels()
    text = node_gpus.driver_configuration(context_mib=300)
    devices = [line.split() for line in text.splitlines() if line.startswith("device ")]
    assert labels["nvidia.com/gpu.count"] == str(len(devices))
    for _, _, _, model, total, reserved, capability in devices:
        assert (labels["nvidia.com/gpu.memory"], int(reserved)) == (total, 512)
        assert labels["nvidia.com/gpu.product"] == model.replace("_", "-")
        major, minor = capability.split(".")
        assert labels["nvidia.com/gpu.compute.major"] == major
        assert labels["nvidia.com/gpu.compute.minor"] == minor


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.uuid)
def test_the_driver_keeps_some_memory(gpu: node_gpus.PretendGPU) -> None:
    assert 0 < gpu.usable_mib < gpu.memory_mib


def test_more_devices_begin_with_those_that_are_usual_and_are_all_different() -> None:
    more = node_gpus.pretended(6)
    assert more[:2] == GPUS
    assert [gpu.index for gpu in more] == list(range(6))
    assert len({gpu.uuid for gpu in more}) == 6
    assert all(len(gpu.uuid) == len("GPU-") + 36 for gpu in more)
    assert node_gpus.node_labels(more)["nvidia.com/gpu.count"] == "6"
