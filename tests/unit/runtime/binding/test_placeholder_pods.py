"""Holder pods as they are created and removed, and what happens when they cannot be."""

from typing import Any

import pytest
from tests.unit.runtime.fake_client import CONFLICT, NOT_LEADER, FakeClient, Sent
from tests.unit.state.builders import half, make_pod
from tests.unit.state.nodes.test_placeholders import OURS, make_cluster_state, make_holder

from gpu_scheduler.api.names import holder_name
from gpu_scheduler.jobs.placeholder import PlaceholderSettings
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.binding.placeholder_pods import Keeping, PlaceholderPods

FIRST = holder_name("a", "0")
REFUSED = errors.Forbidden(403, "Forbidden", "exceeded quota")


class Stage:
    """Placeholder pods of a cluster with a clock that a test moves."""

    def __init__(self, *pods: Pod, owner: str = "", enabled: bool = True) -> None:
        self.now = 1000.0
        self.answers: dict[str, Any] = {}
        self.client = FakeClient(self._reply)
        self.state = make_cluster_state(*pods)
        self.holders = PlaceholderPods(
            self.state,
            self.client,  # type: ignore[arg-type]
            PlaceholderSettings(OURS, "example/operator:1"),
            Keeping(enabled=enabled, whole_nodes=False, keep_seconds=60, owner=owner),
            clock=lambda: self.now,
        )

    def _reply(self, sent: Sent) -> Any:
        if sent.path.endswith("/deployments/gpu-scheduler"):
            return {"metadata": {"name": "gpu-scheduler", "uid": "deployment-uid"}}
        return self.answers.get(sent.method, {})

    def created(self) -> list[str]:
        return [sent.body["metadata"]["name"] for sent in self.client.of("POST")]

    def deleted(self) -> list[str]:
        return [sent.path.rpartition("/")[2] for sent in self.client.of("DELETE")]


USED = make_pod(node="a", devices=half("0"))


async def test_a_device_in_use_gets_a_holder_on_its_node_once():
    stage = Stage(USED)
    await stage.holders.check()
    (sent,) = stage.client.of("POST", f"/namespaces/{OURS}/pods")
    spec = sent.body["spec"]
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    assert spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert "nodeName" not in spec and "schedulerName" not in spec
    assert stage.holders.states() == {"held": 0, "waiting": 0, "missing": 1}
    stage.state.pod_changed(make_holder(node=""))
    await stage.holders.check()
    assert stage.holders.states() == {"held": 0, "waiting": 1, "missing": 0}
    stage.state.pod_changed(make_holder(version=2))
    await stage.holders.check()
    assert stage.holders.states() == {"held": 1, "waiting": 0, "missing": 0}
    assert stage.created() == [FIRST]


async def test_holders_go_with_the_deployment():
    stage = Stage(USED, owner="gpu-scheduler")
    await stage.holders.check()
    (sent,) = stage.client.of("POST")
    assert sent.body["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "controller": True,
            "name": "gpu-scheduler",
            "uid": "deployment-uid",
        }
    ]


async def test_one_that_is_refused_is_tried_again_later_and_counted():
    stage = Stage(USED)
    stage.answers["POST"] = REFUSED
    await stage.holders.check()
    await stage.holders.check()
    assert (stage.created(), stage.holders.counts["refused"]) == ([FIRST], 1)
    stage.now += 30
    await stage.holders.check()
    stage.now += 59  # the second pause is twice as long
    await stage.holders.check()
    assert len(stage.created()) == 2
    stage.answers["POST"] = {}
    stage.now += 1
    await stage.holders.check()
    assert (len(stage.created()), stage.holders.counts["created"]) == (3, 1)


async def test_one_that_was_evicted_is_replaced_after_a_pause():
    stage = Stage(USED, make_holder(phase="Failed", reason="Evicted"))
    await stage.holders.check()
    assert (stage.deleted(), stage.created()) == ([FIRST], [])
    assert stage.holders.counts["ended"] == 1
    stage.state.pod_gone(next(iter(stage.state.pods.placeholders)))
    await stage.holders.check()
    assert stage.created() == []
    stage.now += 5
    await stage.holders.check()
    assert stage.created() == [FIRST]


async def test_a_name_that_is_still_taken_is_waited_for():
    stage = Stage(USED)
    stage.answers["POST"] = CONFLICT
    await stage.holders.check()
    assert stage.holders.counts["refused"] == 0


async def test_a_holder_of_a_free_device_goes_when_its_time_is_over():
    stage = Stage(USED, make_holder())
    await stage.holders.check()
    stage.state.pod_gone(stage.state.pods.known[next(iter(stage.state.pods.known))].uid)
    await stage.holders.check()
    stage.now += 59
    await stage.holders.check()
    assert stage.deleted() == []
    stage.now += 1
    await stage.holders.check()
    (sent,) = stage.client.of("DELETE")
    assert sent.path.endswith(FIRST) and sent.body["uid"] == f"uid-{FIRST}"


async def test_switched_off_it_only_removes_what_is_left():
    stage = Stage(USED, make_holder(), enabled=False)
    await stage.holders.check()
    assert (stage.deleted(), stage.created()) == ([FIRST], [])


async def test_who_leads_no_more_stops():
    stage = Stage(USED)
    stage.answers["POST"] = NOT_LEADER
    with pytest.raises(errors.NotLeader):
        await stage.holders.check()
