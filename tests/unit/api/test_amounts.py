"""Amounts that no node or GPU can have are refused before anybody counts with them."""

from typing import Any

import pytest
from tests.unit.state.builders import make_gpujob

CONTAINER = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "9E"}}}


@pytest.mark.parametrize(
    ("field", "spec"),
    [
        ("spec.gpuMemory", {"gpuMemory": "17Ti"}),
        ("spec.gpuMemory", {"gpuMemory": "9E"}),
        ("spec.resources.requests.cpu", {"resources": {"requests": {"cpu": "10P"}}}),
        ("spec.resources.limits.memory", {"resources": {"limits": {"memory": "16Ei"}}}),
        ("spec.resources.requests.cpu", {"resources": {"requests": {"cpu": "many"}}}),
        (
            "spec.template.spec.containers[0].resources.requests.cpu",
            {"template": {"spec": {"containers": [CONTAINER]}}},
        ),
    ],
)
def test_the_field_is_named(field: str, spec: dict[str, Any]) -> None:
    assert make_gpujob(**spec).problem.startswith(field)


def test_what_large_nodes_have_is_not_refused() -> None:
    large = {"cpu": "1024", "memory": "24Ti", "ephemeral-storage": "40Ti"}
    assert make_gpujob(resources={"requests": large}).problem == ""
