import json
import stat
from pathlib import Path

import pytest

from cluster import fake_driver, node_gpus
from cluster.errors import ClusterError
from cluster.fake_driver import FakeDriver
from cluster.node_gpus import GPUS


def test_the_configuration_names_every_device_with_what_the_driver_keeps() -> None:
    lines = node_gpus.driver_configuration(context_mib=300).splitlines()
    assert lines[:3] == ["driver 570.86.15", "cuda 12080", "context_mib 300"]
    assert lines[3:] == [
        f"device {gpu.index} {gpu.uuid} NVIDIA_A100-PCIE-40GB 40960 512 8.0" for gpu in GPUS
    ]


def test_containers_of_any_user_may_write_to_the_shared_folder(tmp_path: Path) -> None:
    driver = FakeDriver(tmp_path / "bin", tmp_path / "deep" / "state")
    driver.configure("driver 1\n")
    assert stat.S_IMODE(driver.folder.stat().st_mode) == 0o777
    assert (driver.folder / "config").read_text() == "driver 1\n"


def test_any_device_brings_libraries_read_only_and_the_shared_folder_writable(
    tmp_path: Path,
) -> None:
    driver = FakeDriver(Path("/bin-of-driver"), Path("/shared"))
    node_gpus.write_cdi(tmp_path, driver=driver)
    edits = json.loads((tmp_path / "nvidia.json").read_text())["containerEdits"]
    access = {mount["hostPath"]: mount["options"][0] for mount in edits["mounts"]}
    assert access == {
        "/bin-of-driver/libcuda.so.1": "ro",
        "/bin-of-driver/libnvidia-ml.so.1": "ro",
        "/bin-of-driver/evader": "ro",
        "/bin-of-driver/evader-static": "ro",
        "/shared": "rw",
    }
    targets = {mount["containerPath"] for mount in edits["mounts"]}
    assert "/var/lib/fakegpu" in targets


def test_a_driver_is_built_anew_when_a_source_changes(tmp_path: Path) -> None:
    source = tmp_path / "a.c"
    source.write_text("one")
    before = fake_driver._key([source])
    assert fake_driver._key([source]) == before
    source.write_text("two")
    assert fake_driver._key([source]) != before


def test_a_compiler_that_is_missing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPU_SCHEDULER_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match="apt-get install gcc make"):
        fake_driver.binaries()
