"""A Job that somebody takes from its GPUJob: its pods run on, and the GPUJob says what to do."""

import copy
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.unit.generated.nodes import node
from tests.unit.generated.ours import gpujob, gpuproject
from tests.unit.generated.stage import ROOT, SETTINGS, Stage
from tests.unit.runtime.virtual_loop import virtual

from gpu_scheduler.kube.paths import JOBS, NODES, PODS

BATCH = "/apis/batch/v1/namespaces/team/jobs"
Json = dict[str, Any]
SWEEP = {
    "algorithm": "random",
    "seed": 7,
    "objective": {"metric": "loss", "goal": "minimize"},
    "parameters": {"lr": {"uniform": [0, 1]}},
}


def orphaned(meta: Json) -> None:
    meta.pop("ownerReferences")


def controlled_by_nobody(meta: Json) -> None:
    meta["ownerReferences"][0]["controller"] = False


def of_an_earlier_one(meta: Json) -> None:
    meta["ownerReferences"][0]["uid"] = "earlier"


def of_another_one(meta: Json) -> None:
    meta["ownerReferences"][0] |= {"name": "other", "uid": "other"}


@pytest.mark.parametrize("more", [{}, {"sweep": SWEEP, "completions": 1}], ids=["job", "sweep"])
@pytest.mark.parametrize(
    ("edit", "reason", "says"),
    [
        (orphaned, "Invalid", "exists in namespace team already and is not this GPUJob's"),
        (controlled_by_nobody, "Invalid", "already and is not this GPUJob's"),
        # The garbage collector takes it, as its owner is not there.
        (of_an_earlier_one, "CreatingJob", "its Job is being made"),
        (of_another_one, "Invalid", "exists in namespace team already and is GPUJob other's"),
    ],
)
def test_it_is_told_in_a_cluster_where_nothing_else_happens(
    edit: Callable[[Json], None], reason: str, says: str, more: Json
) -> None:
    @virtual
    async def run() -> None:
        stage = Stage(settings=SETTINGS)
        stage.server.put(f"{NODES}/one", node("one", 2))
        stage.server.put(f"{ROOT}/gpuprojects/team", gpuproject("team", ["team"], quota=2))
        await stage.lead(Random(0))
        spec = {"gpu": 0.5, **more}
        stage.server.put(f"{ROOT}/namespaces/team/gpujobs/job", gpujob("job", "team", **spec))
        await stage.passes(10)

        def status() -> Json:
            (found,) = stage.server.of(f"{ROOT}/gpujobs")
            said: Json = found["status"]
            return said

        assert status()["phase"] == "Running"
        (pod,) = stage.server.of(PODS)
        (job,) = stage.server.of(JOBS)
        path, changed = f"{BATCH}/{job['metadata']['name']}", copy.deepcopy(job)
        edit(changed["metadata"])
        stage.server.put(path, changed)
        await stage.passes(10)
        assert status()["reason"] == reason and says in status()["message"]
        (still,) = stage.server.of(PODS)
        assert still["metadata"]["uid"] == pod["metadata"]["uid"]
        stage.server.remove(path)
        await stage.passes(60 if edit is of_another_one else 5)
        assert (status()["phase"], status()["reason"]) == ("Running", "")
        (own,) = stage.server.of(JOBS)
        assert own["metadata"]["ownerReferences"][0]["uid"] == "uid-team-job"
        await stage.end()

    run()
