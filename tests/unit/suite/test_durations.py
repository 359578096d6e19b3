from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.suite import durations

CONFTEST = Path(__file__).parents[2] / "conftest.py"

TEST = "tests/unit/test_a.py::test_x"


@pytest.fixture(autouse=True)
def _nothing_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPU_SCHEDULER_CACHE", str(tmp_path))
    monkeypatch.setattr(durations, "recorded", lambda: {"tests": {TEST: 7.0}})
    durations.known_of.cache_clear()


def test_this_machine_knows_better_than_the_recorded_file() -> None:
    assert durations.seconds_of(TEST) == 7.0
    assert durations.seconds_of("tests/unit/test_a.py::test_new") is None
    durations.record({TEST: 3.004})
    assert durations.seconds_of(TEST) == 3.0


def test_tiers_are_kept_apart_and_a_part_of_a_tier_replaces_only_itself() -> None:
    durations.record({TEST: 3.0, "tests/api/test_b.py::test_y": 4.0})
    durations.record({"tests/unit/test_a.py::test_z": 5.0})
    assert durations.known_of("unit") == {TEST: 3.0, "tests/unit/test_a.py::test_z": 5.0}
    assert durations.known_of("api") == {"tests/api/test_b.py::test_y": 4.0}


def test_a_file_that_was_cut_is_as_none(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "durations-unit.json").write_text('{"a')
    assert durations.seconds_of(TEST) == 7.0


def test_all_workers_take_the_long_ones_first_by_one_reading(
    pytestconfig: pytest.Config,
) -> None:
    """Another run beside records its own while the workers of this one start."""
    plugins = pytestconfig.pluginmanager.get_plugins()
    (conftest,) = (p for p in plugins if str(getattr(p, "__file__", "")) == str(CONFTEST))
    names = [f"tests/unit/test_a.py::test_{c}" for c in "abcd"]
    durations.record({names[2]: 4.0, names[1]: 0.4})
    node = SimpleNamespace(workerinput={})
    conftest.pytest_configure_node(node)
    durations.record({names[3]: 9.0})
    items = [SimpleNamespace(nodeid=n, get_closest_marker=lambda _: None) for n in names]
    conftest.pytest_collection_modifyitems(node, items)
    assert [item.nodeid for item in items] == [names[2], names[0], names[1], names[3]]
    assert node.workerinput == {"long_tests": {TEST: 7.0, names[2]: 4.0}}
