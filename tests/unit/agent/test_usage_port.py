"""What the leader is answered at the agent's port, and why it is not."""

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from gpu_scheduler.agent.history.answering import Answering
from gpu_scheduler.agent.usage_port import PATH, route
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.usage.key import UsageKeys

AGENT = PodUID("agent")


async def asked(answering: Answering | None) -> tuple[int, str]:
    keys, application = UsageKeys(), web.Application()
    application.add_routes([route(lambda: keys.digest(AGENT), lambda: answering)])
    async with TestClient(TestServer(application)) as client:
        answer = await client.get(PATH, headers={"Authorization": keys.header(AGENT)})
        return answer.status, await answer.text()


async def test_where_no_history_is_kept_that_is_said() -> None:
    assert await asked(None) == (503, "no history is kept here\n")


async def test_before_the_first_look_and_on_a_full_disk_it_is_said_why() -> None:
    answering = Answering()
    assert await asked(answering) == (503, "no look at the GPUs yet\n")
    answering.fails("no history is kept: /history: No space left on device")
    assert await asked(answering) == (
        503,
        "no history is kept: /history: No space left on device\n",
    )
