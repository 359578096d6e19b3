"""What the CRD cannot see, as a sentence that names the field."""

from typing import Any

import pytest
from tests.unit.runtime.fake_client import AWAY, NOT_FOUND, FakeClient, Sent
from tests.unit.state.builders import make_gpujob

from gpu_scheduler.api.gpujob import Isolation
from gpu_scheduler.core.model.request import ProjectName
from gpu_scheduler.jobs.cap import CapImage
from gpu_scheduler.jobs.share import Installation
from gpu_scheduler.jobs.write_path import WritePath
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import StatusCause, StatusDetails
from gpu_scheduler.runtime.jobs.acceptance import Acceptance, Accepted, Refusal

TEAM = ProjectName("team-a")


class Case:
    def __init__(
        self,
        answer: Any = None,
        placement: str = "auto",
        isolation: str = "framework",
        cap_image: CapImage | None = None,
    ) -> None:
        self.objects: dict[str, Any] = {}
        self.answer = answer  # to the dry run
        self.client = FakeClient(self._reply)
        self.now = 0.0
        self.acceptance = Acceptance(
            self.client,  # type: ignore[arg-type]
            Installation(cap_image, Isolation(isolation), "nvidia"),
            placement=placement,
            clock=lambda: self.now,
        )
        self.acceptance.doubt(TEAM)

    def _reply(self, sent: Sent) -> Any:
        if sent.method == "DRYRUN":
            return (self.answer or {}) if sent.path.endswith("/pods") else {}
        return self.objects.get(sent.path.rsplit("/", 1)[1], NOT_FOUND)

    async def judge(self, **spec: Any) -> Accepted | Refusal:
        """The verdict on a job without roles."""
        found = await self.judge_all(**spec)
        if isinstance(found, Refusal):
            return found
        (accepted,) = found
        return accepted

    async def judge_all(self, **spec: Any) -> tuple[Accepted, ...] | Refusal:
        return await self.acceptance.judge(make_gpujob(**spec), TEAM)


