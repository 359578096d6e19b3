"""The place of etcd's data."""

from pathlib import Path

import pytest

from cluster import store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "cluster"
    made.mkdir()
    return made


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    made = tmp_path / "memory"
    made.mkdir()
    return made


def test_the_data_is_in_memory_and_goes_with_the_cluster(folder: Path, memory: Path) -> None:
    store.create(folder, memory=memory)
    (folder / store.NAME / "data").write_text("x")
    (target,) = memory.iterdir()
    assert (target / "data").exists()
    assert target.stat().st_mode & 0o777 == 0o700
    store.remove(folder, memory=memory)
    assert not list(memory.iterdir())


def test_what_a_crashed_cluster_left_is_not_used_again(folder: Path, memory: Path) -> None:
    store.create(folder, memory=memory)
    (folder / store.NAME / "data").write_text("old")
    (folder / store.NAME).unlink()
    store.create(folder, memory=memory)
    assert not list((folder / store.NAME).iterdir())


def test_two_clusters_do_not_share_it(folder: Path, memory: Path) -> None:
    other = folder.with_name("other")
    other.mkdir()
    store.create(folder, memory=memory)
    store.create(other, memory=memory)
    assert len(list(memory.iterdir())) == 2


def test_without_such_memory_it_is_a_folder_that_etcd_makes(folder: Path, tmp_path: Path) -> None:
    store.create(folder, memory=tmp_path / "nowhere")
    assert not (folder / store.NAME).exists()
    store.remove(folder, memory=tmp_path / "nowhere")
