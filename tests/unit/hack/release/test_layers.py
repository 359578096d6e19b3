"""A layer written anew says nothing of when, where and in which order it was built."""

import io
import tarfile
from pathlib import Path

import pytest

from cluster.images_operator import BASE_EPOCH
from release.layers import dropped, settled

EPOCH = BASE_EPOCH + 1000


def layer(path: Path, entries: list[tarfile.TarInfo], data: bytes = b"data") -> Path:
    with tarfile.open(path, "w") as tar:
        for entry in entries:
            if entry.isreg():
                entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return path


def entry(name: str, type: bytes = tarfile.REGTYPE, **more: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type = type
    for key, value in more.items():
        setattr(made, key, value)
    return made


def read(path: Path) -> list[tarfile.TarInfo]:
    with tarfile.open(path) as tar:
        return tar.getmembers()


def test_two_builds_of_the_same_files_become_equal(tmp_path: Path) -> None:
    # One built before the commit, as when only a page changed since, and one after it.
    early, late = EPOCH - 500, EPOCH + 500
    one = [entry("etc/", tarfile.DIRTYPE, mtime=early), entry("etc/a", mtime=early, uname="root")]
    other = [
        entry("./etc/a", mtime=late, uname="builder", pax_headers={"atime": "7.5"}),
        entry("./etc", tarfile.DIRTYPE, mtime=late),
    ]
    for number, entries in enumerate((one, other)):
        settled(layer(tmp_path / f"{number}", entries), tmp_path / f"{number}.out", EPOCH)
    assert (tmp_path / "0.out").read_bytes() == (tmp_path / "1.out").read_bytes()


def test_other_contents_stay_other_contents(tmp_path: Path) -> None:
    for data in (b"one", b"two"):
        settled(layer(tmp_path / "in", [entry("a")], data), tmp_path / data.decode(), EPOCH)
    assert (tmp_path / "one").read_bytes() != (tmp_path / "two").read_bytes()


def test_times_of_the_base_owners_modes_and_capabilities_stay(tmp_path: Path) -> None:
    capability = {"SCHILY.xattr.security.capability": "x"}
    given = entry("a", mtime=7, uid=65532, gid=9, mode=0o4755, pax_headers=capability)
    settled(layer(tmp_path / "in", [given]), tmp_path / "out", EPOCH)
    (found,) = read(tmp_path / "out")
    assert (found.mtime, found.uid, found.gid, found.mode) == (7, 65532, 9, 0o4755)
    assert found.pax_headers == capability


def test_links_and_what_a_layer_takes_away_stay(tmp_path: Path) -> None:
    entries = [
        entry("a/hard", tarfile.LNKTYPE, linkname="./z"),
        entry("b", tarfile.SYMTYPE, linkname="../z"),
        entry("c/.wh.gone"),
        entry("z"),
    ]
    with tarfile.open(tmp_path / "in", "w") as tar:
        for each in (entries[3], *entries[:3]):
            tar.addfile(each, io.BytesIO())
    settled(tmp_path / "in", tmp_path / "out", EPOCH)
    found = {each.name: each.linkname for each in read(tmp_path / "out")}
    assert found == {"a/hard": "z", "b": "../z", "c/.wh.gone": "", "z": ""}
    assert list(found)[-1] == "a/hard", "behind what it is a link to"


@pytest.mark.parametrize("name", ["etc/hostname", "etc/resolv.conf", "var/log/dpkg.log"])
def test_what_tells_of_the_building_machine_goes(tmp_path: Path, name: str) -> None:
    assert dropped(name)
    settled(layer(tmp_path / "in", [entry(f"./{name}"), entry("etc/kept")]), tmp_path / "o", EPOCH)
    assert [each.name for each in read(tmp_path / "o")] == ["etc/kept"]


def test_each_file_is_shown(tmp_path: Path) -> None:
    seen = {}
    settled(
        layer(tmp_path / "in", [entry("./opt/a"), entry("opt", tarfile.DIRTYPE)]),
        tmp_path / "out",
        EPOCH,
        lambda name, file: seen.update({name: file.read()}),
    )
    assert seen == {"opt/a": b"data"}
    assert read(tmp_path / "out")[1].size == 4
