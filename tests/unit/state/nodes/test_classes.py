"""What GPUClasses mean for jobs and for the planner, and what happens when they change."""

from typing import Any

import pytest
from tests.unit.state.builders import gpujob_body

from gpu_scheduler.api.requests import device_requests
from gpu_scheduler.core.model.catalogue import GPUType
from gpu_scheduler.core.model.request import DeviceRequest, JobKey
from gpu_scheduler.runtime.informers.custom_resources import (
    CustomResources,
    gpuclass_record,
    gpujob_record,
)
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord
from gpu_scheduler.state.jobs.owners import Claim
from gpu_scheduler.state.nodes.classes import ClassStore

KEY = JobKey("team-a/job")
V100 = {"match": "V100", "costPerHour": "2.48", "shapes": {"complex_model_m_v100": 4}}


def body(name: str, created: str = "2026-01-01T00:00:00Z", version: int = 1, **spec: Any) -> Any:
    meta = {"name": name, "uid": f"class-{name}", "resourceVersion": str(version)}
    return {"metadata": meta | {"creationTimestamp": created}, "spec": spec}


def store(*bodies: Any) -> ClassStore:
    made = ClassStore()
    for each in bodies:
        made.put(gpuclass_record(each))
    return made


def shaped(shape: str = "complex_model_m_v100", **spec: Any) -> Any:
    made = gpujob_body(**spec)
    made["spec"].pop("gpu", None)
    made["spec"] |= {"shape": shape}
    return made


def requests(record: GPUJobRecord) -> tuple[tuple[DeviceRequest, ...], list[str] | None]:
    assert record.spec is not None
    return device_requests(record.spec), record.spec.gpu_models


def test_a_shape_equals_its_number_of_gpus_of_its_class():
    by_shape = gpujob_record(shaped(), store(body("v100", **V100)))
    by_number = gpujob_record(gpujob_body(gpu=4, gpuModels=["v100"]))
    assert requests(by_shape) == requests(by_number) == ((DeviceRequest(0, 4, 1000),), ["v100"])
    assert by_shape.problem == ""


def test_a_shape_of_a_class_of_every_gpu_names_no_model():
    found = gpujob_record(shaped("standard_gpu"), store(body("any", shapes={"standard_gpu": 1})))
    assert requests(found) == ((DeviceRequest(0, 1, 1000),), None)


def test_an_unknown_shape_is_a_problem_that_lists_what_there_is():
    found = gpujob_record(shaped("huge"), store(body("v100", **V100)))
    assert found.problem == found.unknown
    assert found.problem == (
        "spec.shape: no GPUClass has a shape huge; there are complex_model_m_v100. See kubectl get "
        "gpuclasses, or ask by gpu and gpuModels"
    )
    assert "there is no GPUClass with shapes" in gpujob_record(shaped("huge"), store()).problem


def test_a_model_may_be_the_name_of_a_class():
    classes = store(body("big", match="A100-SXM4-80GB"), body("any"))
    named = gpujob_record(gpujob_body(gpuModels=["BIG", "T4"]), classes)
    assert requests(named)[1] == ["a100-sxm4-80gb", "t4"]
    assert requests(gpujob_record(gpujob_body(gpuModels=["any", "T4"]), classes))[1] is None


def test_the_models_of_roles_may_be_names_of_classes():
    made = gpujob_body()
    del made["spec"]["gpu"]
    made["spec"]["roles"] = [{"name": "a", "gpu": 1, "gpuModels": ["big"]}, {"name": "b"}]
    found = gpujob_record(made, store(body("big", match="A100-SXM4-80GB")))
    assert found.problem == ""
    assert found.spec is not None and found.spec.roles is not None
    assert [role.gpu_models for role in found.spec.roles] == [["a100-sxm4-80gb"], None]