def template(**spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main", "image": "x"}], **spec}}


def invalid(field: str, message: str) -> errors.Unprocessable:
    cause = StatusCause(field=field, message=message)
    return errors.Unprocessable(422, "Invalid", "long text", StatusDetails(causes=(cause,)))


async def test_a_good_job_is_accepted_after_a_dry_run_of_its_pod() -> None:
    case = Case()
    accepted = await case.judge()
    assert isinstance(accepted, Accepted)
    assert accepted.path is WritePath.BIND
    (dry_run,) = case.client.of("DRYRUN", "/pods")
    assert dry_run.path == "/api/v1/namespaces/team-a/pods"
    pod, wanted = dry_run.body, accepted.job["spec"]["template"]
    assert (pod["spec"], pod["metadata"]["annotations"]) == (
        wanted["spec"],
        wanted["metadata"]["annotations"],
    )


async def test_a_field_that_the_server_refuses_is_named_where_the_user_wrote_it() -> None:
    case = Case(invalid("spec.containers[0].image", "Required value"))
    refused = await case.judge(template=template())
    assert refused == Refusal("spec.template.spec.containers[0].image: Required value")
    marked = Case(invalid("metadata.finalizers", "Invalid value"))
    refused = await marked.judge(template=template())
    assert refused == Refusal("spec.template.metadata.finalizers: Invalid value")
    short = await case.judge()
    assert isinstance(short, Refusal)
    assert short.message.startswith("spec (containers[0].image): ")


LIBRARY: dict[str, Any] = {"isolation": "interposer", "cap_image": CapImage("gpu-scheduler:1")}


@pytest.mark.parametrize(
    ("installed", "asked", "delivered"),
    [
        (LIBRARY, {}, True),
        (LIBRARY, {"isolation": "framework"}, False),
        (LIBRARY | {"isolation": "framework"}, {}, False),
        (LIBRARY | {"isolation": "framework"}, {"isolation": "interposer"}, True),
        (LIBRARY | {"cap_image": None}, {}, False),
    ],
)
async def test_the_library_is_delivered_where_job_or_else_installation_say_so(
    installed: dict[str, Any], asked: dict[str, Any], delivered: bool
) -> None:
    accepted = await Case(**installed).judge(**asked)
    assert isinstance(accepted, Accepted)
    assert ("gpu-scheduler-cap" in str(accepted.job)) is delivered


async def test_a_layer_that_is_switched_off_is_not_promised() -> None:
    refused = await Case(isolation="interposer", cap_image=None).judge(isolation="interposer")
    assert isinstance(refused, Refusal)
    assert refused.message.startswith("spec.isolation: interposer is switched off")


async def test_what_the_library_needs_is_free_where_it_is_not_delivered() -> None:
    mount = {"name": "mine", "mountPath": "/etc/ld.so.preload"}
    mine = template()
    mine["spec"]["containers"][0]["volumeMounts"] = [mount]
    case = Case(**LIBRARY)
    refused = await case.judge(template=mine)
    assert isinstance(refused, Refusal)
    assert refused.message.startswith(
        "spec.template.spec.containers[0].volumeMounts[0].mountPath: /etc/ld.so.preload"
    )
    assert isinstance(await case.judge(template=mine, isolation="framework"), Accepted)


async def test_init_containers_are_numbered_as_in_the_template() -> None:
    case = Case(invalid("spec.initContainers[1].image", "Required value"), **LIBRARY)
    mine = template(initContainers=[{"name": "fetch"}])
    refused = await case.judge(template=mine)
    assert refused == Refusal("spec.template.spec.initContainers[0].image: Required value")


@pytest.mark.parametrize("field", ["", "spec"])
async def test_no_brackets_stand_around_nothing(field: str) -> None:
    """As where a ValidatingAdmissionPolicy refuses, whose causes name no field."""
    short = await Case(invalid(field, "needs a label")).judge()
    assert short == Refusal("spec: needs a label")
    whole = await Case(invalid(field, "needs a label")).judge(template=template())
    assert whole == Refusal("spec.template: needs a label")


async def test_a_pod_that_alone_exceeds_a_quota_is_not_told_to_wait_for_others() -> None:
    said = "exceeded quota: few, requested: cpu=4,pods=1, used: cpu=0,pods=2, limited: cpu=2,pods=2"
    refused = await Case(errors.Forbidden(403, "", said)).acceptance.refusal(make_gpujob(), TEAM)
    assert refused is not None and refused.for_now
    assert "of cpu one alone asks for more than the whole quota" in refused.message
    assert "others of the namespace have ended" not in refused.message
    fits = said.replace("limited: cpu=2", "limited: cpu=4500m")
    later = await Case(errors.Forbidden(403, "", fits)).acceptance.refusal(make_gpujob(), TEAM)
    assert later is not None and "others of the namespace have ended" in later.message


async def test_a_refusal_without_a_field_is_passed_on() -> None:
    refused = await Case(errors.BadRequest(400, "", "cannot decode")).judge()
    assert isinstance(refused, Refusal)
    assert "cannot decode" in refused.message


async def test_what_a_policy_forbids_is_passed_on() -> None:
    refused = await Case(errors.Forbidden(403, "", "hostPID is forbidden")).judge()
    assert isinstance(refused, Refusal)
    assert "hostPID is forbidden" in refused.message


async def test_pods_that_lack_a_label_are_told_where_they_get_it() -> None:
    refused = await Case(errors.Forbidden(403, "", "pods need the label team")).judge()
    assert isinstance(refused, Refusal)
    assert refused.message == (
        "spec: no pod of this template may be created: pods need the label team; labels of the "
        "GPUJob and those in template.metadata.labels are on its pods"
    )


@pytest.mark.parametrize("answer", [errors.Forbidden(403, "", "exceeded quota: q"), NOT_FOUND])
async def test_what_time_may_mend_is_no_refusal(answer: errors.ApiError) -> None:
    assert isinstance(await Case(answer).judge(), Accepted)


async def test_a_server_that_cannot_answer_is_an_error_not_a_verdict() -> None:
    with pytest.raises(errors.Unavailable):
        await Case(AWAY).judge()


async def test_a_template_that_cannot_be_rendered_is_refused_before_anything_is_sent() -> None:
    case = Case()
    refused = await case.judge(template=template(nodeName="a"))
    assert isinstance(refused, Refusal)
    assert refused.message.startswith("spec.template.spec.nodeName: ")
    assert case.client.sent == []


@pytest.mark.parametrize("exists", [True, False])
async def test_the_runtime_class_is_set_where_the_cluster_has_it(exists: bool) -> None:
    case = Case()
    if exists:
        case.objects["nvidia"] = {}
    accepted = await case.judge()
    assert isinstance(accepted, Accepted)
    pod = accepted.job["spec"]["template"]["spec"]
    assert pod.get("runtimeClassName") == ("nvidia" if exists else None)


async def test_what_the_cluster_has_is_asked_once_in_a_while() -> None:
    case = Case()
    await case.judge()
    await case.judge()
    asked = len(case.client.of("GET", "/nvidia"))
    case.now += 31
    case.objects["nvidia"] = {}
    accepted = await case.judge()
    assert (asked, len(case.client.of("GET", "/nvidia"))) == (1, 2)
    assert isinstance(accepted, Accepted)
    assert accepted.job["spec"]["template"]["spec"]["runtimeClassName"] == "nvidia"


CLAIM = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}


@pytest.mark.parametrize(
    ("claim", "path"),
    [
        (None, WritePath.GATE),
        ({"spec": {}, "status": {"phase": "Pending"}}, WritePath.GATE),
        ({"spec": {"volumeName": "pv"}, "status": {"phase": "Bound"}}, WritePath.BIND),
    ],
)
async def test_a_claim_decides_the_path(claim: dict[str, Any] | None, path: WritePath) -> None:
    case = Case()
    if claim is not None:
        case.objects["data"] = {"metadata": {"name": "data"}, **claim}
        case.objects["pv"] = {"metadata": {"name": "pv"}, "spec": {}}
    saving = {"volume": {"persistentVolumeClaim": {"claimName": "data"}}}
    for spec in ({"template": template(**CLAIM)}, {"checkpoint": saving}):
        accepted = await case.judge(**spec)
        assert isinstance(accepted, Accepted)
        assert accepted.path is path


