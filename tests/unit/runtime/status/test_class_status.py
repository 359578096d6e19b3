"""What a GPUClass's status says, and when it is written."""

import asyncio
from typing import Any

import pytest
from tests.unit.builders import A30, A100, ClusterBuilder
from tests.unit.runtime.fake_client import CONFLICT, FakeClient
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.builders import make_node

from gpu_scheduler.api.gpuclass import GPUClassStatus
from gpu_scheduler.core.model.catalogue import Catalogue, GPUType
from gpu_scheduler.kube import errors
from gpu_scheduler.runtime.informers.custom_resources import CustomResources
from gpu_scheduler.runtime.status.class_status import ClassStatuses, class_status, stock
from gpu_scheduler.runtime.status.status_writer import StatusWriter
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.owners import Claim
from gpu_scheduler.state.nodes.classes import ClassRecord

RECORD = ClassRecord("v100", "", 3, "u", "v100", None, {"m": 4, "s": 1, "a": 4})


def status_of(record: ClassRecord = RECORD, gpus: int = 8, **more: Any) -> GPUClassStatus:
    known = {"nodes": 2, "taken": (), "before": {}, "now": "2026-01-02T00:00:00Z"} | more
    return class_status(record, gpus=gpus, **known)


def test_gpus_and_nodes_are_counted_by_the_class_that_says_most_of_the_name():
    cluster = ClusterBuilder().node("a", models=[A100, A30]).node("b", 2, A30).obj()
    catalogue = Catalogue((GPUType("any", ""), GPUType("a30", "a30"), GPUType("t4", "t4")))
    assert stock(cluster, catalogue) == {"any": (1, 1), "a30": (3, 2)}


def test_shapes_are_listed_from_the_smallest():
    found = status_of()
    assert (found.gpus, found.nodes, found.shapes) == (8, 2, "s=1, a=4, m=4")
    assert {c.type: c.status for c in found.conditions} == {"Accepted": "True", "Matches": "True"}
    assert found.observed_generation == 3


def test_a_shape_of_another_class_is_refused_with_its_owner():
    condition = status_of(taken=(Claim("m", "older"),)).conditions[0]
    assert (condition.status, condition.reason) == ("False", "Invalid")
    assert condition.message == (
        "spec.shapes: m belongs to GPUClass older already; remove it here or there"
    )


def test_a_class_without_gpus_says_so():
    condition = status_of(gpus=0).conditions[1]
    assert (condition.type, condition.status, condition.reason) == ("Matches", "False", "NoSuchGPU")
    assert "v100" in condition.message


def test_a_spec_that_cannot_be_used_is_named():
    found = status_of(ClassRecord("v100", "", 3, "u", problem="spec.costPerHour: no"))
    assert found.conditions[0].message == "spec.costPerHour: no"


def test_a_condition_that_stays_keeps_its_time():
    before = status_of().to_json()
    assert status_of(before=before, now="2027-01-01T00:00:00Z").to_json() == before


def body() -> dict[str, Any]:
    meta = {"name": "any", "uid": "u", "resourceVersion": "1", "generation": 1}
    return {"metadata": meta, "spec": {"shapes": {"standard_gpu": 1}}}


@pytest.mark.parametrize("refusal", [errors.Unavailable(), CONFLICT])
def test_a_status_is_written_once_and_again_when_nodes_change(refusal: errors.ApiError):
    @virtual
    async def run() -> None:
        state, replies = ClusterState(), [refusal, {}, {}]
        client: Any = FakeClient(lambda sent: replies.pop(0))
        writer = StatusWriter(
            client, (ClassStatuses(state, now=lambda: "now"),), seconds=1, clock=clock
        )
        CustomResources(state, changed=lambda key: None).gpuclass(body())
        async with Running(writer.run()):
            await asyncio.sleep(5)  # refused, written, and then nothing to say
            assert len(client.sent) == 2
            assert client.sent[1].path.endswith("/gpuclasses/any/status")
            assert client.sent[1].body["status"]["gpus"] == 0
            state.nodes.changed(make_node("a"))
            await asyncio.sleep(2)
        assert client.sent[2].body["status"]["gpus"] > 0

    run()
