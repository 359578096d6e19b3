from dataclasses import replace
from pathlib import Path

import pytest

from cluster.ports import block
from cluster.process import Process
from cluster.state import Service, State, load, save

STATE = State(
    name="try",
    fingerprint="abc",
    first_port=21_000,
    ports=block(21_000),
    owner=Process(1, 2),
    services={
        "etcd": Service(("/bin/etcd", "--x"), Process(12, 345)),
        "kwok": Service(("/bin/kwok",)),
    },
)


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    save(tmp_path, STATE)
    assert load(tmp_path) == STATE


def test_saving_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    save(tmp_path, STATE)
    save(tmp_path, replace(STATE, ready=True))
    loaded = load(tmp_path)
    assert loaded is not None
    assert loaded.ready
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_a_service_is_replaced_by_name() -> None:
    stopped = STATE.with_service("etcd", Service(("/bin/etcd", "--x")))
    assert stopped.services["etcd"].process is None
    assert STATE.services["etcd"].process == Process(12, 345)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"services": {}}', '{"services": 1}'])
def test_a_file_that_cannot_be_read_is_no_state(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    assert load(tmp_path) is None


def test_no_folder_is_no_state(tmp_path: Path) -> None:
    assert load(tmp_path / "none") is None
