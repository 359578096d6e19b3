import hashlib
import subprocess
from pathlib import Path

import pytest
from tests.unit.hack.test_build_fetched import CHECK, content_of, digest_of, never, path_of, pinned

from cluster import build, mirror
from cluster.errors import ClusterError
from cluster.fetch_pins import Digest, Pins, Published, this_platform
from cluster.programs import version

FIRST, SECOND = CHECK


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Both programs of the group `check`, in the cache."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("GPU_SCHEDULER_CACHE", str(folder))
    for program in CHECK:
        path = build.path_of(program)
        path.parent.mkdir(parents=True)
        path.write_bytes(content_of(program))
    return folder


def test_a_mirror_gives_what_it_was_filled_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mirror"
    assert mirror.fill(folder, pinned(*CHECK), CHECK) == []
    monkeypatch.setenv("GPU_SCHEDULER_CACHE", str(tmp_path / "other"))
    monkeypatch.setenv("GPU_SCHEDULER_MIRROR", str(folder))
    build.obtain(CHECK, pinned(*CHECK), {}, compile_some=never)
    assert build.binary(FIRST.name).read_bytes() == content_of(FIRST)


def test_its_list_is_one_that_sha256sum_reads(tmp_path: Path) -> None:
    mirror.fill(tmp_path / "mirror", pinned(*CHECK), CHECK)
    command = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    subprocess.run(command, cwd=tmp_path / "mirror", check=True)
    lines = (tmp_path / "mirror" / "SHA256SUMS").read_text().splitlines()
    assert {line.split("  ")[1] for line in lines} == {path_of(FIRST), path_of(SECOND)}


def test_what_nobody_would_accept_is_left_out(tmp_path: Path) -> None:
    (left_out,) = mirror.fill(tmp_path / "mirror", pinned(FIRST), CHECK)
    assert left_out.startswith(f"{SECOND.name} in the cache is no pinned file (sha256 ")
    assert not (tmp_path / "mirror" / path_of(SECOND)).exists()


def test_what_is_not_in_the_cache_is_left_out(tmp_path: Path) -> None:
    build.path_of(FIRST).unlink()
    (left_out,) = mirror.fill(tmp_path / "mirror", pinned(*CHECK), CHECK)
    assert left_out == f"{FIRST.name} is not in the cache: `python -m cluster build`"


def test_a_released_program_is_mirrored_too(tmp_path: Path) -> None:
    pins = Pins(
        {FIRST.name: Published(version(FIRST), "", files={this_platform(): digest_of(FIRST)})}
    )
    assert mirror.fill(tmp_path / "mirror", pins, [FIRST]) == []


def test_files_of_other_checkouts_stay(tmp_path: Path) -> None:
    folder = tmp_path / "mirror"
    (folder / "old").mkdir(parents=True)
    (folder / "old" / "kept").write_bytes(b"kept")
    kept = f"{hashlib.sha256(b'kept').hexdigest()}  old/kept"
    (folder / "SHA256SUMS").write_text(f"{kept}\n{'0' * 64}  old/gone\n")
    mirror.fill(folder, pinned(*CHECK), [FIRST])
    mirror.fill(folder, pinned(*CHECK), [SECOND])
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    assert kept in lines
    assert len(lines) == 3


def test_editing_the_mirror_does_not_edit_the_cache(tmp_path: Path) -> None:
    mirror.fill(tmp_path / "mirror", pinned(*CHECK), CHECK)
    (tmp_path / "mirror" / path_of(FIRST)).write_bytes(b"edited")
    assert build.path_of(FIRST).read_bytes() == content_of(FIRST)


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ClusterError, match="cannot be written"):
        mirror.fill(tmp_path / "file", pinned(*CHECK), CHECK)


def test_a_digest_counts_and_not_a_name() -> None:
    assert mirror.is_pinned(FIRST, pinned(FIRST), this_platform(), digest_of(FIRST).sha256)
    assert not mirror.is_pinned(FIRST, pinned(FIRST), this_platform(), digest_of(SECOND).sha256)
    assert not mirror.is_pinned(FIRST, pinned(FIRST), "linux-x", Digest("0" * 64).sha256)
