"""What each agent is told, when, and that the others do not suffer from one."""

import asyncio
import json
from typing import Any

import msgspec
from tests.unit.runtime.fake_client import CONFLICT, NOT_FOUND, FakeClient, Sent
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.builders import half, make_job, make_node, make_pod
from tests.unit.state.pods.test_shares import asking

from gpu_scheduler.api.orders import GPUNodeAt, Orders, parse
from gpu_scheduler.core.model.request import PodUID, Project, ProjectName
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.kube.unexpected import counts
from gpu_scheduler.runtime.binding.node_orders import NodeOrders, NodeVersions
from gpu_scheduler.runtime.informers.changed_nodes import ChangedNodes
from gpu_scheduler.runtime.informers.custom_resources import CustomResources
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.projects import ProjectRecord

AGENTS = "gpu-system"


def agent(
    node: str = "a", *, namespace: str = AGENTS, container: str = "c1", version: int = 1
) -> Pod:
    made = make_pod(
        f"agent-{node}",
        namespace=namespace,
        job=None,
        path="other",
        node=node,
        phase="Running",
        version=version,
        containerStatuses=[{"name": "agent", "containerID": f"containerd://{container}"}],
    )
    labels = {"gpu-scheduler.io/component": "agent"}
    return msgspec.structs.replace(
        made, metadata=msgspec.structs.replace(made.metadata, labels=labels)
    )


def owned_by(kind: str, pod: Pod) -> Pod:
    owner = msgspec.convert([{"kind": kind, "controller": True}], tuple[Any, ...])
    body = msgspec.to_builtins(pod)
    body["metadata"]["ownerReferences"] = list(owner)
    return msgspec.convert(json.loads(msgspec.json.encode(body)), Pod, strict=False)


class Stage:
    def __init__(self) -> None:
        self.state = ClusterState(AGENTS)
        self.client = FakeClient()
        self.gpu_nodes: dict[str, tuple[str, str]] = {}
        self.leases: dict[str, tuple[str, bool]] = {}
        self.changed = ChangedNodes()
        self.orders = NodeOrders(
            self.state,
            self.client,  # type: ignore[arg-type]
            AGENTS,
            self.changed,
            lambda node: NodeVersions(
                self.gpu_nodes.get(node), *self.leases.get(node, ("", False))
            ),
            clock=clock,
        )
        for node in ("a", "b"):
            self.state.nodes.changed(make_node(node, uid=f"uid-{node}"))

    def see(self, *pods: Pod) -> None:
        for pod in pods:
            record = self.state.pod_changed(pod)
            assert record is not None
            self.orders.observe(pod, record)

    def gone(self, uid: str) -> None:
        self.state.pod_gone(PodUID(uid))
        self.orders.gone(PodUID(uid))

    def project(self, policy: str) -> None:
        name = ProjectName("project-a")
        project = Project(name, 1000, 1000)
        self.state.project_changed(
            ProjectRecord(project, ("team-a",), "", 1, "u", over_cap_policy=policy)
        )
        self.changed.add("")

    def told(self, node: str = "a") -> list[Orders]:
        sent = self.client.of("PATCH", f"/pods/agent-{node}")
        return [
            parse(each.body["metadata"]["annotations"]["gpu-scheduler.io/orders"]) for each in sent
        ]


def ours(name: str = "job-0", node: str = "a", **more: Any) -> Pod:
    return make_pod(name, node=node, devices=half(), **more)


@virtual
async def test_an_agent_is_told_of_the_pods_of_its_own_node_alone() -> None:
    stage = Stage()
    stage.project("kill")
    stage.gpu_nodes["a"] = ("u7", "9")
    stage.leases["a"] = ("11", False)
    async with Running(stage.orders.run()):
        stage.see(agent("a"), agent("b"), ours(), ours("job-1", "b"))
        await asyncio.sleep(4)
    (told,) = stage.told("a")
    assert (told.node_uid, told.gpu_node, told.lease_version) == (
        "uid-a",
        GPUNodeAt("u7", "9"),
        "11",
    )
    (pod,) = told.pods
    assert (pod.name, pod.namespace, pod.project, pod.kill) == (
        *("job-0", "team-a", "project-a"),
        True,
    )
    assert [c.caps_mib for c in pod.containers] == [{"0": 20480}]
    assert [p.name for p in stage.told("b")[0].pods] == ["job-1"]


