"""Checksums are as sha256sum has them, and two lists are compared by name."""

import subprocess
from pathlib import Path

from release.checksums import NAME, differing, sums


def test_sha256sum_is_content(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"two")
    (tmp_path / "a").write_bytes(b"one")
    (tmp_path / NAME).write_text(sums(tmp_path))
    check = ["sha256sum", "--check", "--strict", NAME]
    assert subprocess.run(check, cwd=tmp_path, capture_output=True).returncode == 0
    assert sums(tmp_path).splitlines()[0].endswith("  a")
    (tmp_path / "a").write_bytes(b"changed")
    assert subprocess.run(check, cwd=tmp_path, capture_output=True).returncode == 1


def test_other_digests_and_missing_files_differ() -> None:
    one = "1  same\n2  other\n3  only here\n"
    two = "1  same\n9  other\n3  only there\n"
    assert differing(one, two) == ["only here", "only there", "other"]
    assert differing(one, one) == []
