"""A slip in a template costs the API server next to nothing, and holds nothing."""

import asyncio
from typing import Any

import pytest
from tests.unit.jobs.test_template_words import SCHEMAS
from tests.unit.runtime.fake_client import BROKEN, NOT_FOUND, FakeClient, Sent
from tests.unit.runtime.job_writing import NO_LIBRARY, place_prospective, reconciler
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.builders import make_gpujob, make_project

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.kube import errors
from gpu_scheduler.runtime.common.queue import WorkQueue
from gpu_scheduler.runtime.jobs.acceptance import Acceptance
from gpu_scheduler.state.cluster_state import ClusterState

KEY = JobKey("team-a/job")
UNREAD = errors.BadRequest(
    400, "BadRequest", 'PodTemplate in version "v1" cannot be handled as a PodTemplate: json: bad'
)
MAIN = {"name": "main", "image": "x"}
SLIP = {"spec": {"containers": [MAIN], "nodeSelector": {"fast": True}}}


class Case:
    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.state = ClusterState()
        self.state.project_changed(make_project())
        self.client: Any = FakeClient(self._reply)
        acceptance = Acceptance(self.client, NO_LIBRARY, placement="bind", clock=clock)
        self.queue: WorkQueue[JobKey] = WorkQueue()
        self.reconciler = reconciler(
            self.state, self.client, acceptance, self.queue, now=lambda: 0.0, clock=clock
        )

    def _reply(self, sent: Sent) -> Any:
        if sent.method == "DRYRUN":
            return self.answer if "nodeSelector" in sent.body["template"]["spec"] else {}
        return {"components": {"schemas": SCHEMAS}} if "openapi" in sent.path else NOT_FOUND

    async def minute(self, **spec: Any) -> int:
        """Requests for a job that comes, in its first minute."""
        self.state.gpujob_changed(make_gpujob(**spec))
        self.queue.add(KEY)
        before = len(self.client.sent)
        async with Running(self.queue.work(self.reconciler.handle)):
            await asyncio.sleep(60)
        return len(self.client.sent) - before


@virtual
@pytest.mark.parametrize(
    "spec",
    [
        {"template": SLIP},
        {"roles": [{"name": "lead", "gpu": 1}, {"name": "work", "gpu": 1, "template": SLIP}]},
        {
            "template": SLIP,
            "completions": 2,
            "sweep": {"algorithm": "random", "parameters": {"lr": {"uniform": [0, 1]}}},
        },
    ],
)
async def test_what_is_refused_is_told_at_once_and_asked_about_no_more(spec: Any) -> None:
    case = Case(UNREAD)
    assert await case.minute(**spec) <= 3
    job = case.state.gpujobs[KEY]
    assert "template.spec.nodeSelector[fast]: is true, a boolean" in job.problem
    assert not place_prospective(case.state) and job.templates is None


@virtual
async def test_a_slip_that_is_mended_is_judged_anew() -> None:
    case = Case(UNREAD)
    await case.minute(template=SLIP)
    case.answer = {}
    await case.minute(template={"spec": {"containers": [MAIN]}}, generation=2)
    job = case.state.gpujobs[KEY]
    assert job.problem == "" and job.templates is not None


@virtual
async def test_while_the_api_server_does_not_answer_nothing_is_planned_and_it_is_asked_again() -> (
    None
):
    case = Case(BROKEN)
    await case.minute(template=SLIP)
    assert case.state.gpujobs[KEY].templates is None and case.state.gpujobs[KEY].problem == ""
    case.answer = {}
    await case.minute(template={"spec": {"containers": [MAIN]}})
    assert case.state.gpujobs[KEY].templates is not None
