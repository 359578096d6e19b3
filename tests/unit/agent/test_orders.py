from pathlib import Path

import pytest
from tests.unit.agent.builders import ordered, orders

from gpu_scheduler.agent.orders import OrdersFile
from gpu_scheduler.api.orders import Orders, dumps
from gpu_scheduler.kube.unexpected import counts


class Stage:
    def __init__(self, root: Path) -> None:
        self.path = root / "orders"
        self.heard: list[Orders] = []
        self.file = OrdersFile(self.path, self.heard.append)

    def read(self, text: str | bytes | None = None) -> int:
        if text is not None:
            self.path.write_bytes(text.encode() if isinstance(text, str) else text)
        self.file.read()
        return len(self.heard)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_each_new_text_is_told_once(stage: Stage) -> None:
    first, second = orders(), orders(ordered())
    assert stage.read(dumps(first)) == 1
    assert stage.read() == 1
    assert stage.read(dumps(second)) == 2
    assert stage.heard == [first, second]


@pytest.mark.parametrize("text", [None, ""])
def test_before_the_operators_first_word_nothing_is_told(stage: Stage, text: str | None) -> None:
    assert stage.read(text) == 0
    assert stage.heard == []


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "null",
        "{}",
        '{"v":2,"nodeUid":"x"}',
        '{"v":1,"nodeUid":7}',
        b"\xff\xfe",
        "[" * 9999,
    ],
)
def test_what_cannot_be_read_changes_nothing(stage: Stage, text: str | bytes) -> None:
    stage.read(dumps(orders(ordered())))
    before = stage.heard[-1]
    assert stage.read(text) == 1
    assert stage.heard[-1] == before
    assert stage.read(dumps(orders())) == 2


def test_a_field_that_a_newer_operator_adds_is_passed_over(stage: Stage) -> None:
    newer = dumps(orders()).replace("{", '{"moreToCome":[1],', 1)
    assert stage.read(newer) == 1


def test_a_follower_that_fails_costs_no_other(tmp_path: Path) -> None:
    heard: list[Orders] = []

    def fails(told: Orders) -> None:
        raise RuntimeError("nobody foresaw it")

    path = tmp_path / "orders"
    path.write_text(dumps(orders()))
    before = counts["orders"]
    OrdersFile(path, fails, heard.append).read()
    assert len(heard) == 1
    assert counts["orders"] == before + 1
