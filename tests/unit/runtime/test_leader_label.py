"""The label of the leader comes and goes, and is never given up for a broken write."""

from typing import Any

import pytest
from tests.unit.runtime.fake_client import AWAY, BROKEN, NOT_FOUND, NOT_LEADER, FakeClient
from tests.unit.runtime.virtual_loop import virtual

from gpu_scheduler.runtime.leader_label import keep


@pytest.mark.parametrize(("leads", "label"), [(True, "true"), (False, None)])
def test_it_says_whether_the_pod_leads(leads: bool, label: str | None) -> None:
    @virtual
    async def says() -> None:
        client: Any = FakeClient()
        await keep(client, "system", "operator-0", leads=leads)
        (sent,) = client.sent
        assert sent.path == "/api/v1/namespaces/system/pods/operator-0"
        assert sent.body == {"metadata": {"labels": {"gpu-scheduler.io/leader": label}}}

    says()


@virtual
async def test_a_write_that_fails_is_tried_again() -> None:
    answers = [AWAY, BROKEN, {}]
    client: Any = FakeClient(lambda sent: answers.pop(0))
    await keep(client, "system", "operator-0", leads=True)
    assert not answers


@pytest.mark.parametrize("final", [NOT_FOUND, NOT_LEADER])
def test_a_pod_that_is_gone_and_a_lost_lease_end_it(final: object) -> None:
    @virtual
    async def ends() -> None:
        client: Any = FakeClient(lambda sent: final)
        await keep(client, "system", "operator-0", leads=True)
        assert len(client.sent) == 1

    ends()


@virtual
async def test_outside_of_a_pod_there_is_nothing_to_label() -> None:
    client: Any = FakeClient()
    await keep(client, "system", "", leads=True)
    assert not client.sent
