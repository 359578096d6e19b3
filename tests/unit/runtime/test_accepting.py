"""Jobs of one template are rendered once, and each waits with pods of its own."""

from typing import Any

from tests.unit.runtime.fake_client import NOT_FOUND, FakeClient, Sent
from tests.unit.runtime.test_custom_resources import project_body
from tests.unit.state.builders import gpujob_body

from gpu_scheduler.core.model.request import JobKey, ProjectName
from gpu_scheduler.runtime.acceptance import Acceptance
from gpu_scheduler.runtime.accepting import Accepting
from gpu_scheduler.runtime.custom_resources import CustomResources
from gpu_scheduler.state.cluster_state import ClusterState

TEAM = ProjectName("team-a")


class Case:
    def __init__(self) -> None:
        self.state, self.now = ClusterState(), 0.0
        self.custom_resources = CustomResources(self.state, changed=lambda key: None)
        self.custom_resources.project(project_body())
        self.client: Any = FakeClient(self._reply)
        self.acceptance = Acceptance(
            self.client, placement="bind", runtime_class="", clock=lambda: self.now
        )
        self.accepting = Accepting(self.state, self.acceptance, clock=lambda: self.now)

    def _reply(self, sent: Sent) -> Any:
        return {} if sent.method == "DRYRUN" else NOT_FOUND

    async def accept(self, name: str, **spec: Any) -> JobKey:
        self.custom_resources.gpujob(gpujob_body(name, uid=f"uid-{name}", **spec))
        key = JobKey(f"team-a/{name}")
        assert await self.accepting.refused(self.state.gpujobs[key], TEAM) == ""
        return key


async def test_a_job_like_another_has_the_pods_that_it_would_have_alone() -> None:
    for spec in (
        {"gpu": 0.5},
        {"roles": [{"name": "lead", "gpu": 1}, {"name": "work", "replicas": 2, "gpu": 1}]},
        {"sweep": {"algorithm": "random", "parameters": {"lr": {"uniform": [0, 1]}}}},
    ):
        beside, alone = Case(), Case()
        await beside.accept("first", completions=None, **spec)
        found = beside.state.gpujobs[await beside.accept("second", **spec)].templates
        asked = len(beside.client.sent)
        assert found == alone.state.gpujobs[await alone.accept("second", **spec)].templates, spec
        assert len(beside.client.sent) == asked


async def test_after_a_while_what_it_depends_on_is_looked_up_again() -> None:
    case = Case()
    await case.accept("first")
    before = len(case.client.sent)
    case.now += 31
    await case.accept("second")
    assert len(case.client.sent) > before


async def test_where_pods_were_refused_one_of_each_job_is_tried() -> None:
    case = Case()
    await case.accept("first")
    assert case.client.of("DRYRUN") == []
    case.acceptance.doubt("team-a")
    await case.accept("second")
    assert len(case.client.of("DRYRUN")) == 1


async def test_one_that_changed_meanwhile_is_not_accepted_as_it_was() -> None:
    case = Case()
    case.custom_resources.gpujob(gpujob_body())
    job = case.state.gpujobs[JobKey("team-a/job")]
    case.custom_resources.gpujob(gpujob_body(generation=2, version=2, gpu=1))
    await case.accepting.refused(job, TEAM)
    assert case.state.gpujobs[job.key].templates is None
