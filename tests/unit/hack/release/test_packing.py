"""Archives depend on names and contents, and nothing else."""

import io
import os
import tarfile
from pathlib import Path

from release.packing import File, folder_files, tar_gz, unpacked

FILES = {"b/run": File(b"#!", runs=True), "a": File(b"text")}


def test_order_of_the_files_does_not_matter() -> None:
    assert tar_gz(FILES, 5) == tar_gz(dict(reversed(FILES.items())), 5)
    assert tar_gz(FILES, 5) != tar_gz(FILES, 6)


def test_entries_are_sorted_owned_by_nobody_and_of_one_time() -> None:
    with tarfile.open(fileobj=io.BytesIO(tar_gz(FILES, 5))) as tar:
        entries = tar.getmembers()
    assert [(e.name, e.mode, e.mtime, e.uid, e.uname) for e in entries] == [
        ("a", 0o644, 5, 0, ""),
        ("b/run", 0o755, 5, 0, ""),
    ]


def test_what_was_packed_comes_out_again() -> None:
    assert unpacked(tar_gz(FILES, 5)) == FILES


def test_of_a_folder_the_files_are_taken_and_no_links(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "run").write_bytes(b"#!")
    (tmp_path / "b" / "run").chmod(0o700)
    (tmp_path / "a").write_bytes(b"text")
    (tmp_path / "a").chmod(0o600)
    os.symlink("a", tmp_path / "link")
    assert folder_files(tmp_path) == FILES
    assert set(folder_files(tmp_path, "x/")) == {"x/a", "x/b/run"}