@virtual
async def test_a_pod_that_asks_by_itself_goes_by_who_made_it() -> None:
    stage = Stage()
    async with Running(stage.orders.run()):
        stage.see(agent("a"), asking(node="a", devices=half(), phase="Running"))
        await asyncio.sleep(4)
    (told,) = stage.told("a")
    assert [(pod.name, pod.job) for pod in told.pods] == [("web-1", "replicaset web")]


@virtual
async def test_a_pods_use_is_summed_up_by_its_gpujob_and_of_one_with_roles_by_role_too() -> None:
    roles = [{"name": name, "replicas": 1, "gpu": 0.5} for name in ("actor", "learner")]
    for job, asked, work in (
        ("job", {"gpu": 0.5}, "gpujob-uid"),
        ("job-actor", {"roles": roles}, "gpujob-uid#actor"),
    ):
        stage = Stage()
        meta = {"name": "job", "namespace": "team-a", "uid": "gpujob-uid", "resourceVersion": "1"}
        resources = CustomResources(stage.state, changed=lambda key: None)
        resources.gpujob({"metadata": meta, "spec": {"image": "i", **asked}})
        stage.state.job_changed(make_job(job, owner="job"))
        async with Running(stage.orders.run()):
            stage.see(agent(), ours())
            await asyncio.sleep(4)
        assert [pod.work for pod in stage.told()[0].pods] == [work]


@virtual
async def test_neither_reports_tokens_nor_environment_are_told() -> None:
    stage = Stage()
    async with Running(stage.orders.run()):
        token = {"gpu-scheduler.io/report-url": "http://x/team-a/job?token=secret"}
        container = {"name": "main", "env": [{"name": "PASSWORD", "value": "secret"}]}
        stage.see(agent(), ours(annotations_=token, containers=[container]))
        await asyncio.sleep(4)
    assert "secret" not in str(stage.client.sent)


@virtual
async def test_a_node_without_an_agent_costs_no_write() -> None:
    stage = Stage()
    async with Running(stage.orders.run()):
        stage.see(agent("b"), *(ours(f"job-{n}") for n in range(5)), agent("a", namespace="team-a"))
        await asyncio.sleep(5)
    assert {sent.path.rsplit("/", 1)[1] for sent in stage.client.sent} == {"agent-b"}


@virtual
async def test_many_changes_are_one_write_and_no_change_is_none() -> None:
    stage = Stage()
    stage.leases["a"] = ("1", False)
    async with Running(stage.orders.run()):
        stage.see(agent())
        await asyncio.sleep(4)
        stage.see(*(ours(f"job-{n}") for n in range(50)))
        await asyncio.sleep(4)
        for version in range(2, 9):
            stage.see(*(ours(f"job-{n}", version=version) for n in range(50)))
            stage.leases["a"] = (str(version), False)
            stage.changed.add("a")
            await asyncio.sleep(1)
    assert [len(each.pods) for each in stage.told()] == [0, 50]
    assert stage.orders.writes == 2


@virtual
async def test_a_pod_that_ended_or_went_is_told() -> None:
    stage = Stage()
    async with Running(stage.orders.run()):
        stage.see(agent(), ours("x"), ours("y"), ours("z"))
        await asyncio.sleep(4)
        stage.see(ours("x", phase="Succeeded", version=2))
        stage.gone("uid-y")
        await asyncio.sleep(4)
    assert [[p.name for p in each.pods] for each in stage.told()] == [["x", "y", "z"], ["z"]]