@pytest.mark.parametrize("placement", ["bind", "gate"])
async def test_the_path_can_be_fixed(placement: str) -> None:
    accepted = await Case(placement=placement).judge()
    assert isinstance(accepted, Accepted)
    assert accepted.path == placement


# --- roles ---

ROLES = [{"name": "lead", "gpu": 1}, {"name": "work", "replicas": 2, "template": template()}]


async def test_every_role_is_a_job_and_a_pod_of_each_is_tried() -> None:
    case = Case()
    accepted = await case.judge_all(roles=ROLES)
    assert isinstance(accepted, tuple)
    assert [(a.role, a.job["metadata"]["name"]) for a in accepted] == [
        ("lead", "job-lead"),
        ("work", "job-work"),
    ]
    tried = [sent.body["spec"] for sent in case.client.of("DRYRUN", "/pods")]
    assert tried == [a.job["spec"]["template"]["spec"] for a in accepted]


async def test_a_mistake_is_named_in_the_role_that_has_it() -> None:
    roles = [{"name": "lead", "gpu": 1}, {"name": "work", "template": template(nodeName="a")}]
    refused = await Case().judge_all(roles=roles)
    assert isinstance(refused, Refusal)
    assert refused.message.startswith("spec.roles[1].template.spec.nodeName: ")


async def test_a_checkpoint_that_one_role_cannot_have_says_which() -> None:
    volumes = [{"name": "saved", "nfs": {"server": "nas", "path": "/"}}]
    roles = [
        {"name": "lead", "gpu": 1, "template": template(volumes=volumes)},
        {"name": "work", "template": template()},
    ]
    refused = await Case().judge_all(roles=roles, checkpoint={"volume": {"name": "saved"}})
    assert refused == Refusal(
        "spec.checkpoint.volume.name: saved is no volume of spec.roles[1].template; it has: none"
    )


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ({"roles": ROLES[:1]}, "spec.roles[0] (containers[0].image): "),
        ({"roles": ROLES[1:]}, "spec.roles[0].template.spec.containers[0].image: "),
        (
            {"roles": ROLES[:1], "template": template()},
            "spec.template.spec.containers[0].image: ",
        ),
    ],
)
async def test_what_the_server_refuses_is_named_where_it_stands(
    spec: dict[str, Any], where: str
) -> None:
    refused = await Case(invalid("spec.containers[0].image", "Required")).judge_all(**spec)
    assert isinstance(refused, Refusal)
    assert refused.message.startswith(where)


async def test_each_role_has_the_path_that_its_pods_need() -> None:
    roles = [{"name": "lead", "gpu": 1}, {"name": "work", "template": template(**CLAIM)}]
    accepted = await Case().judge_all(roles=roles)
    assert isinstance(accepted, tuple)
    assert [a.path for a in accepted] == [WritePath.BIND, WritePath.GATE]


async def test_a_role_without_gpus_is_accepted() -> None:
    case = Case(**LIBRARY)
    accepted = await case.judge_all(roles=[{"name": "lead", "gpu": 1}, {"name": "ps"}])
    assert isinstance(accepted, tuple)
    lead, server = (a.job["spec"]["template"]["spec"] for a in accepted)
    assert "initContainers" in lead and "initContainers" not in server


@pytest.mark.parametrize("policy", ["PreemptLowerPriority", None])
async def test_a_priority_class_that_preempts_is_refused_on_the_gate_path(
    policy: str | None,
) -> None:
    case = Case(placement="gate")
    case.objects["important"] = {"value": 1000, "preemptionPolicy": policy}
    verdict = await case.judge(template=template(priorityClassName="important"))
    assert isinstance(verdict, Refusal)
    assert verdict.message.startswith("spec.template.spec.priorityClassName: important ")
    assert "preemptionPolicy Never" in verdict.message


async def test_one_that_never_preempts_is_accepted_there() -> None:
    case = Case(placement="gate")
    case.objects["patient"] = {"value": 1000, "preemptionPolicy": "Never"}
    assert isinstance(await case.judge(template=template(priorityClassName="patient")), Accepted)


async def test_on_the_bind_path_nobody_preempts_and_any_class_will_do() -> None:
    case = Case(placement="bind")
    case.objects["important"] = {"value": 1000, "preemptionPolicy": "PreemptLowerPriority"}
    assert isinstance(await case.judge(template=template(priorityClassName="important")), Accepted)


async def test_a_class_that_does_not_exist_is_for_the_dry_run_to_refuse() -> None:
    case = Case(placement="gate")
    assert isinstance(await case.judge(template=template(priorityClassName="none")), Accepted)
