import json
from pathlib import Path

import pytest
from tests.suite import summary
from tests.suite.summary import Tier, grown, lines, read

RECORDED = {"machine": "x", "tiers": {"unit": 100, "api": 500}, "tests": {}}


def tier(name: str, seconds: float, **more: object) -> Tier:
    return Tier(
        name,
        seconds,
        **{"passed": 3, "failed": 0, "expected": 0, "skipped": [], "tests": {}, **more},
    )  # type: ignore[arg-type]


def test_a_tier_that_has_grown_by_more_than_15_percent_is_said() -> None:
    assert grown([tier("unit", 115), tier("api", 500), tier("new", 900)], RECORDED) == []
    (said,) = grown([tier("unit", 116), tier("api", 500)], RECORDED)
    assert "unit tier took 116 s, 16% more than recorded (100 s" in said


def test_a_tier_of_which_a_part_was_skipped_has_not_grown() -> None:
    assert grown([tier("unit", 900, skipped=["unchanged"])], RECORDED) == []


def test_what_is_recorded_is_a_whole_tier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "recorded.json"
    monkeypatch.setattr(summary, "RECORDED", file)
    monkeypatch.setattr(summary, "recorded", lambda: RECORDED)
    tests = {"tests/api/a.py::test_dear": 2.5, "tests/api/a.py::test_cheap": 0.5}
    summary.record([tier("unit", 3, skipped=["unchanged"]), tier("api", 600, tests=tests)])
    found = json.loads(file.read_text())
    assert found["tiers"] == {"unit": 100, "api": 600}
    assert found["tests"] == {"tests/api/a.py::test_dear": 2.5}


def test_the_dearest_ten_stand_with_their_seconds() -> None:
    tests = {f"tests/unit/test_a.py::test_{n}": float(n) for n in range(1, 13)}
    shown = lines([tier("unit", 1, tests=tests), tier("api", 1, tests={"long": 99.0})], RECORDED)
    start = shown.index("dearest tests:") + 1
    assert [float(line.split()[0]) for line in shown[start:-1]] == [99, *range(12, 3, -1)]


def test_the_last_line_counts_all_and_reasons_are_told() -> None:
    shown = lines([tier("unit", 1), tier("long", 1, skipped=["unchanged", "unchanged"])], RECORDED)
    assert shown[-1] == "6 passed, 0 failed, 2 skipped"
    assert "        2 skipped: unchanged" in shown


def test_tiers_are_read_from_what_they_left(tmp_path: Path) -> None:
    left = {
        "seconds": 2.5,
        "passed": 1,
        "failed": 0,
        "expected": 2,
        "skipped": [],
        "tests": {"a": 1.0},
    }
    (tmp_path / "api.json").write_text(json.dumps(left))
    (tmp_path / "api.log").write_text("other")
    assert read(tmp_path) == [tier("api", 2.5, passed=1, expected=2, tests={"a": 1.0})]
