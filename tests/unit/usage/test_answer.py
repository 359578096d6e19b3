"""What an agent may answer, and what is no answer."""

import msgspec
import pytest

from gpu_scheduler.usage.answer import (
    AgentUsage,
    BadAnswerError,
    DeviceNow,
    EndedUse,
    ShareUse,
    Totals,
    dumps,
    parse,
)
from gpu_scheduler.usage.window import Window

SHARE = ShareUse(device="GPU-1", pod_uid="u", container="main", share=0.5, busy=0.7)


def test_an_answer_comes_back_as_it_was() -> None:
    answer = AgentUsage(
        look=7,
        devices=(DeviceNow(uuid="GPU-1", busy=1.0),),
        shares=(SHARE, msgspec.structs.replace(SHARE, windows=(Window(looks=90, swings=2),))),
        ended=(EndedUse(work="w", totals=Totals(seconds=3.5, buckets=tuple(range(10)))),),
    )
    assert parse(dumps(answer)) == answer


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("share", 1.5),
        ("share", -0.1),
        ("busy", float("nan")),
        ("busy", float("inf")),
        ("memory_mib", -1.0),
        ("cap_mib", 1 << 60),
        ("cap_mib", 2.5),
        ("idle_seconds", -1),
        ("device", "x" * 1000),
        ("container", 7),
        ("windows", [{}] * 5),
        ("totals", {"seconds": float("nan")}),
        ("totals", {"buckets": [0] * 9}),
    ],
)
def test_what_cannot_be_is_no_answer(field: str, value: object) -> None:
    share = {**msgspec.to_builtins(SHARE), field: value}
    with pytest.raises(BadAnswerError):
        parse(msgspec.msgpack.encode({"v": 1, "look": 1, "shares": [share]}))


@pytest.mark.parametrize("body", [b"", b"\xc1", b"{}", b"\x91" * 100_000, b"\x81\xa1v\x02"])
def test_what_cannot_be_read_is_no_answer(body: bytes) -> None:
    with pytest.raises(BadAnswerError):
        parse(body)


def test_sums_of_two_are_those_of_both() -> None:
    one = Totals(containers=1, seconds=10, busy_seconds=4, buckets=(6, *[0] * 8, 4), peak_mib=7)
    other = Totals(containers=2, seconds=5, held_gpu_seconds=2.5, buckets=(5, *[0] * 9), peak_mib=3)
    both = one + other
    assert (both.containers, both.seconds, both.peak_mib) == (3, 15, 7)
    assert both.buckets == (11, *[0] * 8, 4)
