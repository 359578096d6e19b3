from pathlib import Path
from typing import Any

from tests.dashboard.tier import MADE_OF, Passed, digest, of_playwright, of_vitest, outcome
from tests.suite.imports import ROOT

PASSING = (0, {"tests/dashboard/a.spec.ts::a": 1.5, "tests/dashboard/b.test.ts::b": 0.1}, 0)


def counted(result: tuple[int, dict[str, float], int], ran: list[int]) -> Any:
    def run() -> tuple[int, dict[str, float], int]:
        ran.append(1)
        return result

    return run


def test_what_has_passed_is_skipped_with_the_same_digest_alone_and_each_test_is_counted(
    tmp_path: Path,
) -> None:
    passed, ran = Passed(tmp_path / "marks"), list[int]()
    code, told = outcome("one", passed, counted(PASSING, ran))
    assert (code, told["passed"], told["skipped"], ran) == (0, 2, [], [1])
    code, told = outcome("one", passed, counted(PASSING, ran))
    assert (code, told["passed"], len(told["skipped"]), ran) == (0, 0, 2, [1])
    assert "nothing that decides about it has changed" in told["skipped"][0]
    assert outcome("other", passed, counted(PASSING, ran))[1]["passed"] == 2 and ran == [1, 1]


def test_a_failure_is_told_and_not_remembered_as_passed(tmp_path: Path) -> None:
    for number, failing in enumerate(
        [(1, {"a": 1.0}, 1), (1, {"a": 1.0}, 0), (0, {"a": 1.0}, 1), (0, {}, 0)]
    ):
        passed, ran = Passed(tmp_path / str(number)), list[int]()
        for _ in range(2):
            assert outcome("one", passed, counted(failing, ran))[0] == 1, failing
        assert ran == [1, 1]


def test_the_digest_is_of_the_front_end_the_browser_and_what_types_are_made_of(
    tmp_path: Path,
) -> None:
    (tmp_path / "types").mkdir()
    (tmp_path / "types" / "writer.py").write_text("a")
    (tmp_path / "views.py").write_text("b")

    def of(front_end: str = "x", browser: str = "y") -> str:
        return digest(front_end, browser, tmp_path, ("types", "views.py"))

    seen = [of(), of(front_end="z"), of(browser="z")]
    (tmp_path / "views.py").write_text("c")
    seen.append(of())
    (tmp_path / "types" / "writer.py").write_text("d")
    seen.append(of())
    assert len(set(seen)) == 5 and of() == seen[-1]


def test_what_it_is_made_of_is_there() -> None:
    assert all((ROOT / name).exists() for name in MADE_OF)


def test_a_report_of_vitest_is_read() -> None:
    results = [
        {"fullName": "adds", "status": "passed", "duration": 1500},
        {"fullName": "fails", "status": "failed", "duration": 1},
        {"fullName": "is left out", "status": "pending"},
    ]
    report = {"testResults": [{"name": "/x/unit/a.test.ts", "assertionResults": results}]}
    assert of_vitest(report) == ({"tests/dashboard/a.test.ts::adds": 1.5}, 2)


def test_two_tests_of_one_name_are_two() -> None:
    results = [{"fullName": "adds", "status": "passed", "duration": each} for each in (1000, 2000)]
    report = {"testResults": [{"name": "a.test.ts", "assertionResults": results}]}
    passed, failed = of_vitest(report)
    assert (sorted(passed.values()), failed) == ([1.0, 2.0], 0)


def test_a_report_of_playwright_is_read_and_what_came_out_twice_did_not_pass() -> None:
    def spec(title: str, status: str, *durations: int) -> dict[str, Any]:
        results = [{"duration": each} for each in durations]
        tests = [{"status": status, "results": results}]
        return {"title": title, "file": "a.spec.ts", "tests": tests}

    inner = {"specs": [spec("inner", "unexpected", 1), spec("again", "flaky", 1, 2)]}
    report = {"suites": [{"specs": [spec("outer", "expected", 2000)], "suites": [inner]}]}
    assert of_playwright(report) == ({"tests/dashboard/a.spec.ts::outer": 2.0}, 2)
