"""The API server judges each template once, and its words are about the template."""

import asyncio
from typing import Any

import pytest
from tests.unit.jobs.test_template_words import SCHEMAS
from tests.unit.runtime.fake_client import AWAY, CONFLICT, NOT_FOUND, FakeClient, Sent
from tests.unit.state.builders import make_gpujob

from gpu_scheduler.api.parts import parts
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import StatusCause, StatusDetails
from gpu_scheduler.runtime.jobs import template_judge
from gpu_scheduler.runtime.jobs.template_judge import KEPT_SECONDS, TemplateJudge

CANNOT = 'PodTemplate in version "v1" cannot be handled as a PodTemplate: '


def template(**spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main", "image": "x"}], **spec}}


def unread(words: str) -> errors.BadRequest:
    return errors.BadRequest(400, "BadRequest", f"{CANNOT}{words}")


def invalid(*fields: str) -> errors.Unprocessable:
    causes = tuple(StatusCause(field=each, message="Required value") for each in fields)
    return errors.Unprocessable(422, "Invalid", "long text", StatusDetails(causes=causes))


class Case:
    def __init__(self, answer: Any = None, schema: Any = None) -> None:
        self.answer = {} if answer is None else answer
        self.schema = {"components": {"schemas": SCHEMAS}} if schema is None else schema
        self.client: Any = FakeClient(self._reply)
        self.now = 0.0
        self.judge = TemplateJudge(self.client, "ours", clock=lambda: self.now)

    def _reply(self, sent: Sent) -> Any:
        return self.answer if sent.method == "DRYRUN" else self.schema

    async def said(self, **spec: Any) -> list[str]:
        job = make_gpujob(**spec)
        assert job.spec is not None
        return [
            str(problem)
            for part in parts(job.spec)
            for problem in await self.judge.problems(part.spec)
        ]

    @property
    def asked(self) -> int:
        return len(self.client.of("DRYRUN"))


async def test_jobs_of_one_template_are_one_question() -> None:
    case = Case()
    for name in ("a", "b", "c"):
        assert await case.said(name=name, template=template()) == []
    assert case.asked == 1


async def test_jobs_that_a_loop_submits_are_one_question() -> None:
    case = Case()
    for rate in ("0.1", "0.2"):
        env = [{"name": "RATE", "value": rate}]
        await case.said(args=["--rate", rate], env=env)
        await case.said(template=template(containers=[{"name": "main", "command": [rate]}]))
    assert case.asked == 2


async def test_another_template_is_another_question() -> None:
    case = Case()
    await case.said(template=template(nodeSelector={"a": "b"}))
    await case.said(template=template(nodeSelector={"a": "c"}))
    await case.said(image="x", args=[])
    await case.said(image="y", args=[])
    assert case.asked == 4


async def test_jobs_that_come_together_wait_for_one_answer() -> None:
    case = Case()
    release = asyncio.Event()

    async def slow() -> Any:
        await release.wait()
        return {}

    case.answer = slow()
    told = [asyncio.ensure_future(case.said(template=template())) for _ in range(5)]
    await asyncio.sleep(0)
    release.set()
    assert await asyncio.gather(*told) == [[]] * 5
    assert case.asked == 1


async def test_what_is_asked_is_their_template_where_no_tenant_has_a_say() -> None:
    case = Case()
    mine = template(nodeSelector={"a": "b"}) | {"metadata": {"labels": {"x": "y"}}, "Metadata": {}}
    await case.said(template=mine)
    (sent,) = case.client.sent
    assert sent.path == "/api/v1/namespaces/ours/podtemplates"
    assert (sent.body["kind"], sent.body["template"]) == ("PodTemplate", mine)


async def test_a_wrong_type_is_told_with_its_place() -> None:
    case = Case(unread("json: cannot unmarshal bool into Go struct field"))
    assert await case.said(template=template(nodeSelector={"fast": True})) == [
        "spec.nodeSelector[fast]: is true, a boolean; must be a string: put it in quotes (in YAML "
        "yes, no, on and off are booleans too)"
    ]


async def test_without_a_schema_it_is_told_in_the_servers_words() -> None:
    for schema in (NOT_FOUND, {"components": {"schemas": {"x": 5}}}, {}):
        case = Case(unread('strict decoding error: unknown field "template.spec.x"'), schema)
        assert await case.said(template=template(x=1)) == ["spec.x: unknown field"]
        case.answer = unread("quantities must match the regular expression")
        (told,) = await case.said(template=template(y=1))
        assert told.startswith("spec: cannot be read as a pod: quantities must match")
        case.now += 10
        await case.said(template=template(z=1))
        assert len(case.client.of("GET")) == 1


async def test_what_validation_finds_is_told_by_field() -> None:
    fields = ("template.spec.containers[0].image", "template.labels", "metadata.name")
    assert await Case(invalid(*fields)).said(template=template()) == [
        "spec.containers[0].image: Required value",
        "metadata.labels: Required value",
    ]


@pytest.mark.parametrize(
    "answer",
    [
        errors.Forbidden(403, "Forbidden", "exceeded quota: jobs"),
        errors.Unprocessable(422, "Invalid", "ValidatingAdmissionPolicy 'x' denied request"),
        errors.BadRequest(400, "BadRequest", "admission webhook x does not support dry run"),
        CONFLICT,
        NOT_FOUND,
    ],
)
async def test_what_says_nothing_of_the_template_lets_it_pass(answer: Any) -> None:
    case = Case(answer)
    for _ in range(3):
        assert await case.said(template=template()) == []
    assert case.asked == 1


async def test_that_it_may_not_ask_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    case = Case(errors.Forbidden(403, "Forbidden", "cannot create resource podtemplates"))
    for name in "abc":
        await case.said(template=template(nodeSelector={"a": name}))
    assert [each.levelname for each in caplog.records] == ["WARNING"]
    assert "podtemplates" in caplog.text


async def test_an_api_server_that_does_not_answer_has_not_judged() -> None:
    case = Case(AWAY)
    for _ in range(2):
        with pytest.raises(errors.Unavailable):
            await case.said(template=template())
    assert case.asked == 2
    case.answer = {}
    assert await case.said(template=template()) == []


async def test_whoever_waits_for_an_answer_that_fails_does_not_ask_one_after_the_other() -> None:
    case = Case()

    async def away() -> Any:
        await asyncio.sleep(0)
        raise AWAY

    case.answer = away()
    told = [asyncio.ensure_future(case.said(template=template())) for _ in range(5)]
    found = await asyncio.gather(*told, return_exceptions=True)
    assert all(isinstance(each, errors.Unavailable) for each in found)
    assert case.asked == 1


async def test_a_judgement_is_kept_for_a_while() -> None:
    case = Case(invalid("template.spec.containers[0].image"))
    assert await case.said(template=template())
    case.answer, case.now = {}, KEPT_SECONDS - 1
    assert await case.said(template=template())
    case.now = KEPT_SECONDS
    assert await case.said(template=template()) == []
    assert case.asked == 2


async def test_what_is_refused_after_all_is_judged_anew() -> None:
    case = Case()
    job = make_gpujob(template=template())
    assert job.spec is not None
    await case.judge.problems(job.spec)
    case.judge.forget(job.spec)
    case.answer = invalid("template.spec.containers[0].image")
    assert await case.judge.problems(job.spec)


async def test_a_tenants_templates_fill_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_judge, "_KEPT_BYTES", 50_000)
    case = Case(unread("bad"))
    for index in range(150):
        await case.said(template=template(nodeSelector={"a" * 1000: [index] * 1000}))
    known = case.judge._known
    assert known.bytes <= known.most_bytes == 50_000
    assert 30 < len(known) < 150, "each of them is short"
