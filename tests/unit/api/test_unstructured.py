"""Objects as JSON gives them: what is not there, or odd, reads as empty."""

import pytest

from gpu_scheduler.api import allocation
from gpu_scheduler.api.names import ALLOCATION
from gpu_scheduler.api.unstructured import labels_of, listed, name_of, part, text
from gpu_scheduler.core.model.decision import DeviceAllocation

ODD = [None, 5, "text", [], ["a"], {"a": None}, {"a": 5}, {"a": []}, {"a": {"b": None}}]


@pytest.mark.parametrize("odd", ODD)
def test_what_is_odd_reads_as_empty(odd: object) -> None:
    body = {"a": odd}
    assert part(body, "a", "a", "b") == part({}, "a") == {}
    assert listed(body, "a", "a", "b") == []
    assert text(body, "a", "a", "b") == ""


def test_what_is_there_is_read() -> None:
    body = {"metadata": {"name": "x", "labels": {"n": 5}}, "a": {"b": ["c"]}}
    assert (name_of(body), labels_of(body), listed(body, "a", "b")) == ("x", {"n": "5"}, ["c"])


@pytest.mark.parametrize("odd", [None, "", 5, "{}", "null", '{"v":2}', [1]])
def test_an_allocation_that_cannot_be_read_is_none(odd: object) -> None:
    assert allocation.of_pod({"metadata": {"annotations": {ALLOCATION: odd}}}) is None
    assert allocation.of_pod({"metadata": {"annotations": odd}}) is None


def test_the_allocation_of_a_pod() -> None:
    devices = (DeviceAllocation(0, "GPU-1", 500, 20224),)
    pod = {"metadata": {"annotations": allocation.annotations("node-0", devices)}}
    assert allocation.of_pod(pod) == allocation.Allocation("node-0", devices)
