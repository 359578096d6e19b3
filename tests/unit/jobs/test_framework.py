"""What frameworks are told of the cap, and when a user's own value stands."""

from typing import Any

import pytest
from tests.unit.jobs.golden_jobs import CAP, make_input

from gpu_scheduler.core.model.units import MIB
from gpu_scheduler.jobs.render import render

CUPY, JAX, JAX_NEW = (
    "CUPY_GPU_MEMORY_LIMIT",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_CLIENT_MEM_FRACTION",
)
FROM_PLACEMENT = "metadata.annotations['gpu-scheduler.io/c0-memory-bytes']"


def told(capped: bool, env: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """Variables of the container by name; from the placement: the field path."""
    spec = spec or {"gpu": 0.5}
    entries = [{"name": name, "value": value} for name, value in (env or {}).items()]
    job = make_input({"image": "x", "env": entries, **spec}, cap_image=CAP if capped else None)
    found = render(job)["spec"]["template"]["spec"]["containers"][0]["env"]
    names = [entry["name"] for entry in found]
    assert len(names) == len(set(names))
    return {e["name"]: e.get("value") or e["valueFrom"]["fieldRef"]["fieldPath"] for e in found}


@pytest.mark.parametrize("capped", [True, False])
def test_cupy_is_told_the_cap_in_bytes(capped: bool) -> None:
    assert told(capped)[CUPY] == FROM_PLACEMENT


@pytest.mark.parametrize("value", ["1", "99999999999999", "50%", "0"])
def test_any_value_of_the_users_stands_where_the_library_holds_the_cap(value: str) -> None:
    assert told(True, {CUPY: value})[CUPY] == value


@pytest.mark.parametrize(
    ("value", "stands"),
    [
        (str(1024 * MIB), True),
        (str(1024 * MIB + 1), False),
        ("1", True),
        ("0", False),  # no limit
        ("50%", False),  # of the whole device
        ("-1", False),
        ("lots", False),
        ("", False),
    ],
)
def test_without_the_library_only_a_lower_value_stands(value: str, stands: bool) -> None:
    found = told(False, {CUPY: value}, gpuMemory="1Gi")[CUPY]
    assert found == (value if stands else FROM_PLACEMENT)


def test_without_the_library_the_cap_of_a_fraction_is_not_known_and_ours_wins() -> None:
    assert told(False, {CUPY: "1"})[CUPY] == FROM_PLACEMENT


def test_whole_gpus_are_the_users_own() -> None:
    assert told(False, {CUPY: "0", JAX: ".95"}, gpu=2)[CUPY] == "0"
    assert told(False, {CUPY: "0", JAX: ".95"}, gpu=2)[JAX] == ".95"


def test_jax_is_told_a_fraction_only_of_a_total_that_is_the_whole_device() -> None:
    assert told(False)[JAX] == "0.45"
    assert told(False, gpu=0.3, gpuDevices=2)[JAX] == "0.27"
    assert JAX not in told(True)  # the total is the cap: a fraction of a fraction
    assert JAX not in told(False, gpu=1)
    assert JAX not in told(False, gpuMemory="1Gi")  # of what total nobody knows yet


@pytest.mark.parametrize("name", [JAX, JAX_NEW])
@pytest.mark.parametrize(("value", "stands"), [(".5", True), ("0.51", False), ("all", False)])
def test_a_lower_fraction_of_the_users_stands(name: str, value: str, stands: bool) -> None:
    found = told(False, {name: value})
    assert found[name] == (value if stands else "0.45")
    assert len({JAX, JAX_NEW} & found.keys()) == 1  # newer versions refuse both at once


def test_jax_keeps_its_own_value_where_the_library_holds_the_cap() -> None:
    assert told(True, {JAX: ".9"})[JAX] == ".9"


def test_a_limit_of_thousands_of_digits_is_not_lower_than_the_cap() -> None:
    assert told(False, {CUPY: "9" * 5000}, gpuMemory="1Gi")[CUPY] == FROM_PLACEMENT
