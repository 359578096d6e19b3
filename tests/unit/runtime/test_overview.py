"""One look at what all projects hold, wait for and are promised."""

import pytest
from tests.unit.builders import project
from tests.unit.state.builders import (
    half,
    make_gpujob,
    make_job,
    make_node,
    make_pod,
    make_project,
)

from gpu_scheduler.runtime.overview import Promise, look
from gpu_scheduler.state.world import World


def test_jobs_are_counted_for_the_project_that_owns_their_namespace() -> None:
    world = World()
    world.node_changed(make_node("a", 2))
    world.project_changed(make_project("team", "x", "y"))
    for number, namespace in enumerate(("x", "y", "nobody")):
        status = {"phase": "Running"} if namespace != "y" else {}
        world.gpujob_changed(
            make_gpujob("job", uid=f"g{number}", namespace=namespace, status=status)
        )
        job = f"j{number}"
        world.job_changed(make_job(uid=job, owner_uid=f"g{number}", namespace=namespace))
        grants = half() if namespace == "x" else ()
        world.pod_changed(
            make_pod(
                uid=f"p{number}",
                namespace=namespace,
                job=job,
                node="a" if grants else "",
                grants=grants,
            )
        )
    seen = look(world)
    assert dict(seen.allocated_milli) == {"team": 500}
    assert {name: [w.key for w in jobs] for name, jobs in seen.waiting.items()} == {
        "team": ["y/job"]
    }
    assert dict(seen.running) == {"team": 1}
    assert seen.promise == Promise(1, 8000, 2000)


@pytest.mark.parametrize(
    ("quota_milli", "in_all", "says"),
    [
        (2000, 8000, ""),
        (0, 9000, ""),
        (9000, 9000, "spec.quota: 9 is promised and the cluster has 8 GPUs"),
        (
            2000,
            12_000,
            "spec.quota: 3 projects are promised 12 in all and the cluster has 8 GPUs; if all ask"
            " for theirs at once, the share of this one is 1.333 of its 2",
        ),
    ],
)
def test_a_promise_that_cannot_be_kept_is_told(quota_milli: int, in_all: int, says: str) -> None:
    assert Promise(3, in_all, 8000).broken(project(quota_milli=quota_milli)) == says