@virtual
async def test_other_pods_are_named_and_daemons_at_once() -> None:
    stage = Stage()
    stage.project("")
    async with Running(stage.orders.run()):
        stage.see(agent())
        await asyncio.sleep(4)
        stage.see(make_pod("plain", namespace="team-a", job=None, path="other", node="a"))
        await asyncio.sleep(4)
        assert len(stage.told()) == 1, "of a pod that is no daemon with the next news"
        daemon = make_pod("dcgm", namespace="kube-system", job=None, path="other", node="a")
        stage.see(owned_by("DaemonSet", daemon))
        await asyncio.sleep(4)
    others = {other.name: other.tenant for other in stage.told()[-1].others}
    assert others == {"agent-a": False, "plain": True, "dcgm": False}


@virtual
async def test_a_gpunode_that_is_another_or_gone_is_told_at_once() -> None:
    stage = Stage()
    stage.gpu_nodes["a"] = ("u", "1")
    async with Running(stage.orders.run()):
        stage.see(agent())
        await asyncio.sleep(4)
        for found in (("u", "2"), None, ("v", "3")):
            stage.gpu_nodes |= {"a": found} if found else {}
            if found is None:
                del stage.gpu_nodes["a"]
            stage.changed.add("a")
            await asyncio.sleep(4)
    seen = [each.gpu_node.version if each.gpu_node else None for each in stage.told()]
    assert seen == ["1", "2", None, "3"]


@virtual
async def test_a_leases_version_is_news_only_when_it_is_overdue_or_the_agent_began_anew() -> None:
    stage = Stage()
    async with Running(stage.orders.run()):
        for version, overdue, container in (
            *(("1", False, "c1"), ("2", False, "c1"), ("3", True, "c1")),
            *(("4", False, "c1"), ("5", False, "c2")),
        ):
            stage.leases["a"] = (version, overdue)
            stage.see(agent(container=container, version=int(version)))
            stage.changed.add("a")
            await asyncio.sleep(4)
    assert [each.lease_version for each in stage.told()] == ["1", "3", "4", "5"]


@virtual
async def test_a_projects_policy_is_told_to_all() -> None:
    stage = Stage()
    async with Running(stage.orders.run()):
        stage.see(agent(), ours())
        await asyncio.sleep(4)
        stage.project("kill")
        await asyncio.sleep(4)
    assert [each.pods[0].kill for each in stage.told()] == [False, True]


@virtual
async def test_what_fails_for_one_node_is_tried_again_and_holds_no_other_up() -> None:
    stage = Stage()
    failures: list[object] = [CONFLICT, RuntimeError("nobody foresaw it"), NOT_FOUND]
    before = counts["node-orders"]

    def reply(sent: Sent) -> object:
        return failures.pop(0) if sent.path.endswith("agent-a") and failures else {}

    stage.client.reply = reply
    async with Running(stage.orders.run()):
        for node in ("a", "b"):
            stage.see(agent(node))
        await asyncio.sleep(10)
        assert len(stage.told("b")) == 1
        stage.see(ours())
        await asyncio.sleep(10)
        stage.see(ours("job-1"))
        await asyncio.sleep(10)
    assert not failures
    assert counts["node-orders"] == before + 1
    assert [p.name for p in stage.told("a")[-1].pods] == ["job-0", "job-1"]


@virtual
async def test_the_pod_of_an_agent_that_is_gone_is_told_nothing_more() -> None:
    stage = Stage()
    async with Running(stage.orders.run()):
        stage.see(agent())
        await asyncio.sleep(4)
        stage.gone("uid-agent-a")
        stage.see(ours())
        await asyncio.sleep(4)
    assert len(stage.told()) == 1


@virtual
async def test_ephemeral_containers_of_pods_with_gpus_are_named() -> None:
    """They can read what their pod was given, and nothing holds them to a cap."""
    stage = Stage()
    odd = [{"name": "later"}, {"name": 7}, "x"]
    status = [{"name": "debugger", "containerID": "containerd://abc"}, *odd]
    async with Running(stage.orders.run()):
        stage.see(agent("a"), ours())
        await asyncio.sleep(4)
        stage.see(ours(version=2, ephemeralContainerStatuses=status))
        await asyncio.sleep(4)
    assert [each.pods[0].ephemeral for each in stage.told("a")] == [{}, {"abc": "debugger"}]
