"""A refusal that is lifted is noticed soon, for one or two requests a second in all."""

import asyncio
from math import inf
from typing import Any

import pytest
from tests.unit.runtime.fake_client import FakeClient, Sent
from tests.unit.runtime.informers.test_custom_resources import project_body
from tests.unit.runtime.job_writing import NO_LIBRARY
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.builders import gpujob_body

from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import StatusCause, StatusDetails
from gpu_scheduler.runtime.informers.custom_resources import CustomResources
from gpu_scheduler.runtime.jobs.acceptance import Acceptance
from gpu_scheduler.runtime.jobs.refused.lifting import Lifting
from gpu_scheduler.runtime.jobs.refused.refusals import Refusals
from gpu_scheduler.state.cluster_state import ClusterState

DENIED = errors.Unprocessable(
    422,
    "Invalid",
    "ValidatingAdmissionPolicy 'x' denied request",
    StatusDetails(causes=(StatusCause(message="denied request"),)),  # without a field
)


class Case:
    """GPUJobs that were refused, and what the API server says to a try of each kind."""

    def __init__(self, *names: str, namespaces: tuple[str, ...] = ("team-a",)) -> None:
        self.state = ClusterState()
        self.resources = resources = CustomResources(self.state, changed=lambda key: None)
        resources.project(project_body(namespaces=list(namespaces)))
        self.answers: dict[str, Any] = {"jobs": DENIED, "pods": {}, "podtemplates": {}}
        self.client: Any = FakeClient(self._reply)
        acceptance = Acceptance(self.client, NO_LIBRARY, placement="bind", clock=clock)
        self.again: list[JobKey] = []
        self.refusals = Refusals(clock, lambda key, seconds: None)
        self.told: list[str] = []
        self.lifting = Lifting(
            self.state, acceptance, [self.refusals], [self.told.append], clock=clock
        )
        for namespace in namespaces:
            for name in names:
                uid = f"uid-{namespace}-{name}"
                resources.gpujob(gpujob_body(name, uid=uid, namespace=namespace))
                self.refusals.refused(JobKey(f"{namespace}/{name}"), "as it is")

    def _reply(self, sent: Sent) -> Any:
        if sent.method != "DRYRUN":
            return {}
        answer = self.answers[sent.path.rpartition("/")[2]]
        return answer(sent) if callable(answer) else answer

    def tries(self) -> list[str]:
        tried = (sent.path for sent in self.client.sent if sent.method == "DRYRUN")
        return [path for path in tried if not path.endswith("/podtemplates")]

    def running(self) -> Running:
        return Running(self.lifting.run())


@virtual
async def test_a_policy_that_is_lifted_is_noticed_within_two_seconds() -> None:
    for kind in ("jobs", "pods"):
        case = Case("a")
        case.answers |= {"jobs": {}, "pods": {}} | {kind: DENIED}
        async with case.running():
            await asyncio.sleep(30)
            assert case.told == []
            case.answers[kind] = {}
            await asyncio.sleep(2)
            assert case.told == ["team-a"]


@virtual
async def test_nothing_is_asked_while_nothing_is_refused() -> None:
    case = Case("a")
    case.refusals.forget(JobKey("team-a/a"))
    async with case.running():
        await asyncio.sleep(600)
    assert case.tries() == []


@virtual
async def test_however_many_are_refused_there_is_one_try_a_second_of_all_namespaces() -> None:
    spaces = tuple(f"team-{n}" for n in range(5))
    case = Case(*(f"job-{n}" for n in range(20)), namespaces=spaces)
    async with case.running():
        await asyncio.sleep(60)
    assert len(case.tries()) <= 61
    asked = [path.split("/")[5] for path in case.tries()]
    assert {asked.count(space) for space in spaces} <= {11, 12, 13}


@virtual
async def test_one_that_is_refused_for_ever_is_tried_ever_more_seldom() -> None:
    case = Case("a")
    async with case.running():
        await asyncio.sleep(3600)
        before = len(case.tries())
        await asyncio.sleep(600)
        assert len(case.tries()) - before <= 21, "every half a minute"
    assert before < 400


@virtual
async def test_pods_that_were_refused_are_one_request() -> None:
    case = Case("a")
    case.answers |= {"jobs": {}, "pods": DENIED}
    async with case.running():
        await asyncio.sleep(10)
    assert len([path for path in case.tries() if path.endswith("/jobs")]) == 1


@virtual
async def test_what_is_wrong_by_itself_is_tried_once() -> None:
    case = Case("a")
    causes = (StatusCause(message="is wrong", field="spec.template"),)
    details = StatusDetails(causes=causes)
    case.answers["jobs"] = errors.Unprocessable(422, "Invalid", "is wrong", details)
    async with case.running():
        await asyncio.sleep(600)
        assert len(case.tries()) == 1
        case.refusals.refused(JobKey("team-a/a"), "another spec")
        await asyncio.sleep(600)
        assert len(case.tries()) == 2


@virtual
async def test_a_template_that_cannot_be_read_is_looked_into_by_nobody_and_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    case = Case("a", namespaces=("team-a", "team-b"))
    wrong = JobKey("team-a/wrong")
    template = {"spec": {"volumes": [5], "containers": [{"name": "a", "image": "x"}]}}
    case.resources.gpujob(gpujob_body("wrong", uid="wrong", namespace="team-a", template=template))
    case.refusals.refused(wrong, "as it is")
    word = (
        'PodTemplate in version "v1" cannot be handled as a PodTemplate: json: cannot unmarshal '
        "number into Go struct field PodSpec.template.spec.volumes of type v1.Volume"
    )
    case.answers["podtemplates"] = lambda sent: (
        errors.BadRequest(400, "BadRequest", word) if 5 in volumes_of(sent) else {}
    )
    async with case.running():
        await asyncio.sleep(10)
        assert case.lifting._known[wrong].due == inf, "it is wrong by itself"
        case.answers["jobs"] = {}
        await asyncio.sleep(3)
    assert "unexpected" not in caplog.text
    assert sorted(case.told) == ["team-a", "team-b"]


def volumes_of(sent: Sent) -> list[Any]:
    found: list[Any] = sent.body["template"]["spec"].get("volumes", [])
    return found


@virtual
async def test_no_answer_is_no_yes() -> None:
    case = Case("a")
    case.answers["jobs"] = errors.ServerError(500, "", "etcd is away")
    async with case.running():
        await asyncio.sleep(30)
    assert case.told == [] and len(case.tries()) <= 30


@virtual
async def test_what_is_refused_although_the_api_server_takes_it_is_told_of_once() -> None:
    case = Case("a")
    case.answers["jobs"] = {}
    async with case.running():
        await asyncio.sleep(600)
        assert (case.told, len(case.tries())) == (["team-a"], 4), "a Job and a pod, twice"
        case.refusals.refused(JobKey("team-a/a"), "another spec")
        await asyncio.sleep(600)
        assert len(case.told) == 2


@virtual
async def test_a_policy_that_comes_back_is_noticed_again() -> None:
    case = Case("a")
    async with case.running():
        for times in (1, 2):
            case.answers["jobs"] = {}
            await asyncio.sleep(3)
            assert len(case.told) == times
            case.answers["jobs"] = DENIED
            await asyncio.sleep(40)


@virtual
async def test_who_waits_for_a_claim_is_not_tried() -> None:
    case = Case("a")
    job = case.state.gpujobs[JobKey("team-a/a")]
    job.problem, job.problem_as = "there is no claim", Reason.VOLUME_NOT_MOUNTED
    async with case.running():
        await asyncio.sleep(60)
    assert (case.told, case.tries()) == ([], [])
