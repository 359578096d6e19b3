"""Models and JSON: names, numbers and what is left out."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.unit.api.cases import job, project

from gpu_scheduler.api.condition import ConditionType, StatusCondition
from gpu_scheduler.api.gpujob import GPUJobSpec, GPUJobStatus, Phase, PodCounts, PodPlacement
from gpu_scheduler.api.gpunode import GPUNodeStatus
from gpu_scheduler.api.gpuproject import GPUProjectSpec
from gpu_scheduler.api.model import json_name


@pytest.mark.parametrize(
    ("python", "json"),
    [
        ("gpu", "gpu"),
        ("gpu_memory", "gpuMemory"),
        ("allocated_gpu", "allocatedGPU"),
        ("usable_mib", "usableMiB"),
        ("time_limit_seconds", "timeLimitSeconds"),
    ],
)
def test_json_names(python, json):
    assert json_name(python) == json


def test_a_spec_survives_the_way_through_json():
    given_json = job(gpu=0.3, args=["a"], parallelism=2, env=[{"name": "A", "value": "1"}])
    defaults = {"type": "training", "priority": 50, "retries": 3, "suspend": False}
    assert GPUJobSpec.model_validate(given_json).to_json() == defaults | given_json


@given(st.integers(1, 999))
def test_a_share_is_exact_in_python_and_the_same_number_in_json(milli):
    spec = GPUJobSpec(image="a", gpu=Decimal(milli) / 1000)
    assert spec.to_json()["gpu"] == milli / 1000
    assert GPUJobSpec.model_validate(spec.to_json()).gpu == Decimal(milli) / 1000


def test_whole_gpus_are_integers_in_json():
    assert str(GPUJobSpec.model_validate(job(gpu=2.0)).to_json()["gpu"]) == "2"


def test_pods_in_all_default_to_parallelism():
    assert GPUJobSpec.model_validate(job(parallelism=3)).total_pods == 3
    assert GPUJobSpec.model_validate(job(parallelism=3, completions=7)).total_pods == 7


def test_fields_of_a_newer_version_are_ignored():
    assert GPUJobSpec.model_validate(job(ofNextYear=True)) == GPUJobSpec.model_validate(job())


def test_a_spec_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        GPUJobSpec.model_validate(job()).priority = 1


def test_a_status_in_json_reads_like_the_api():
    status = GPUJobStatus(
        phase=Phase.RUNNING,
        pods=PodCounts(running=1),
        allocated_gpu="0.5",
        placements=[PodPlacement(pod="a-0-x", node="n", devices=["GPU-1"], memory_mib=20224)],
        conditions=[
            StatusCondition(
                type=ConditionType.ACCEPTED,
                status="True",
                observed_generation=1,
                last_transition_time="2026-01-01T00:00:00Z",
                reason="Valid",
            )
        ],
    )
    assert status.to_json() == {
        "phase": "Running",
        "reason": "",
        "message": "",
        "pods": {"pending": 0, "running": 1, "succeeded": 0, "failed": 0},
        "allocatedGPU": "0.5",
        "placements": [{"pod": "a-0-x", "node": "n", "devices": ["GPU-1"], "memoryMiB": 20224}],
        "conditions": [
            {
                "type": "Accepted",
                "status": "True",
                "observedGeneration": 1,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
                "reason": "Valid",
                "message": "",
            }
        ],
    }


def test_a_projects_amounts_in_milli():
    spec = GPUProjectSpec.model_validate(project(quota=2.5, limit=0.1))
    assert (spec.quota_milli, spec.limit_milli) == (2500, 100)
    assert GPUProjectSpec.model_validate(project()).limit_milli is None


def test_a_node_as_the_agent_writes_it():
    device = {
        "uuid": "GPU-1",
        "index": 0,
        "model": "NVIDIA A100-PCIE-40GB",
        "memoryMiB": 40960,
        "usableMiB": 40448,
        "computeCapability": "8.0",
        "healthy": True,
    }
    status = {"driverVersion": "570.86", "isolation": "interposer", "gpus": 1, "devices": [device]}
    assert GPUNodeStatus.model_validate(status).to_json() == status
