"""The label of the leader comes and goes, and is never given up for a broken write."""

import asyncio
from typing import Any

import pytest
from tests.unit.runtime.fake_client import AWAY, BROKEN, NOT_FOUND, FakeClient
from tests.unit.runtime.virtual_loop import Running, virtual

from gpu_scheduler.runtime.leading.leader_label import follow

GONE = {"metadata": {"labels": {"gpu-scheduler.io/leader": None}}}
THERE = {"metadata": {"labels": {"gpu-scheduler.io/leader": "true"}}}


class Case:
    def __init__(self, *answers: object, pod: str = "operator-0") -> None:
        left = list(answers)
        self.client: Any = FakeClient(lambda sent: left.pop(0) if left else {})
        self.leads = asyncio.Event()
        self.work = follow(self.client, "system", pod, self.leads)

    @property
    def written(self) -> list[Any]:
        return [sent.body for sent in self.client.sent]


@virtual
async def test_a_replica_that_starts_does_not_lead_whatever_its_pod_did_before() -> None:
    case = Case()
    async with Running(case.work):
        await asyncio.sleep(60)
        assert case.written == [GONE]
    assert case.client.sent[0].path == "/api/v1/namespaces/system/pods/operator-0"


@virtual
async def test_a_leader_is_labelled_after_that() -> None:
    case = Case()
    case.leads.set()
    await case.work
    assert case.written == [GONE, THERE]


@pytest.mark.parametrize("trouble", [AWAY, BROKEN])
def test_a_write_that_fails_is_tried_again(trouble: object) -> None:
    @virtual
    async def again() -> None:
        case = Case(trouble, trouble, {}, trouble)
        case.leads.set()
        await case.work
        assert case.written == [GONE, GONE, GONE, THERE, THERE]

    again()


@virtual
async def test_a_pod_that_is_gone_is_not_asked_for_ever() -> None:
    case = Case(NOT_FOUND, NOT_FOUND)
    case.leads.set()
    await case.work
    assert len(case.written) == 2


@virtual
async def test_outside_of_a_pod_there_is_nothing_to_label() -> None:
    case = Case(pod="")
    await case.work
    assert not case.written
