"""An export depends on the commit, not on the checkout, the umask or the clock."""

import os
import subprocess
from pathlib import Path

import pytest

from release import version
from release.errors import ReleaseError
from release.source import export

TIME = 1_700_000_000


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    texts = {str(place.file): "version: 1.0.0\nappVersion: 1.0.0\n" for place in version.PLACES}
    texts[str(version.SOURCE)] = '__version__ = "1.0.0"\n'
    texts["run.sh"] = "#!/bin/sh\n"
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "run.sh").chmod(0o700)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    return folder


def git(folder: Path, *arguments: str) -> None:
    who = {f"GIT_{role}_{what}": "x@example.com" for role in ("AUTHOR", "COMMITTER")
           for what in ("NAME", "EMAIL")}  # fmt: skip
    date = {f"GIT_{role}_DATE": f"{TIME} +0300" for role in ("AUTHOR", "COMMITTER")}
    subprocess.run(["git", *arguments], cwd=folder, env={**os.environ, **who, **date}, check=True)


def test_files_have_the_same_modes_and_times_whatever_the_umask(
    repository: Path, tmp_path: Path
) -> None:
    before = os.umask(0o077)
    try:
        source = export(repository, tmp_path / "out")
    finally:
        os.umask(before)
    assert (source.version, source.epoch) == ("1.0.0", TIME)
    assert (source.root / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (source.root / "README.md").stat().st_mode & 0o777 == 0o644
    assert {int(p.stat().st_mtime) for p in source.root.rglob("*")} == {TIME}


def test_what_git_does_not_know_is_not_in_it(repository: Path, tmp_path: Path) -> None:
    (repository / ".git" / "info" / "exclude").write_text("junk\n")
    (repository / "junk").write_text("x")
    assert not (export(repository, tmp_path / "out").root / "junk").exists()


def test_a_tree_with_changes_is_refused_and_says_which(repository: Path, tmp_path: Path) -> None:
    (repository / "new.txt").write_text("x")
    with pytest.raises(ReleaseError, match=r"(?s)ALLOW_DIRTY=1.*new\.txt"):
        export(repository, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_tree_with_changes_is_marked_when_it_is_allowed(repository: Path, tmp_path: Path) -> None:
    (repository / "new.txt").write_text("x")
    (repository / "run.sh").unlink()
    source = export(repository, tmp_path / "out", allow_dirty=True)
    assert source.version == "1.0.0+dirty"
    assert (source.root / "new.txt").exists() and not (source.root / "run.sh").exists()
    assert version.stated(repository) == "1.0.0", "the checkout is left as it is"


def test_a_clean_tree_is_not_marked(repository: Path, tmp_path: Path) -> None:
    assert export(repository, tmp_path / "out", allow_dirty=True).version == "1.0.0"
