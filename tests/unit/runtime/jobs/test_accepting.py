"""Jobs of one template are rendered once, and each waits with pods of its own."""

from typing import Any

from tests.unit.runtime.fake_client import NOT_FOUND, FakeClient, Sent
from tests.unit.runtime.informers.test_custom_resources import project_body
from tests.unit.runtime.job_writing import NO_LIBRARY
from tests.unit.state.builders import gpujob_body, make_job

from gpu_scheduler.api.names import GATE
from gpu_scheduler.core.model.request import JobKey, ProjectName
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import (
    DeviceClass,
    DeviceClassSpec,
    Meta,
    StatusCause,
    StatusDetails,
)
from gpu_scheduler.runtime.informers.custom_resources import CustomResources
from gpu_scheduler.runtime.jobs.acceptance import Acceptance
from gpu_scheduler.runtime.jobs.accepting import Accepting
from gpu_scheduler.runtime.jobs.creation import NotCreatableError
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord

TEAM = ProjectName("team-a")
ALIKE = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "kubernetes.io/hostname"}
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [ALIKE]}}


class Case:
    def __init__(self, placement: str = "bind") -> None:
        self.state, self.now = ClusterState(), 0.0
        self.custom_resources = CustomResources(self.state, changed=lambda key: None)
        self.custom_resources.project(project_body())
        self.dry_run: Any = {}
        self.client: Any = FakeClient(self._reply)
        self.acceptance = Acceptance(
            self.client,
            NO_LIBRARY,
            placement=placement,
            clock=lambda: self.now,
            class_of=self.state.device_classes.class_of,
        )
        self.accepting = Accepting(self.state, self.acceptance, clock=lambda: self.now)

    def _reply(self, sent: Sent) -> Any:
        return self.dry_run if sent.method == "DRYRUN" else NOT_FOUND

    async def accept(
        self, name: str, namespace: str = "team-a", project: ProjectName = TEAM, **spec: Any
    ) -> JobKey:
        body = gpujob_body(name, uid=f"uid-{name}", namespace=namespace, **spec)
        self.custom_resources.gpujob(body)
        key = JobKey(f"{namespace}/{name}")
        assert await self.accepting.refused(self.state.gpujobs[key], project) == ""
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


async def test_each_has_its_own_labels_on_pods_that_are_planned() -> None:
    case = Case()
    for name, labels in (("first", {"team": "a"}), ("second", {"run": "7"}), ("third", {})):
        body = gpujob_body(name, uid=f"uid-{name}", gpu=0.5)
        body["metadata"]["labels"] = labels
        case.custom_resources.gpujob(body)
        job = case.state.gpujobs[JobKey(f"team-a/{name}")]
        assert await case.accepting.refused(job, TEAM) == ""
        pod = (case.state.gpujobs[job.key].templates or {})[""]
        theirs = {k: v for k, v in pod.metadata.labels.items() if k in ("team", "run")}
        assert theirs == labels


async def test_labels_that_come_later_are_on_the_next_pods() -> None:
    case = Case()
    key = await case.accept("one", gpu=0.5)
    body = gpujob_body("one", uid="uid-one", gpu=0.5)
    body["metadata"] |= {"labels": {"team": "a"}, "resourceVersion": "2"}
    case.custom_resources.gpujob(body)
    assert case.state.gpujobs[key].templates is None
    assert await case.accepting.refused(case.state.gpujobs[key], TEAM) == ""
    pod = (case.state.gpujobs[key].templates or {})[""]
    assert pod.metadata.labels["team"] == "a"


async def test_jobs_of_one_template_are_rendered_once_in_however_many_namespaces() -> None:
    beside, rendered = Case(), []
    judge = beside.acceptance.judge

    async def noted(job: GPUJobRecord, *more: Any) -> Any:
        rendered.append(job.key)
        return await judge(job, *more)

    beside.acceptance.judge = noted  # type: ignore[method-assign]
    spec: dict[str, Any] = {"gpu": 0.5, "template": template(affinity=APART)}
    for number in range(1000):
        space, project = f"ns-{number % 500}", ProjectName(f"p-{number % 200}")
        await beside.accept(f"job-{number}", space, project, **spec)
    assert rendered == ["ns-0/job-0"]
    alone = Case()
    key = await alone.accept("job-999", "ns-499", ProjectName("p-199"), **spec)
    pods = beside.state.gpujobs[key].templates
    assert pods is not None and pods == alone.state.gpujobs[key].templates
    assert pods[""].metadata.namespace == "ns-499"


