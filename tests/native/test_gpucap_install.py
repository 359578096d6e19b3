"""gpucap-install fills a volume, as any user, again and again, and says what it did."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.native.build import NativeBuild


@pytest.fixture
def program(native: NativeBuild) -> Path:
    return native.folder / "gpucap-install"


def install(program: Path, to: Path, **options: int) -> subprocess.CompletedProcess[str]:
    """Run it."""
    return subprocess.run([program, to], capture_output=True, text=True, **options)  # type: ignore[call-overload, no-any-return]


def check(program: Path, to: Path) -> None:
    """All is there, with its modes."""
    library = to / "lib/libgpucap.so"
    assert library.read_bytes() == (program.parent / "libgpucap.so").read_bytes()
    assert library.stat().st_mode & 0o7777 == 0o755
    assert (to / "ld.so.preload").read_text() == "/opt/gpu-scheduler/lib/libgpucap.so\n"
    assert (to / "ld.so.preload").stat().st_mode & 0o7777 == 0o644
    for number in range(16):
        assert (to / f"c{number}").stat().st_mode & 0o7777 == 0o1777
    assert len(list(to.iterdir())) == 18


def test_fills_an_empty_folder_and_again(program: Path, tmp_path: Path) -> None:
    for _ in range(2):
        done = install(program, tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert len(done.stdout.splitlines()) == 1
        assert "16 state folders" in done.stdout
        check(program, tmp_path)


def test_whatever_the_umask(program: Path, tmp_path: Path) -> None:
    assert install(program, tmp_path, umask=0o077).returncode == 0
    check(program, tmp_path)


def test_is_static(program: Path) -> None:
    done = subprocess.run(["readelf", "-l", program], capture_output=True, text=True, check=True)
    assert "INTERP" not in done.stdout


def test_says_why_not(program: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    done = install(program, missing)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"gpucap-install: cannot use {missing}: No such file or directory\n"
    (tmp_path / "file").touch()
    assert install(program, tmp_path / "file").returncode == 1
    usage = subprocess.run([program], capture_output=True, text=True)
    assert (usage.returncode, usage.stderr) == (1, "usage: gpucap-install DEST\n")


def test_as_another_user(program: Path, tmp_path: Path) -> None:
    """An emptyDir that any user may write; needs root, to become one."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    folder = Path("/var/tmp") / f"gpucap-{os.getpid()}"  # pytest's folders are root's alone
    folder.mkdir()
    folder.chmod(0o777)
    try:
        done = subprocess.run(
            [
                "sh",
                "-c",
                'cp "$0" "$1" "$2/" && mkdir "$2/cap"',
                program,
                program.parent / "libgpucap.so",
                folder,
            ],
            check=True,
            capture_output=True,
        )
        (folder / "cap").chmod(0o777)
        done = install(folder / program.name, folder / "cap", user=54321, group=54321)
        assert done.returncode == 0, done.stderr
        check(folder / program.name, folder / "cap")
    finally:
        subprocess.run(["rm", "-rf", folder], check=True)