def test_a_shape_belongs_to_the_oldest_class_that_names_it():
    young = body("a", "2026-02-01T00:00:00Z", match="T4", shapes={"standard": 2, "own": 1})
    old = body("b", "2026-01-01T00:00:00Z", match="V100", shapes={"standard": 1})
    classes = store(young, old)
    assert requests(gpujob_record(shaped("standard"), classes))[0] == (DeviceRequest(0, 1, 1000),)
    assert classes.conflicts("a") == (Claim("standard", "b"),)
    assert classes.conflicts("b") == ()
    classes.drop("b")
    assert requests(gpujob_record(shaped("standard"), classes))[0] == (DeviceRequest(0, 2, 1000),)
    assert classes.conflicts("a") == ()


def test_a_class_that_cannot_be_used_stands_for_nothing():
    record = gpuclass_record(body("bad", match="T4", costPerHour="much", shapes={"s": 1}))
    assert record.problem.startswith("spec.costPerHour")
    classes = ClassStore()
    classes.put(record)
    assert classes.catalogue.types == ()
    assert gpujob_record(shaped("s"), classes).unknown


def test_prices_are_exact_millionths_in_the_order_of_age():
    classes = store(
        body("b", "2026-02-01T00:00:00Z", match="T4", counts=[4, 1]),
        body("a", "2026-03-01T00:00:00Z", costPerHour="0.1"),
        body("v100", **V100),
    )
    assert classes.catalogue.types == (
        GPUType("v100", "v100", 2_480_000),
        GPUType("b", "t4", None, (1, 4)),
        GPUType("a", "", 100_000),
    )


class Intake:
    """An intake, and which jobs it wants looked at."""

    def __init__(self) -> None:
        self.state = ClusterState()
        self.changed: list[JobKey] = []
        self.custom_resources = CustomResources(self.state, changed=self.changed.append)

    @property
    def job(self) -> GPUJobRecord:
        return self.state.gpujobs[KEY]


def test_a_job_that_waits_for_a_shape_is_looked_at_when_it_appears_changes_and_goes():
    told = Intake()
    told.custom_resources.gpujob(shaped())
    told.custom_resources.gpujob(gpujob_body("other", uid="other"))
    assert told.job.unknown
    told.changed.clear()
    version = told.state.changes.version
    told.custom_resources.gpuclass(body("v100", **V100))
    assert told.changed == [KEY]
    assert (told.job.problem, told.job.unknown) == ("", "")
    assert device_requests(told.job.spec) == (DeviceRequest(0, 4, 1000),)
    assert told.state.changes.version > version
    told.custom_resources.gpuclass(
        body("v100", version=2, **(V100 | {"shapes": {"complex_model_m_v100": 8}}))
    )
    assert device_requests(told.job.spec) == (DeviceRequest(0, 8, 1000),)
    told.custom_resources.gpuclass_gone("v100", "another uid")
    assert told.job.problem == ""
    told.custom_resources.gpuclass_gone("v100", "class-v100")
    assert told.job.problem == told.job.unknown != ""


def test_news_of_a_class_that_change_nothing_concern_nobody():
    told = Intake()
    told.custom_resources.gpuclass(body("v100", **V100))
    told.custom_resources.gpujob(shaped())
    told.changed.clear()
    version = told.state.changes.version
    told.custom_resources.gpuclass(body("v100", version=2, **V100))  # its status changed
    assert (told.changed, told.state.changes.version) == ([], version)
    told.custom_resources.gpuclass(body("v100", version=3, **(V100 | {"costPerHour": "2"})))
    assert told.changed == []
    assert told.state.snapshot().catalogue.types[0].cost_micro == 2_000_000


def test_another_problem_of_a_job_outlives_the_news_of_its_class():
    told = Intake()
    told.custom_resources.gpuclass(body("v100", **V100))
    told.custom_resources.gpujob(shaped())
    told.job.problem = "spec.template: refused"
    told.custom_resources.gpuclass(
        body("v100", version=2, **(V100 | {"shapes": {"complex_model_m_v100": 8}}))
    )
    assert told.job.problem == "spec.template: refused"


@pytest.mark.parametrize("spec", [{}, {"shapes": {"a": "b"}}, {"counts": "x"}, {"match": ["x"]}])
def test_whatever_is_in_a_class_a_record_comes_out(spec: dict[str, Any]):
    made = gpuclass_record(body("x", **spec))
    assert bool(made.problem) == bool(spec)