async def test_what_is_looked_up_in_a_namespace_is_looked_up_in_each() -> None:
    """A claim of this name may be anything elsewhere."""
    case = Case(placement="auto")
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    for space in ("ns-0", "ns-1", "ns-1", "ns-0"):
        name = f"job-{len(case.state.gpujobs)}"
        await case.accept(name, space, template=template(volumes=[volume]))
    asked = [sent.path for sent in case.client.of("GET", "persistentvolumeclaims/data")]
    assert asked == [
        f"/api/v1/namespaces/{space}/persistentvolumeclaims/data" for space in ("ns-0", "ns-1")
    ]


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
    assert case.client.of("DRYRUN", "/pods") == []
    case.acceptance.doubt("team-a")
    await case.accept("second")
    assert len(case.client.of("DRYRUN", "/pods")) == 1


async def test_one_that_changed_meanwhile_is_not_accepted_as_it_was() -> None:
    case = Case()
    case.custom_resources.gpujob(gpujob_body())
    job = case.state.gpujobs[JobKey("team-a/job")]
    case.custom_resources.gpujob(gpujob_body(generation=2, version=2, gpu=1))
    await case.accepting.refused(job, TEAM)
    assert case.state.gpujobs[job.key].templates is None


def template(**spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main", "image": "x"}], **spec}}


async def refused(case: Case, name: str, **spec: Any) -> str:
    case.custom_resources.gpujob(gpujob_body(name, uid=f"uid-{name}", **spec))
    job = case.state.gpujobs[JobKey(f"team-a/{name}")]
    words = await case.accepting.refused(job, TEAM)
    assert (job.templates is None) == bool(words)
    return words


async def test_what_cannot_be_read_as_a_pod_is_never_planned() -> None:
    """Also where the API server has said nothing about it."""
    case, bad = Case(), template(nodeSelector={"fast": True})
    assert (await refused(case, "job", template=bad)).startswith(
        "spec.template.spec.nodeSelector[...]: cannot be read"
    )
    roles = [{"name": "lead", "gpu": 1, "image": "x"}, {"name": "work", "template": bad}]
    assert (await refused(case, "roles", roles=roles)).startswith(
        "spec.roles[1].template.spec.nodeSelector[...]: cannot be read"
    )


async def test_a_thousand_jobs_of_one_template_are_one_question() -> None:
    case = Case()
    for index in range(1000):
        case.now += 1
        args = [f"--seed={index}"]
        await case.accept(f"job-{index}", image="x", args=args)
    assert len(case.client.of("DRYRUN")) == 2  # its answer was kept for ten minutes


async def test_where_the_jobs_exist_their_templates_have_been_taken() -> None:
    case = Case()
    case.custom_resources.gpujob(gpujob_body("job", uid="gpujob-uid"))
    case.state.job_changed(make_job())
    job = case.state.gpujobs[JobKey("team-a/job")]
    assert await case.accepting.refused(job, TEAM) == ""
    assert job.templates is not None and case.client.of("DRYRUN") == []


async def test_what_is_refused_when_its_job_is_made_is_judged_anew() -> None:
    case = Case()
    key = await case.accept("job", template=template())
    job = case.state.gpujobs[key]
    cause = StatusCause(field="template.spec.containers[0].image", message="Required value")
    details = StatusDetails(causes=(cause,))
    case.dry_run = errors.Unprocessable(422, "Invalid", "long text", details)
    assert await case.accepting.explained(job, TEAM, NotCreatableError("it said no")) == (
        "spec.template.spec.containers[0].image: Required value"
    )


async def test_a_resource_that_a_device_class_comes_to_serve_changes_the_way_of_jobs() -> None:
    case = Case("auto")
    resources = {"limits": {"example.com/nic": "1"}}
    container = {"name": "main", "image": "x", "resources": resources}
    asking = {"gpu": 0.5, "template": {"spec": {"containers": [container]}}}

    async def gates() -> list[str]:
        key = await case.accept("nic", **asking)
        (pod,) = (case.state.gpujobs[key].templates or {}).values()
        return [gate.name for gate in pod.spec.scheduling_gates]

    assert await gates() == []
    (key,) = case.state.device_class_changed(
        DeviceClass(Meta(name="nic"), DeviceClassSpec("example.com/nic"))
    )
    assert case.state.gpujobs[key].templates is None
    assert await gates() == [GATE], "at once, though it was rendered a moment ago"
    case.state.device_class_gone("nic")
    assert await gates() == []


async def test_what_does_not_count_of_its_template_is_found_with_its_pods() -> None:
    case = Case()
    key = await case.accept("job", template=template(schedulerName="default-scheduler"))
    said = case.state.gpujobs[key].unhonoured
    assert said.startswith("spec.template.spec.schedulerName: default-scheduler does not count")
    other = await case.accept("other", template=template(schedulerName="default-scheduler"))
    assert case.state.gpujobs[other].unhonoured is said, "jobs of one template share it"
