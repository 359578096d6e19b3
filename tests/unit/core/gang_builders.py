"""Builders for gangs."""

from collections.abc import Iterable
from dataclasses import replace

from tests.unit.builders import job

from gpu_scheduler.core.model.decision import Plan, Wait
from gpu_scheduler.core.model.request import (
    Gang,
    PodShape,
    PodUID,
    Topology,
    WaitingJob,
    WaitingPod,
)

ZONE = "topology.kubernetes.io/zone"


def gang(
    name: str,
    *roles: tuple[PodShape, int],
    topology: Topology | None = None,
    distinct: bool = True,
    missing: int | None = None,
    nodes: Iterable[str] = (),
    devices: Iterable[str] = (),
    **about: object,
) -> WaitingJob:
    """A gang with roles r0, r1, … of so many pods each."""
    each = [(r, what) for r, (what, count) in enumerate(roles) for _ in range(count)]
    base = job(name, each[0][1], 0, **about)  # type: ignore[arg-type]
    pods = tuple(
        WaitingPod(PodUID(f"{name}-{i}"), f"{name}-{i}", what, role=f"r{r}")
        for i, (r, what) in enumerate(each)
    )
    size = missing if missing is not None else len(pods)
    return replace(
        base,
        pods=pods,
        gang=Gang(
            size, max(size, len(pods)), distinct, topology, frozenset(nodes), frozenset(devices)
        ),
    )


def only_wait(result: Plan) -> Wait:
    """The one wait of a plan that places nothing."""
    assert result.assignments == ()
    (wait,) = result.waits
    return wait
