"""Tools made for charts find nothing wrong with ours."""

import subprocess

from tests.chart.conftest import CHART, helm

from cluster import build


def test_helm_lint_is_content() -> None:
    answer = helm("lint", "--strict", str(CHART))
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_the_charts_own_unit_tests_pass() -> None:
    answer = subprocess.run(
        [build.binary("helm-unittest"), "--strict", str(CHART)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    suites = len(list((CHART / "tests").glob("*_test.yaml")))
    told = f"Test Suites: {suites} passed, {suites} total"
    assert told in answer.stdout, "a suite was not found"
