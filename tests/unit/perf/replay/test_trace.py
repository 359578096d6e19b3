from pathlib import Path

import pytest
from tests.perf.replay.trace import TraceError, TraceNode, read_nodes, read_pods
from tests.unit.builders import pod_shape
from tests.unit.perf.replay.traces import compressed, nodes_file, pods_file

MIB = 1 << 20


def test_nodes_and_pods_are_read(tmp_path: Path):
    nodes = nodes_file(tmp_path, "a,64000,1024,2,P100", "b,8000,512,0,")
    pods = pods_file(
        tmp_path, "p0,8000,10,0,0,", "p1,6000,20,1,460,", "p2,1000,30,8,1000,V100M32|T4"
    )
    assert read_nodes(nodes) == [
        TraceNode("a", 64000, 1024 * MIB, 2, "P100"),
        TraceNode("b", 8000, 512 * MIB, 0, ""),
    ]
    assert read_pods(pods) == [
        pod_shape(cpu_milli=8000, memory_bytes=10 * MIB),
        pod_shape(460, cpu_milli=6000, memory_bytes=20 * MIB),
        pod_shape(1000, count=8, cpu_milli=1000, memory_bytes=30 * MIB, models=("t4", "v100m32")),
    ]


def test_a_compressed_file_is_the_same_trace(tmp_path: Path):
    path = pods_file(tmp_path, "p0,8000,10,0,0,", "p1,6000,20,1,460,")
    assert read_pods(compressed(path)) == read_pods(path)


def test_a_mark_of_the_byte_order_is_no_part_of_the_heading(tmp_path: Path):
    path = nodes_file(tmp_path, "a,64000,1024,2,T4")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert [node.name for node in read_nodes(path)] == ["a"]


def test_pods_need_no_column_for_models(tmp_path: Path):
    path = tmp_path / "pods.csv"
    path.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,1000,1,1,500\n")
    assert read_pods(path) == [pod_shape(500, cpu_milli=1000, memory_bytes=MIB)]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("p1,six,20,1,460,", "line 3, column cpu_milli: 'six' is not a whole number"),
        ("p1,6000,20,1,1001,", "line 3, column gpu_milli: 1001 is not between 1 and 1000"),
        ("p1,6000,20,1,0,", "line 3, column gpu_milli: 0 is not between 1 and 1000"),
        ("p1,6000,-1,1,460,", "line 3, column memory_mib: -1 is not between 0 and"),
        ("p1,6000,20,65,460,", "line 3, column num_gpu: 65 is not between 0 and 64"),
        ("p1,6000,20", "line 3, column cpu_milli: the line does not have 6 fields"),
        ("p1,6000,20,1,460,,,", "line 3, column cpu_milli: the line does not have 6 fields"),
    ],
)
def test_a_bad_value_is_refused_with_line_and_column(tmp_path: Path, line: str, told: str):
    path = pods_file(tmp_path, "p0,8000,10,0,0,", line)
    with pytest.raises(TraceError) as error:
        read_pods(path)
    assert str(error.value).startswith(f"{path}: {told}")


def test_a_node_with_gpus_names_their_model(tmp_path: Path):
    with pytest.raises(TraceError, match="line 2, column model"):
        read_nodes(nodes_file(tmp_path, "a,64000,1024,2,"))


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("pods.csv", b"name,cpu\n", "line 1: there is no column cpu_milli"),
        ("pods.csv", b"", "line 1: there is no column cpu_milli"),
        ("pods.csv", b"name,cpu_milli,memory_mib,num_gpu,gpu_milli\n", "line 2: there is nothing"),
        ("pods.csv", b"\xff\xfe", "can't decode"),
        ("pods.csv.xz", b"not xz", "not supported"),
    ],
)
def test_a_file_that_is_no_trace_is_refused(tmp_path: Path, name: str, content: bytes, told: str):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TraceError) as error:
        read_pods(path)
    assert str(error.value).startswith(f"{path}: ")
    assert told in str(error.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path):
    with pytest.raises(TraceError, match="No such file"):
        read_nodes(tmp_path / "none.csv")


def test_a_compressed_file_that_was_cut_off_is_refused(tmp_path: Path):
    whole = compressed(pods_file(tmp_path, *[f"p{i},{i},1,1,500," for i in range(1000)]))
    whole.write_bytes(whole.read_bytes()[:-200])
    with pytest.raises(TraceError):
        read_pods(whole)
