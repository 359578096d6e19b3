"""How many pods of a job the GPUs could hold."""

import pytest

from gpu_scheduler.core.model.quota import UNBOUNDED
from gpu_scheduler.core.model.request import DeviceRequest
from gpu_scheduler.core.window import could_run

A100 = ("NVIDIA-A100-PCIE-40GB", 40_000)
T4 = ("Tesla-T4", 15_000)


@pytest.mark.parametrize(
    ("asked", "models", "ceiling", "pods"),
    [
        ((DeviceRequest(0, 1, 500),), (), UNBOUNDED, 12),
        ((DeviceRequest(0, 1, 500),), (), 4000, 8),
        ((DeviceRequest(0, 2, 1000),), (), UNBOUNDED, 3),
        ((DeviceRequest(0, 1, 1000),), ("t4",), UNBOUNDED, 2),
        ((DeviceRequest(0, 1, 1000),), ("h100",), UNBOUNDED, 0),
        ((DeviceRequest(0, 1, 0, 10_000),), (), UNBOUNDED, 4 * 4 + 2 * 1000 // 667),
        ((DeviceRequest(0, 1, 0, 10_000),), (), 1000, 4),
        ((), (), 4000, 4000),
    ],
)
def test_pods_that_could_run(
    asked: tuple[DeviceRequest, ...], models: tuple[str, ...], ceiling: int, pods: int
) -> None:
    assert could_run(asked, models, [A100] * 4 + [T4] * 2, ceiling) == pods
