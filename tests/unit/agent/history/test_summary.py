"""What ``gpu-scheduler agent history`` shows of a node."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.agent.builders import CONTAINER, OTHER_POD, container, sample, seen, use
from tests.unit.agent.history.test_recorder import BUSY, IDLE, Node

from gpu_scheduler.agent.container_host import ContainerHostUse
from gpu_scheduler.agent.history.history_clock import HistoryClock
from gpu_scheduler.agent.history.history_file import HistoryError, rings
from gpu_scheduler.agent.history.recorder import FILE
from gpu_scheduler.agent.history.slot import LOOK_SECONDS
from gpu_scheduler.agent.history.summary import cells, rows
from gpu_scheduler.cli.commands.agent import command

NEIGHBOUR = container(uid=OTHER_POD, container_id="d" * 64)


def shown(node: Node) -> list[list[str]]:
    clock = HistoryClock("boot", lambda: node.now, lambda: node.now)
    slots = rings(node.folder / FILE, clock)
    return [list(cells(each)) for each in rows(slots, int(clock.now()) // LOOK_SECONDS)]


def test_who_runs_comes_before_who_has_ended(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.host[CONTAINER] = ContainerHostUse(2500.0, 4096.0)
    node.look(120, use(BUSY), use(IDLE, of=NEIGHBOUR))
    node.look(180, use(IDLE, of=NEIGHBOUR))
    first, second, running, ended = shown(node)
    assert {first[0], second[0]} == {"-"}
    assert running[3:] == ["running", "0%", "0%", "300", "5m", "-", "-"]
    assert ended[:2] == ["team-a/train-0", "main"]
    assert ended[3:] == ["ended 3m ago", "70%", "70%", "1000", "0s", "2.5", "4096"]


def test_what_is_not_known_is_no_figure(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.look(60, use(seen(100, None)), of=sample())
    (row,) = [each for each in shown(node) if each[0] != "-"]
    assert row[3:] == ["running", "-", "-", "0", "-", "-", "-"]


def test_a_file_that_is_none_is_refused_in_words(tmp_path: Path) -> None:
    clock = HistoryClock("boot")
    with pytest.raises(HistoryError, match="No such file"):
        rings(tmp_path / FILE, clock)
    (tmp_path / FILE).write_bytes(b"notes")
    with pytest.raises(HistoryError, match="is no history of this version"):
        rings(tmp_path / FILE, clock)


def test_it_can_be_removed_while_an_agent_goes_on_in_what_it_has_open(tmp_path: Path) -> None:
    where = {"GPUSCHED_AGENT_HISTORY_FOLDER": str(tmp_path), "GPUSCHED_AGENT_NODE": "n"}
    (tmp_path / FILE).write_bytes(b"somebody else's")
    (tmp_path / "notes").write_text("not ours")
    node = Node(tmp_path)
    node.look(60, use(BUSY))  # sets that aside
    result = CliRunner().invoke(command, ["history", "--remove"], env=where)
    assert sorted(result.output.split()) == sorted(
        ["removed", str(tmp_path / FILE), "removed", str(tmp_path / f"{FILE}.other")]
    )
    assert [each.name for each in tmp_path.iterdir()] == ["notes"]
    node.look(60, use(BUSY))
    node.recorder.close()
    assert [each.name for each in tmp_path.iterdir()] == ["notes"]


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    where = {"GPUSCHED_AGENT_HISTORY_FOLDER": str(tmp_path), "GPUSCHED_AGENT_NODE": "n"}
    without = CliRunner().invoke(command, ["history"], env={"GPUSCHED_AGENT_NODE": "n"})
    assert "agent.history.enabled" in without.output
    empty = CliRunner().invoke(command, ["history"], env=where)
    assert (empty.exit_code, "No such file" in empty.output) == (1, True)
    node = Node(tmp_path)
    node.look(60, use(BUSY))
    node.recorder.close()
    table = CliRunner().invoke(command, ["history"], env=where)
    assert table.output.splitlines()[0].startswith("NAMESPACE/POD")
    assert "team-a/train-0" in table.output
