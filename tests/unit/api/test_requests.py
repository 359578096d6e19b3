"""What a spec asks for, container by container."""

import pytest
from tests.unit.api.cases import job, long_job, pod

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.requests import (
    compute_capability,
    container_numbers,
    device_requests,
    models,
)
from gpu_scheduler.core.model.request import DeviceRequest


def spec(**fields):
    return GPUJobSpec.model_validate(job(**fields))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"gpu": 0.5}, DeviceRequest(0, 1, 500)),
        ({"gpu": 0.3, "gpuDevices": 2}, DeviceRequest(0, 2, 300)),
        ({"gpu": 1}, DeviceRequest(0, 1, 1000)),
        ({"gpu": 4}, DeviceRequest(0, 4, 1000)),
        ({"gpu": None, "gpuMemory": "20Gi"}, DeviceRequest(0, 1, 0, 20480)),
        ({"gpu": None, "gpuMemory": "5Gi", "gpuDevices": 3}, DeviceRequest(0, 3, 0, 5120)),
        ({"gpu": None, "gpuMemory": "1048577"}, DeviceRequest(0, 1, 0, 2)),
    ],
)
def test_the_short_form_asks_for_its_one_container(fields, expected):
    assert device_requests(spec(**fields)) == (expected,)


def test_in_a_template_the_first_container_gets_the_top_level_gpu():
    parsed = GPUJobSpec.model_validate(long_job(pod("a", "b")))
    assert device_requests(parsed) == (DeviceRequest(0, 1, 500),)


def test_listed_containers_are_found_by_name_and_come_in_the_pods_order():
    listed = [{"name": "c", "gpu": 0.2}, {"name": "a", "gpuMemory": "1Gi"}]
    parsed = GPUJobSpec.model_validate(long_job(pod("a", "b", "c"), gpu=None, containers=listed))
    assert device_requests(parsed) == (DeviceRequest(0, 1, 0, 1024), DeviceRequest(2, 1, 200))


def test_an_unknown_container_cannot_be_requested_for():
    parsed = spec(gpu=None, containers=[{"name": "z", "gpu": 1}])
    with pytest.raises(ValueError):
        device_requests(parsed)


def test_no_amount_cannot_be_requested():
    with pytest.raises(ValueError, match="neither gpu nor gpuMemory"):
        device_requests(spec(gpu=None))


def test_container_names_of_both_forms():
    assert container_numbers(spec()) == {"main": 0}
    assert container_numbers(GPUJobSpec.model_validate(long_job(pod("a", "b")))) == {"a": 0, "b": 1}


def test_sidecars_are_numbered_after_all_containers_by_their_place_among_the_init_containers():
    template = pod("a", "b")
    template["spec"]["initContainers"] = [
        {"name": "fetch"},
        {"name": "cache", "restartPolicy": "Always"},
    ]
    asked = [{"name": "cache", "gpu": 0.25}, {"name": "b", "gpu": 0.5}]
    parsed = GPUJobSpec.model_validate(long_job(template, gpu=None, containers=asked))
    assert container_numbers(parsed) == {"a": 0, "b": 1, "cache": 65}
    assert device_requests(parsed) == (DeviceRequest(1, 1, 500), DeviceRequest(65, 1, 250))


def test_compute_capability_orders_as_numbers():
    assert compute_capability(spec()) == (0, 0)
    assert compute_capability(spec(minComputeCapability="10.0")) > (9, 0)


def test_models_are_lower_case():
    assert models(spec(gpuModels=["A100", "a30"])) == ("a100", "a30")
    assert models(spec()) == ()
