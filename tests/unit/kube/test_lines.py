from hypothesis import given
from hypothesis import strategies as st

from gpu_scheduler.kube.lines import LineSplitter


@given(
    lines=st.lists(st.binary(min_size=1, max_size=30).map(lambda b: b.replace(b"\n", b"."))),
    tail=st.binary(max_size=10).map(lambda b: b.replace(b"\n", b".")),
    cuts=st.lists(st.integers(0, 400)),
)
def test_lines_come_out_whole_however_the_stream_is_cut(
    lines: list[bytes], tail: bytes, cuts: list[int]
) -> None:
    stream = b"".join(line + b"\n" for line in lines) + tail
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    splitter = LineSplitter()
    got = []
    for start, end in zip(edges, edges[1:], strict=False):
        got += splitter.feed(stream[start:end])
    assert got == lines


def test_empty_lines_are_dropped() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"\n\na\n\n") == [b"a"]
    assert splitter.feed(b"b") == []
    assert splitter.feed(b"\n") == [b"b"]
