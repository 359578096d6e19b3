from dataclasses import replace
from pathlib import Path

import pytest

from cluster.errors import ClusterError
from cluster.settings import Settings


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a-", "a" * 41, "../x", ".hidden"])
def test_a_name_that_is_no_folder_name_is_refused(name: str) -> None:
    with pytest.raises(ClusterError, match="name"):
        Settings(name=name)


@pytest.mark.parametrize("files", ["nodes", "crds"])
def test_a_missing_file_is_named(files: str, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=rf"{files}: .*none\.yaml"):
        Settings(**{files: (tmp_path / "none.yaml",)})


@pytest.mark.parametrize("files", ["nodes", "crds"])
def test_equal_wishes_have_equal_fingerprints(files: str, tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("kind: Node")
    first = Settings(**{files: (tmp_path / "a.yaml",)})
    assert first.fingerprint() == Settings(**{files: (tmp_path / "b.yaml",)}).fingerprint()
    (tmp_path / "b.yaml").write_text("kind: Node # changed")
    assert first.fingerprint() != Settings(**{files: (tmp_path / "b.yaml",)}).fingerprint()


def test_kinds_that_are_there_from_the_start_make_another_cluster(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: X")
    path = (tmp_path / "a.yaml",)
    assert Settings(nodes=path).fingerprint() != Settings(crds=path).fingerprint()


@pytest.mark.parametrize(
    "changed",
    [
        replace(Settings(), qps=2000),
        replace(Settings(), real_node=True),
        replace(Settings(), gpus=6),
        replace(Settings(), audit=True),
        replace(Settings(), feature_gates=("X=true",)),
        replace(Settings(), node_grace_seconds=50),
        replace(Settings(), port=25_000),
    ],
)
def test_another_wish_has_another_fingerprint(changed: Settings) -> None:
    assert changed.fingerprint() != Settings().fingerprint()


@pytest.mark.parametrize("gpus", [0, 10])
def test_more_gpus_than_can_be_told_apart_are_refused(gpus: int) -> None:
    with pytest.raises(ClusterError, match="gpus"):
        Settings(gpus=gpus)


def test_who_owns_a_cluster_does_not_make_it_another_one() -> None:
    assert replace(Settings(), owner=1).fingerprint() == Settings().fingerprint()
