from pathlib import Path

from cluster.mounts import mounts_below

TABLE = """\
22 1 0:20 / / rw - overlay overlay rw
30 22 0:30 / /run/a/kubelet/volume rw - tmpfs tmpfs rw
31 22 0:31 / /run/ab rw - tmpfs tmpfs rw
32 22 0:32 / /run/a/with\\040blank rw - tmpfs tmpfs rw
"""


def test_mounts_below_a_folder_are_found(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(TABLE)
    found = mounts_below(Path("/run/a"), table)
    assert found == [Path("/run/a/kubelet/volume"), Path("/run/a/with blank")]


def test_a_machine_without_the_table_has_no_mounts_to_tell(tmp_path: Path) -> None:
    assert mounts_below(tmp_path, tmp_path / "none") == []
