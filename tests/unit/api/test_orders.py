"""The text between operator and agent."""

import json

import pytest

from gpu_scheduler.api.orders import (
    MOST_BYTES,
    VERSION,
    BadOrdersError,
    GPUNodeAt,
    Neighbour,
    OrderedContainer,
    OrderedPod,
    Orders,
    dumps,
    parse,
)

HELD = OrderedContainer(0, "main", {"GPU-a": 100}, "abc", promised=True)
POD = OrderedPod("u1", "team-a", "train-0", (HELD,), "train", "a", kill=True, work="job-uid")
TOLD = Orders(
    "node-uid",
    VERSION,
    GPUNodeAt("u2", "17"),
    "18",
    (POD,),
    (Neighbour("u3", "kube-system", "dcgm", whole_gpus=True),),
    "d1",
)


def test_what_is_written_is_read() -> None:
    assert parse(dumps(TOLD)) == TOLD


def test_it_says_what_an_agent_needs_and_nothing_else() -> None:
    told = json.loads(dumps(TOLD))
    assert set(told) == {"nodeUid", "v", "gpuNode", "leaseVersion", "usageDigest", "pods", "others"}
    assert set(told["pods"][0]) == {
        *("uid", "namespace", "name", "containers", "job", "work", "project", "kill"),
    }
    assert set(told["pods"][0]["containers"][0]) == {"index", "name", "capsMib", "id", "promised"}


def test_of_too_many_other_pods_the_names_are_left_out() -> None:
    many = tuple(Neighbour(f"{n}", "n" * 63, "p" * 253) for n in range(1000))
    text = dumps(Orders("node-uid", VERSION, pods=(POD,), others=many))
    assert len(text) < MOST_BYTES
    assert parse(text).pods == (POD,)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"v":2,"nodeUid":""}', '{"v":1}', b"\xff"])
def test_anything_else_is_refused(text: str | bytes) -> None:
    with pytest.raises(BadOrdersError):
        parse(text)
