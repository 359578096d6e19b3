"""A project says which of its namespaces do not exist, from the first look at all of them on."""

from random import Random
from typing import Any

from tests.unit.generated.nodes import node
from tests.unit.generated.ours import gpuproject
from tests.unit.generated.server import place_of
from tests.unit.generated.stage import ROOT, Stage
from tests.unit.runtime.virtual_loop import virtual

from gpu_scheduler.kube.paths import NAMESPACES, NODES

PROJECT = f"{ROOT}/gpuprojects/team"


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": name}}


def told(stage: Stage) -> tuple[str, str, str]:
    status = stage.server.objects[place_of(PROJECT).key]["status"]
    (found,) = (c for c in status["conditions"] if c["type"] == "NamespacesExist")
    return found["status"], found["reason"], found["message"]


@virtual
async def test_it_says_so_until_they_come() -> None:
    stage = Stage()
    stage.server.put(f"{NODES}/one", node("one", 1))
    stage.server.put(f"{NAMESPACES}/team", namespace("team"))
    stage.server.put(PROJECT, gpuproject("team", ["team", "typo"], quota=1))
    await stage.lead(Random(0))
    await stage.passes(10)
    status, reason, message = told(stage)
    assert (status, reason) == ("False", "NamespaceNotFound")
    assert message.startswith("spec.namespaces: typo does not exist")
    stage.server.put(f"{NAMESPACES}/typo", namespace("typo"))
    await stage.passes(10)
    assert told(stage) == ("True", "AllExist", "")
    await stage.end()
