"""GPUClasses on a real control plane: three servers with two A100s each, one with an A30."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.caller import Answer, Caller
from tests.api.conftest import CLUSTERS, administrator
from tests.api.fake_nodes import other_nodes
from tests.api.replica import operating
from tests.api.tenant import GROUP, Json, Tenant, template, until
from tests.unit.api.cases import Spec, Wrong
from tests.unit.api.class_cases import (
    RIGHT_CLASSES,
    RIGHT_SHAPES,
    WRONG_CLASSES,
    WRONG_CLASSES_FOR_SCHEMA,
    WRONG_SHAPES,
)

from cluster import Running

CLASSES = f"{GROUP}/gpuclasses"
DRY = "?dryRun=All&fieldValidation=Strict"


@pytest.fixture(scope="module")
def mixed(control_plane: Running) -> Iterator[Running]:
    """The cluster with two models, and an operator."""
    nodes = CLUSTERS / "dell-selfhosted.yaml"
    with other_nodes(control_plane, nodes), operating(control_plane):
        yield control_plane


@pytest.fixture
def admin(mixed: Running) -> Caller:
    return administrator(mixed)


@pytest.fixture
def tenant(admin: Caller) -> Iterator[Tenant]:
    made = Tenant(admin).create(quota=7)
    yield made
    made.delete()
    for each in admin.get(CLASSES).body["items"]:
        remove(admin, each["metadata"]["name"])


def gpuclass(name: str, spec: Json) -> Json:
    return {
        "apiVersion": "gpu-scheduler.io/v1alpha1",
        "kind": "GPUClass",
        "metadata": {"name": name},
        "spec": spec,
    }


def create(admin: Caller, name: str, **spec: Any) -> None:
    answer = admin.create(CLASSES, gpuclass(name, spec))
    assert answer.ok, answer


def remove(admin: Caller, name: str) -> None:
    assert admin.send("DELETE", f"{CLASSES}/{name}").ok


def condition(admin: Caller, name: str, kind: str) -> Json:
    status = admin.get(f"{CLASSES}/{name}").body.get("status", {})
    return next((c for c in status.get("conditions", ()) if c["type"] == kind), {})


def refused(answer: Answer, wrong: Wrong) -> None:
    assert not answer.ok, "was not refused"
    assert wrong.field in answer.message, answer.message
    assert wrong.says in answer.message, answer.message


@pytest.mark.parametrize("spec", RIGHT_CLASSES.values(), ids=RIGHT_CLASSES)
def test_a_right_class_is_accepted(admin: Caller, spec: Spec) -> None:
    answer = admin.create(f"{CLASSES}{DRY}", gpuclass("c", spec))
    assert answer.ok, answer.message


WRONG = WRONG_CLASSES | WRONG_CLASSES_FOR_SCHEMA


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_class_is_refused_with_a_message_that_names_the_field(
    admin: Caller, wrong: Wrong
) -> None:
    refused(admin.create(f"{CLASSES}{DRY}", gpuclass("c", wrong.spec)), wrong)


def dry_job(admin: Caller, spec: Spec) -> Answer:
    body = {"apiVersion": "gpu-scheduler.io/v1alpha1", "kind": "GPUJob", "metadata": {"name": "j"}}
    return admin.create(f"{GROUP}/namespaces/default/gpujobs{DRY}", body | {"spec": spec})


@pytest.mark.parametrize("spec", RIGHT_SHAPES.values(), ids=RIGHT_SHAPES)
def test_a_job_may_ask_for_a_shape(admin: Caller, spec: Spec) -> None:
    answer = dry_job(admin, spec)
    assert answer.ok, answer.message


@pytest.mark.parametrize("wrong", WRONG_SHAPES.values(), ids=WRONG_SHAPES)
def test_what_does_not_go_with_a_shape_is_refused(admin: Caller, wrong: Wrong) -> None:
    refused(dry_job(admin, wrong.spec), wrong)


def test_kubectl_shows_and_explains_classes(mixed: Running, admin: Caller, tenant: Tenant) -> None:
    create(admin, "a100", match="A100", costPerHour="3.67", shapes={"pair": 2, "one": 1})
    until(lambda: condition(admin, "a100", "Matches"), "the class has a status")
    lines = mixed.kubectl("get", "gc", "a100").stdout.splitlines()
    assert lines[0].split() == ["NAME", "MATCH", "COST/HOUR", "GPUS", "NODES", "SHAPES", "AGE"]
    assert lines[1].split()[:-1] == ["a100", "A100", "3.67", "6", "3", "one=1,", "pair=2"]
    explained = " ".join(mixed.kubectl("explain", "gpuclass.spec.shapes").stdout.split())
    assert "Names for numbers of these GPUs" in explained


def test_a_shape_gets_its_gpus_of_its_class(admin: Caller, tenant: Tenant) -> None:
    create(admin, "a100", match="A100", shapes={"pair": 2})
    tenant.submit("job", shape="pair")
    (allocation,) = tenant.wait_placed("job")
    assert len(allocation.devices) == 2
    until(lambda: tenant.status("job").get("gpu") == "2/2", "the status counts two GPUs")


def test_an_unknown_shape_is_invalid_until_a_class_has_it(admin: Caller, tenant: Tenant) -> None:
    create(admin, "a30", match="A30", shapes={"single": 1})
    tenant.submit("job", shape="pair")
    message = tenant.wait_reason("job", "Invalid")
    assert "no GPUClass has a shape pair; there are single" in message
    accepted = next(c for c in tenant.status("job")["conditions"] if c["type"] == "Accepted")
    assert (accepted["status"], accepted["message"]) == ("False", message)
    create(admin, "a100", match="A100", shapes={"pair": 2})
    tenant.wait_placed("job")
    until(lambda: tenant.status("job")["reason"] == "", "the status follows")


def test_running_pods_outlive_their_class_and_waiting_ones_follow_it(
    admin: Caller, tenant: Tenant
) -> None:
    create(admin, "a100", match="A100", shapes={"pair": 2})
    tenant.submit("job", shape="pair", parallelism=2, completions=2, template=template())
    tenant.wait_placed("job", 2)
    tenant.submit("later", shape="pair", parallelism=2)
    tenant.wait_placed("later", 1)  # the third server is full then
    before = {p["metadata"]["uid"] for p in tenant.pods()}
    answer = admin.patch(f"{CLASSES}/a100", {"spec": {"shapes": {"pair": 3}}})
    assert answer.ok, answer
    message = tenant.wait_reason("later", "Unsatisfiable")
    assert "nodes give 2 A100; 3 is not possible on any node" in message
    remove(admin, "a100")
    tenant.wait_reason("job", "Invalid")
    assert len(tenant.allocations("job")) == 2
    assert {p["metadata"]["uid"] for p in tenant.pods()} == before
    status = tenant.status("job")
    assert (status["phase"], status["allocatedGPU"]) == ("Running", "4"), status


def test_a_shape_of_two_classes_belongs_to_the_older(admin: Caller, tenant: Tenant) -> None:
    create(admin, "b-older", match="A30", shapes={"standard": 1})
    created = admin.get(f"{CLASSES}/b-older").body["metadata"]["creationTimestamp"]

    def younger() -> bool:
        """Timestamps have whole seconds: try until the clock has moved on."""
        create(admin, "a-younger", match="A100", shapes={"standard": 2})
        made = admin.get(f"{CLASSES}/a-younger").body["metadata"]["creationTimestamp"]
        if made > created:
            return True
        remove(admin, "a-younger")
        return False

    until(younger, "the clock moves on")
    until(
        lambda: condition(admin, "a-younger", "Accepted").get("status") == "False",
        "the younger class is refused",
    )
    said = condition(admin, "a-younger", "Accepted")["message"]
    assert "standard belongs to GPUClass b-older already" in said
    tenant.submit("job", shape="standard")
    tenant.wait_placed("job")
    (placement,) = until(lambda: tenant.status("job").get("placements"), "a placement is shown")
    assert placement["node"] == "r750-0", placement


def test_a_class_without_gpus_says_so_and_its_jobs_are_unsatisfiable(
    admin: Caller, tenant: Tenant
) -> None:
    create(admin, "hopper", match="H100", shapes={"big": 1})
    until(
        lambda: condition(admin, "hopper", "Matches").get("reason") == "NoSuchGPU",
        "the class says that nothing matches",
    )
    tenant.submit("job", shape="big")
    message = tenant.wait_reason("job", "Unsatisfiable")
    assert "no GPU is of that model" in message and "A30" in message


def test_memory_goes_to_the_cheapest_device_by_price(admin: Caller, tenant: Tenant) -> None:
    """20 GiB fit both: without prices on the A30, which has less memory, else where it is cheap."""
    tenant.submit("small", gpuMemory="20Gi")
    (first,) = tenant.wait_placed("small")
    assert first.devices[0].mib == 20480 and first.devices[0].milli == 834
    tenant.remove("small")
    until(lambda: not tenant.pods("small"), "the pod is gone")
    create(admin, "a100", match="A100", costPerHour="0.9")
    create(admin, "a30", match="A30", costPerHour="1.1")
    until(lambda: condition(admin, "a30", "Matches"), "the classes are known")
    tenant.submit("cheap", gpuMemory="20Gi")
    (second,) = tenant.wait_placed("cheap")
    assert second.devices[0].milli == 500


def test_models_may_be_named_by_class(admin: Caller, tenant: Tenant) -> None:
    create(admin, "inference", match="A30")
    tenant.submit("job", gpu=0.5, gpuModels=["inference"])
    (allocation,) = tenant.wait_placed("job")
    assert allocation.devices[0].mib == 12288


def test_a_quota_of_a_model_binds_by_the_name_of_its_class(admin: Caller, tenant: Tenant) -> None:
    create(admin, "big", match="A100")
    tenant.set_project(weight=0, quotaByModel={"big": 2})
    tenant.submit("job", gpu=1, gpuModels=["big"], parallelism=3)
    tenant.wait_placed("job", 2)
    message = tenant.wait_reason("job", "WaitingForQuota")
    assert "holds 2 of its quota 2 of a100 (weight 0: it never borrows)" in message, message
    held = {"model": "big", "quotaGPU": "2", "allocatedGPU": "2", "fairShareGPU": "2"}
    until(
        lambda: tenant.project_status().get("byModel") == [held],
        lambda: f"the status counts by model: {tenant.project_status()}",
    )
    tenant.submit("any", gpu=1, parallelism=2)  # the A30 is left, and one more A100 is not
    tenant.wait_placed("any", 1)
    assert tenant.allocations("any")[0].devices[0].mib == 24576
