"""``python -m tests.perf.sharing`` as a user calls it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.perf.sharing.__main__ import command

EXAMPLE = Path(__file__).parents[4] / "examples" / "workloads" / "two-teams.yml"
WORK = """
nodes: [{count: 1, gpus: 1}]
projects: [{name: a, quota: 1}, {name: b}]
jobs:
  - {name: one, project: b, gpu: 1, seconds: 300}
  - {name: two, project: a, gpu: 1, seconds: 200, arrives: 100}
seconds: 1000
"""


def compare(*arguments: object) -> Result:
    return CliRunner().invoke(command, [*map(str, arguments)])


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "work.yaml"
    path.write_text(WORK)
    return path


def test_rules_stand_side_by_side(small: Path):
    result = compare(small, "--preemption", "fair,strict", "--preemption", "never")
    assert result.exit_code == 0
    head, *rows = result.stdout.splitlines()
    assert head.split() == ["fair", "strict", "never"]
    lost = next(row for row in rows if row.startswith("lost to evictions"))
    assert lost.split()[3:] == ["24.47", "%", "16.94", "%", "0.00", "%"]


def test_json_has_the_keys_that_scripts_use(small: Path):
    found = json.loads(compare(small, "-o", "json").stdout)
    assert list(found) == ["fair", "strict"]
    assert found["fair"]["guaranteeDelaySeconds"]["max"] == 62.0
    assert found["strict"]["evictions"] == {"reclaim": 1}


def test_the_seconds_of_promises_can_be_tried(small: Path):
    options = ("--preemption", "fair", "--guarantee-seconds", 10, "-o", "json")
    found = json.loads(compare(small, *options).stdout)
    assert found["fair"]["guaranteeDelaySeconds"]["max"] == 12.0


def test_the_example_can_be_played():
    assert compare(EXAMPLE).exit_code == 0


def test_a_picture_is_drawn(small: Path, tmp_path: Path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "out.svg"
    assert compare(small, "--plot", picture).exit_code == 0
    assert "<svg" in picture.read_text()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["nothing"], "nothing: one of random, day, sweep, trace"),
        (["random", "--preemption", "kind"], "--preemption kind: one of fair"),
        (["random", "--nodes", "x.csv"], "--nodes: is for the workload trace"),
        (["trace"], "trace: give --nodes and --pods too"),
        (["day", "--checkpoint-seconds", "9"], "--checkpoint-seconds: is for the workload random"),
        (["day", "--preemption", "strict", "--patience-seconds", "1"], "is for --pre"),
        (["random", "--load", "nan"], "--load nan: a number"),
        (["gone.yaml"], "gone.yaml: No such file"),
    ],
)
def test_what_cannot_be_is_refused_with_the_option(options: list[str], says: str):
    result = compare(*options)
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("gpu: 1, seconds: 300", "gpu: 2, seconds: 300", "jobs[0].gpu: Input should be less"),
        ("gpu: 1, seconds: 300", "gpu: 0.12345, seconds: 300", "more than three decimals"),
        ("gpu: 1, seconds: 300", "gpu: 0.5, gpus: 2, seconds: 300", "jobs[0]: gpu: is 1 where"),
        ("project: b", "project: c", "jobs[0].project: there is no project c"),
        ("name: two", "name: one", "jobs[1].name: one is there twice"),
        ("seconds: 1000", "seconds: .nan", "seconds: Input should be"),
        ("seconds: 1000", "seconds: 1000\ncountedFrom: 1000", "countedFrom: must be less"),
        ("quota: 1", "quotas: 1", "projects[0].quotas: Extra inputs"),
        ("nodes:", "nodes: [", "while parsing"),
        (WORK, "[]", "Input should be a valid dictionary"),
    ],
)
def test_a_file_that_cannot_be_used_says_where(tmp_path: Path, old: str, new: str, says: str):
    path = tmp_path / "work.yaml"
    path.write_text(WORK.replace(old, new))
    result = compare(path)
    assert result.exit_code == 2
    assert f"{path}: " in result.stderr
    assert says in result.stderr
