"""A node whose agent lists no GPU for a moment, or fewer: nothing is harmed, and words are true."""

from random import Random

import pytest
from tests.unit.generated.nodes import USABLE_MIB, node
from tests.unit.generated.ours import gpujob, gpuproject, metadata
from tests.unit.generated.stage import ROOT, Stage
from tests.unit.generated.values import Obj
from tests.unit.runtime.virtual_loop import virtual

TEAM, GPUS = "team-a", 2
NODE = f"{ROOT}/gpunodes/a"


def gpunode(devices: int) -> Obj:
    listed = [
        {
            "uuid": f"GPU-{index}",
            "index": index,
            "model": "NVIDIA-A100-PCIE-40GB",
            "usableMiB": USABLE_MIB,
            "computeCapability": "8.0",
            "healthy": True,
        }
        for index in range(devices)
    ]
    return {"metadata": metadata("a"), "status": {"devices": listed}}


def submit(stage: Stage, name: str, **spec: object) -> None:
    path = f"{ROOT}/namespaces/{TEAM}/gpujobs/{name}"
    stage.server.put(path, gpujob(name, TEAM, **spec))


def says(stage: Stage, name: str) -> tuple[str, str]:
    status = stage.server.objects[f"{ROOT}/gpujobs", TEAM, name]["status"]
    return status.get("reason", ""), status.get("message", "")


@pytest.mark.parametrize("left", [0, 1])
def test_who_waits_is_not_told_that_there_are_no_gpus(left: int) -> None:
    @virtual
    async def play() -> None:
        stage = Stage()
        stage.server.put("/api/v1/nodes/a", node("a", GPUS))
        stage.server.put(NODE, gpunode(GPUS))
        stage.server.put(f"{ROOT}/gpuprojects/{TEAM}", gpuproject(TEAM, [TEAM], quota=2 * GPUS))
        await stage.lead(Random(0))
        try:
            for number in range(2 * GPUS):
                submit(stage, f"runs-{number}", gpu=0.5)
            await stage.passes(5)
            running, charges = stage.placed(TEAM), stage.charges()
            submit(stage, "small", gpu=0.5)
            submit(stage, "large", gpu=2)
            await stage.passes(5)
            before = {name: says(stage, name) for name in ("small", "large")}
            assert {reason for reason, _ in before.values()} == {"WaitingForGPU"}

            stage.server.put(NODE, gpunode(left))
            await stage.passes(8)
            for name in before:
                reason, message = says(stage, name)
                assert reason in ("WaitingForResources", "WaitingForGPU"), (reason, message)
                assert "no GPU nodes" not in message
                if reason == "WaitingForResources":
                    assert "not counting a: GPUs that pods hold there" in message
            assert (stage.placed(TEAM), stage.charges()) == (running, charges)
            assert stage.evicted == []

            stage.server.put(NODE, gpunode(GPUS))
            await stage.passes(8)
            assert {name: says(stage, name) for name in before} == before
            stage.server.remove(f"{ROOT}/namespaces/{TEAM}/gpujobs/large")
            stage.finish(TEAM, "runs-0")
            await stage.passes(8)
            assert stage.placed(TEAM) >= {("small", "0")}
            assert stage.evicted == []
        finally:
            await stage.end()

    play()
