from typing import Any

import pytest

from gpu_scheduler.jobs.conflicts import problems

CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "other scheduler": (
        {"schedulerName": "volcano"},
        "spec.template.spec.schedulerName",
        "remove the field",
    ),
    "node": ({"nodeName": "n1"}, "spec.template.spec.nodeName", "nodeSelector"),
    "volume": (
        {"volumes": [{"name": "data"}, {"name": "gpu-scheduler-c0"}]},
        "spec.template.spec.volumes[1].name",
        "rename the volume",
    ),
    "mount": (
        {"containers": [{"name": "a", "volumeMounts": [{"mountPath": "/etc/gpu-scheduler"}]}]},
        "spec.template.spec.containers[0].volumeMounts[0].mountPath",
        "mount the volume elsewhere",
    ),
    "device plugin": (
        {"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": 1}}}]},
        "spec.template.spec.containers[0].resources",
        "spec.gpu",
    ),
    "MIG": (
        {
            "initContainers": [
                {"name": "a", "resources": {"requests": {"nvidia.com/mig-1g.5gb": 1}}}
            ]
        },
        "spec.template.spec.initContainers[0].resources",
        "nvidia.com/mig-1g.5gb",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_conflict_names_the_field_and_the_way_out(case: str) -> None:
    spec, field, way_out = CASES[case]
    (problem,) = problems(spec, {0})
    assert problem.field == field
    assert way_out in problem.message


def test_ordinary_templates_have_no_problem() -> None:
    spec = {
        "schedulerName": "default-scheduler",
        "schedulingGates": [{"name": "example.com/license"}],
        "containers": [
            {"name": "a", "resources": {"limits": {"cpu": 1, "nvidia.com/hostdev": 1}}},
            {"name": "b", "volumeMounts": [{"mountPath": "/etc/gpu-scheduler"}]},
        ],
        "volumes": [{"name": "gpu-scheduler-c1", "emptyDir": {}}],
    }
    assert problems(spec, {0}) == ()


def test_devices_by_hand_are_refused_with_the_way_out() -> None:
    env = [{"name": "LR", "value": "1"}, {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    (problem,) = problems({"containers": [{"name": "main", "image": "x", "env": env}]}, [0])
    assert problem.field == "spec.template.spec.containers[0].env[1].name"
    assert "remove it" in problem.message
