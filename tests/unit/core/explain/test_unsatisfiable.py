"""What an empty node has too little of, in words."""

from typing import Any

import pytest

from gpu_scheduler.core.explain.unsatisfiable import too_small
from gpu_scheduler.core.model.cluster import NodeInfo
from gpu_scheduler.core.model.pod_request import holds
from gpu_scheduler.core.model.request import PodShape

GIB = 1 << 30
LARGE = {
    "cpu_milli": 64_000,
    "memory_bytes": 8 * GIB,
    "ephemeral_bytes": 8 * GIB,
    "pods": 110,
    "scalars": (("hugepages-2Mi", GIB), ("rdma/hca", 2)),
}


@pytest.mark.parametrize(
    ("less", "said"),
    [
        ({}, ""),
        ({"cpu_milli": 1_500}, "has 1.5 CPU in all"),
        ({"memory_bytes": GIB + 1}, "has 1Gi memory in all"),
        ({"ephemeral_bytes": 0}, "has 0 ephemeral storage in all"),
        ({"pods": 0}, "takes no pods at all"),
        ({"cpu_milli": 0, "pods": 0}, "has 0 CPU in all"),
        ({"scalars": (("rdma/hca", 2),)}, "has 0 hugepages-2Mi in all"),
        ({"scalars": (("hugepages-2Mi", GIB),)}, "has 0 rdma/hca in all"),
        ({"scalars": (("hugepages-2Mi", GIB), ("rdma/hca", 1))}, "has 1 rdma/hca in all"),
    ],
)
def test_a_node_that_is_too_small_says_the_first_thing_that_is_missing(
    less: dict[str, Any], said: str
) -> None:
    node = NodeInfo("a", **{**LARGE, **less})
    scalars = (("hugepages-2Mi", GIB), ("rdma/hca", 2))
    wanted = PodShape(cpu_milli=2_000, memory_bytes=2 * GIB, ephemeral_bytes=GIB, scalars=scalars)
    assert too_small(wanted, node) == said
    assert holds(wanted, node) == (not said)
