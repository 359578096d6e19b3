"""What the policies for pods that ask cost the API server: its CPU per pod, from dry runs.

A round sends every sort of pod with the bindings of the two policies in force, and without them;
the order turns from round to round, and differences are taken within a round. A pod that asks
becomes larger, which costs by itself: without the policies the pod is sent as they would make it,
too. Each measured batch follows a small one, by which the API server has compiled what it needs.
How often it evaluated the policy that makes pods ours explains the rest: who was asked is asked
once more when a pod was changed.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from tests.perf.bindings import Bindings
from tests.perf.install import RELEASE, pids, say
from tests.perf.procfs import cpu_seconds
from tests.perf.settings import Sizes
from tests.perf.workload import (
    NAMESPACE,
    asking_deployment,
    plain_deployment,
    rendered_deployment,
)

from cluster import Running
from gpu_scheduler.api.names import ASK_GPU, ASKED
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.paths import core

_BINDINGS = (
    f"mutatingadmissionpolicybinding/{RELEASE}-shares",
    f"validatingadmissionpolicybinding/{RELEASE}-share-requests",
)
_API_SERVER = "kube-apiserver"
_EVALUATIONS = re.compile(
    rf'^apiserver_mutating_admission_policy_check_total{{.*policy="{RELEASE}-shares".*}} (\S+)$',
    re.MULTILINE,
)
_AT_ONCE = 4
_IN_FORCE_SECONDS = 60.0
_LOOK_SECONDS = 0.2

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """One sort of pod, with the policies or without them."""

    pod: str
    policies: bool

    @property
    def name(self) -> str:
        """For the data."""
        return f"{self.pod}, {'with' if self.policies else 'without'} policies"


PLAIN, ASKING, MADE = "plain", "asking", "made ours"
CASES = (
    Case(PLAIN, False),
    Case(ASKING, False),
    Case(MADE, False),
    Case(PLAIN, True),
    Case(ASKING, True),
    Case(MADE, True),
)


def pods() -> dict[str, Json]:
    """The sorts of pods, as a ReplicaSet's controller sends them."""
    return {
        PLAIN: _pod(plain_deployment("cost", 1, whole_gpus=0)),
        ASKING: _pod(asking_deployment("cost", 1)),
        MADE: _pod(rendered_deployment("cost", 1)),
    }


def _pod(deployment: tuple[str, Any]) -> Json:
    template = deployment[1]["spec"]["template"]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "cost", "uid": "cost"}
    more = {"generateName": "cost-", "ownerReferences": [{**owner, "controller": True}]}
    metadata = {**template["metadata"], **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


async def measure(running: Running, client: Client, sizes: Sizes) -> Json:
    """CPU of the API server per pod in milliseconds, and evaluations, of each case and round."""
    bindings = Bindings(running, *_BINDINGS)
    bodies = {name: orjson.dumps(body) for name, body in pods().items()}
    runs: list[Json] = []
    for number in range(sizes.admission_rounds):
        for policies, cases in _turned(number):
            await asyncio.to_thread(bindings.put_back if policies else bindings.take_away)
            await _until_in_force(client, policies)
            for case in cases:
                await _send(client, bodies[case.pod], sizes.admission_pods // 10)
                looked, before = await _evaluations(client), cpu_seconds(pids(running)[_API_SERVER])
                await _send(client, bodies[case.pod], sizes.admission_pods)
                used = cpu_seconds(pids(running)[_API_SERVER]) - before
                looked = await _evaluations(client) - looked
                figures = {
                    "case": case.name,
                    "round": number,
                    "ms": 1000 * used / sizes.admission_pods,
                    "evaluations": looked / sizes.admission_pods,
                }
                say(f"  round {number + 1} {case.name:27} {figures['ms']:.2f} ms")
                runs.append(figures)
    return {"runs": runs}


def _turned(number: int) -> Iterator[tuple[bool, Sequence[Case]]]:
    """The cases of a round: the policies put on first or last, and other pods first each time."""
    for policies in (False, True) if number % 2 == 0 else (True, False):
        cases = [case for case in CASES if case.policies is policies]
        turn = number % len(cases)
        yield policies, (*cases[turn:], *cases[:turn])


async def _evaluations(client: Client) -> float:
    return evaluations((await client.request("GET", "/metrics", accept="text/plain")).decode())


def evaluations(metrics: str) -> float:
    """How often the policy that makes pods ours was evaluated, in the text of /metrics."""
    return sum(float(value) for value in _EVALUATIONS.findall(metrics))


async def _send(client: Client, body: bytes, count: int) -> None:
    left = iter(range(count))

    async def worker() -> None:
        for _ in left:
            await _dry_run(client, body)

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(worker())


async def _dry_run(client: Client, body: bytes) -> bytes:
    path = core("pods", NAMESPACE)
    return await client.request("POST", path, params={"dryRun": "All"}, body=body)


async def _until_in_force(client: Client, policies: bool) -> None:
    """Wait until pods that ask are made ours and judged, or neither.

    Raises:
        TimeoutError: the API server has not read what was changed.
    """
    asking = pods()[ASKING]
    good = orjson.dumps(asking)
    odd = {**asking["metadata"], "labels": {ASK_GPU: "half"}}
    bad = orjson.dumps({**asking, "metadata": odd})
    async with asyncio.timeout(_IN_FORCE_SECONDS):
        while True:
            if {await _is_made_ours(client, good), await _is_refused(client, bad)} == {policies}:
                return
            await asyncio.sleep(_LOOK_SECONDS)


async def _is_made_ours(client: Client, body: bytes) -> bool:
    return ASKED in orjson.loads(await _dry_run(client, body))["metadata"].get("annotations", {})


async def _is_refused(client: Client, body: bytes) -> bool:
    try:
        await _dry_run(client, body)
    except errors.Unprocessable:
        return True
    return False
