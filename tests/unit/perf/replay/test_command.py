"""``python -m tests.perf.replay`` as a user calls it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.perf.replay.__main__ import command
from tests.unit.perf.replay.traces import compressed, nodes_file, pods_file

OPENB = Path(__file__).parents[3] / "fixtures" / "traces" / "openb"
KEYS = [
    "unallocatedPercent",
    "placedPods",
    "lostPods",
    "lostMultiGPUPercent",
    "lostDemandPercent",
    "decisionsPerSecond",
    "lostPercentByCause",
]


@pytest.fixture
def trace(tmp_path: Path) -> list[str]:
    """Two nodes with 4 GPUs, and pods that ask for 3 GPUs in all."""
    nodes = nodes_file(tmp_path, "a,64000,1024,2,T4", "b,64000,1024,2,T4")
    pods = pods_file(
        tmp_path,
        *[f"half{i},1000,1,1,500," for i in range(2)],
        "whole,1000,1,1,1000,",
        "one,1000,1,1,1000,T4",
        "cpu,1000,1,0,0,",
    )
    return ["--nodes", str(nodes), "--pods", str(compressed(pods))]


@pytest.fixture
def halves(tmp_path: Path) -> list[str]:
    """The same nodes, and pods that only ask for halves."""
    nodes = nodes_file(tmp_path, "a,64000,1024,2,T4", "b,64000,1024,2,T4")
    pods = pods_file(tmp_path, *[f"p{i},1000,1,1,500," for i in range(6)], "cpu,1000,1,0,0,")
    return ["--nodes", str(nodes), "--pods", str(pods)]


def replay(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


def test_json_has_the_keys_that_scripts_use(halves: list[str]):
    result = replay(*halves, "-o", "json", "--arrive", "1.25")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert list(found) == KEYS
    assert (found["unallocatedPercent"], found["lostDemandPercent"]) == (0.0, 20.0)
    assert found["decisionsPerSecond"] > 0


def test_the_table_says_the_same_in_words(halves: list[str]):
    result = replay(*halves, "--policy", "best-fit", "--arrive", "1.25")
    said = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert said[0] == "unallocated GPU 0.00 %"
    assert "GPU demand lost 20.00 %" in said
    assert "more demand than GPUs, whatever the policy 20.00 %" in said


def test_the_seed_and_the_policy_decide_the_result(trace: list[str]):
    def figures(*arguments: str) -> dict[str, float]:
        found = json.loads(replay(*trace, "-o", "json", *arguments).stdout)
        del found["decisionsPerSecond"]
        return found

    spread, packed = (figures("--policy", policy) for policy in ("spread", "fragmentation"))
    assert figures("--policy", "spread") == spread
    assert packed["lostDemandPercent"] <= spread["lostDemandPercent"]
    seeds = {json.dumps(figures("--policy", "spread", "--seed", str(s))) for s in range(8)}
    assert len(seeds) > 1


def test_policies_stand_side_by_side(trace: list[str]):
    result = replay(*trace, "--policy", "spread,fragmentation", "--policy", "spread")
    head, *rows = result.stdout.splitlines()
    assert head.split() == ["spread", "fragmentation"]
    lost = next(row for row in rows if row.startswith("GPU demand lost"))
    alone = [replay(*trace, "--policy", each).stdout for each in ("spread", "fragmentation")]
    assert lost.split()[3:] == [
        word
        for each in alone
        for row in each.splitlines()
        if row.startswith("GPU demand lost")
        for word in row.split()[3:]
    ]
    found = json.loads(replay(*trace, "--policy", "spread,fgd", "-o", "json").stdout)
    assert [list(each) for each in found.values()] == [KEYS, KEYS]


def test_json_says_why_demand_is_lost(halves: list[str]):
    found = json.loads(replay(*halves, "-o", "json", "--arrive", "1.25").stdout)
    assert found["lostPercentByCause"] == {"overload": 20.0}


def test_pods_that_come_and_go(trace: list[str]):
    result = replay(*trace, "--releasing", "0.5", "-o", "json")
    found = json.loads(result.stdout)
    assert found["placedPods"] > 0
    assert found["unallocatedPercent"] > 20


@pytest.mark.long(always=True)
@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_a_picture_is_drawn(trace: list[str], tmp_path: Path, suffix: str):
    picture = tmp_path / f"picture{suffix}"
    assert replay(*trace, "--plot", str(picture)).exit_code == 0
    begin = picture.read_bytes()[:100]
    assert begin.startswith(b"\x89PNG" if suffix == ".png" else b"<?xml")


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        (["--policy", "worst-fit"], "--policy worst-fit: one of fragmentation, best-fit"),
        (["--policy", "fgd,worst-fit"], "--policy worst-fit: one of"),
        (["--arrive", "nan"], "--arrive nan: a number"),
        (["--plot", "/nowhere/picture.png"], "there is no folder /nowhere"),
        (["--plot", "picture.bmp"], "a picture ends with .png"),
    ],
)
def test_a_wrong_option_ends_with_one_line(trace: list[str], extra: list[str], told: str):
    result = replay(*trace, *extra)
    assert result.exit_code == 2
    assert ": " in result.stderr
    assert told in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_bad_trace_ends_with_line_and_column(tmp_path: Path):
    nodes = nodes_file(tmp_path, "a,64000,1024,two,T4")
    pods = pods_file(tmp_path, "p,1000,1,1,500,")
    result = replay("--nodes", str(nodes), "--pods", str(pods))
    assert result.exit_code == 2
    assert result.stderr.endswith(f": {nodes}: line 2, column gpu: 'two' is not a whole number\n")


@pytest.mark.parametrize(
    ("node", "pod", "told"),
    [
        ("a,64000,1024,0,", "p,1000,1,1,500,", "no node has a GPU"),
        ("a,64000,1024,1,T4", "p,1000,1,0,0,", "no pod wants a GPU"),
    ],
)
def test_a_trace_without_gpus_is_refused(tmp_path: Path, node: str, pod: str, told: str):
    nodes, pods = nodes_file(tmp_path, node), pods_file(tmp_path, pod)
    result = replay("--nodes", str(nodes), "--pods", str(pods))
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert told in result.stderr


@pytest.mark.long(always=True)
def test_the_openb_trace_of_this_repository_can_be_played():
    result = replay(
        "--nodes",
        str(OPENB / "openb_node_list_gpu_node.csv.xz"),
        "--pods",
        str(OPENB / "openb_pod_list_gpuspec33.csv.xz"),
        *("--seed", "1", "--arrive", "0.1", "-o", "json"),
    )
    found = json.loads(result.stdout)
    assert (found["lostPods"], found["unallocatedPercent"]) == (0, None)
    assert 700 < found["placedPods"] < 950  # a tenth of the demand
