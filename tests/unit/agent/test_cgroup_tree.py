from pathlib import Path

import pytest

from gpu_scheduler.agent.cgroup_tree import is_v2, leaf_of_container, leaf_of_process

ID = "c" * 64
SYSTEMD = (
    "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/"
    f"cri-containerd-{ID}.scope"
)


@pytest.mark.parametrize(
    "path",
    [
        SYSTEMD,
        f"kubepods/burstable/pod1/{ID}",
        f"cluster/node-0/kubepods/pod1/{ID}",
        f"kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod1.slice/crio-{ID}.scope",
    ],
)
def test_the_leaf_is_found_by_the_containers_id(tmp_path: Path, path: str) -> None:
    (tmp_path / "system.slice" / f"docker-{ID}.scope").mkdir(parents=True)
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).parent.joinpath(f"crio-conmon-{ID}.scope").mkdir()
    (tmp_path / path).mkdir()
    assert leaf_of_container(ID, tmp_path) == tmp_path / path


def test_before_the_container_exists_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "kubepods").mkdir()
    assert leaf_of_container(ID, tmp_path) is None
    assert leaf_of_container("", tmp_path) is None


def test_the_leaf_is_found_by_a_process(tmp_path: Path) -> None:
    leaf = tmp_path / SYSTEMD
    leaf.mkdir(parents=True)
    (leaf / "cgroup.procs").write_text("12\n345\n")
    assert leaf_of_process(345, tmp_path) == leaf
    assert leaf_of_process(34, tmp_path) is None


def test_version_2_has_its_controllers_at_the_root(tmp_path: Path) -> None:
    assert not is_v2(tmp_path)
    (tmp_path / "cgroup.controllers").write_text("cpu")
    assert is_v2(tmp_path)
