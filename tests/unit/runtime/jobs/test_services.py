"""Services of gangs: made again when somebody deletes them, told of when somebody changes them."""

import asyncio
from typing import Any

from tests.unit.runtime.fake_client import CONFLICT, NOT_FOUND, UNPROCESSABLE, FakeClient, Sent
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.builders import make_gpujob, make_job, make_project

from gpu_scheduler.jobs.service import service
from gpu_scheduler.runtime.jobs.services import Services
from gpu_scheduler.state.cluster_state import ClusterState

GANG = {"gang": True, "parallelism": 2}


class Case:
    """A gang of two that runs, and the Service that there is."""

    def __init__(self, **spec: Any) -> None:
        self.state = ClusterState()
        self.state.project_changed(make_project())
        self.state.gpujob_changed(make_gpujob(**(spec or GANG)))
        self.state.job_changed(make_job(completions=2, parallelism=2))
        self.there: Any = service("job", "team-a", "gpujob-uid", "team-a")
        self.events: list[str] = []
        self.client = FakeClient(self._reply)
        self.services = Services(self.state, self.client, self, clock=clock)  # type: ignore[arg-type]

    def say(self, subject: Any, kind: str, reason: str, message: str) -> None:
        self.events.append(f"{kind} {reason} {subject.name}: {message}")

    def _reply(self, sent: Sent) -> Any:
        if sent.method == "GET":
            return self.there or NOT_FOUND
        if isinstance(self.there, dict):
            return CONFLICT
        self.there = sent.body
        return self.there

    async def look(self, seconds: float = 3) -> list[str]:
        async with Running(self.services.run()):
            await asyncio.sleep(seconds)
        return [f"{sent.method} {sent.path.rpartition('/')[2]}" for sent in self.client.sent]


@virtual
async def test_one_that_is_there_costs_a_look() -> None:
    case = Case()
    assert set(await case.look()) == {"GET job"} and case.events == []


@virtual
async def test_one_that_was_deleted_is_made_again() -> None:
    case = Case()
    case.there = None
    assert (await case.look())[:2] == ["GET job", "POST services"]
    assert case.there == service("job", "team-a", "gpujob-uid", "team-a")


@virtual
async def test_one_that_was_changed_or_is_somebody_elses_is_told_of() -> None:
    for change, words in (
        ({"spec": {"selector": {"app": "x"}}}, "selects {'app': 'x'} instead of"),
        ({"metadata": {"ownerReferences": []}}, "is not this GPUJob's"),
    ):
        case = Case()
        case.there = case.there | change
        assert set(await case.look()) == {"GET job"}
        assert case.events[0].startswith("Warning ServiceChanged job: Service job " + words)


@virtual
async def test_jobs_without_one_and_those_that_have_ended_cost_nothing() -> None:
    alone, ended, going = Case(parallelism=2), Case(), Case()
    ended.state.job_changed(make_job(completions=2, parallelism=2, version=2, ended="Complete"))
    going.state.namespaces.terminating.add("team-a")
    for case in (alone, ended, going):
        assert await case.look() == []


@virtual
async def test_of_many_each_has_its_turn() -> None:
    case = Case()
    for number in range(4):
        name = f"gang-{number}"
        case.state.gpujob_changed(make_gpujob(name, uid=f"uid-{number}", **GANG))
        case.state.job_changed(
            make_job(name, uid=name, owner_uid=f"uid-{number}", completions=2, parallelism=2)
        )
    assert len(set(await case.look(5.5))) == 5


@virtual
async def test_what_the_api_server_refuses_stops_nobody() -> None:
    case = Case()
    case.client.reply = lambda sent: UNPROCESSABLE
    assert len(await case.look(100)) == 3, "at once, after half a minute, and one more"
