"""A full disk: nothing wrong is told, it is said, and all goes on when there is room again."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.agent.history.full_disk import Node

NO_SPACE = "No space left on device"


def played(scene: str, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """On a file system of 3 MiB: what was found, and what was logged."""
    unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    mount = 'mount -t tmpfs -o size=3m none "$1" && exec "$0" -m "$2" "$3" "$1"'
    module = "tests.unit.agent.history.full_disk"
    done = subprocess.run(
        [*unshare, "sh", "-c", mount, sys.executable, folder, module, scene],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr.splitlines()


@pytest.mark.long(always=True)
@pytest.mark.parametrize("scene", ["begins", "fills"])
def test_on_a_real_disk_that_is_full(scene: str, tmp_path: Path) -> None:
    found, said = played(scene, tmp_path)
    assert not found["told"]
    assert NO_SPACE in found["missing"]
    assert found.get("taken", 0) == 0, "of a disk that has not enough, nothing is taken"
    assert found["toldLater"]
    assert found["wrong"] == []
    # A look whose writes find room is one: each time it is said once that none is kept.
    stops, goes_on = said[::2], said[1::2]
    assert len(stops) == len(goes_on)
    assert all(NO_SPACE in each for each in stops)
    assert all(each.startswith("the history goes on: ") for each in goes_on)


@pytest.mark.parametrize("fails_at", range(14))
def test_whichever_write_of_a_look_fails_nothing_is_wrong(
    fails_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a look in which one container ends and another begins."""
    node = Node(tmp_path)
    node.looks(20)
    real, calls = os.pwrite, 0

    def pwrite(descriptor: int, content: bytes, at: int) -> int:
        nonlocal calls
        calls += 1
        if calls > fails_at:
            raise OSError(errno.ENOSPC, NO_SPACE)
        return real(descriptor, content, at)

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", pwrite)
        node.looks(1, of="another")
        node.looks(9)
    assert calls > fails_at
    assert not node.tells
    node.looks(20)
    assert node.tells
    assert node.wrong() == []


def test_what_is_told_is_of_late(tmp_path: Path) -> None:
    """A driver that does not answer leaves no figures of before it."""
    node = Node(tmp_path)
    node.looks(5)
    assert node.tells
    node.now += 25
    assert node.tells
    node.now += 10
    assert node.recorder.answering.missing(node.now) == "no look at the GPUs for 35 s"
    node.looks(1)
    assert node.tells


def test_a_look_counts_once_however_often_the_agent_begins(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.looks(5)
    before = node.recorder.answering.answer(0).shares[0].totals.seconds
    for _ in range(3):
        node.recorder.close()
        node.starts()
        node.now -= 10.0
        node.looks(1)
    node.looks(1)
    assert node.recorder.answering.answer(0).shares[0].totals.seconds == before + 10.0
