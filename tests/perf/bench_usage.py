"""What the use of GPUs costs the leader: ``python -m tests.perf.bench_usage``.

Nodes with agents, containers on them and namespaces, all made up; answers are as agents encode
them, and what the leader writes is counted and sent to nobody. Some minutes, looked at every ten
seconds, in each of which every container does something else, and /metrics asked as often. Prints
JSON: CPU of a core, how long the event loop was held up, in all and while figures for metrics were
made, and writes and bytes of GPUUsages in a minute.
"""

import argparse
import asyncio
import gc
import json
import time
from collections.abc import Sequence
from random import Random
from typing import Any, cast

import msgspec
import orjson
from tests.perf.machine import machine
from tests.unit.runtime.fake_client import FakeClient, Sent
from tests.unit.state.builders import USABLE_MIB, half, make_job, make_node, make_pod

from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.runtime.common import build as common
from gpu_scheduler.runtime.common.settings import OperatorSettings
from gpu_scheduler.runtime.informers.custom_resources import CustomResources
from gpu_scheduler.runtime.usage import build as usage
from gpu_scheduler.usage.answer import (
    AgentUsage,
    DeviceHealth,
    DeviceNow,
    ProcessNow,
    ShareUse,
    Totals,
    dumps,
    parse,
)
from gpu_scheduler.usage.window import Window
from gpu_scheduler.web.metrics import OperatorMetrics

_PERIOD_SECONDS = 10
_ROUNDS_OF_MINUTE = 6
_ROUNDS_OF_WINDOW = 90
_GPUS = 8


class Cluster:
    """A leader's state, and what its agents would answer."""

    def __init__(self, nodes: int, containers: int, namespaces: int, seed: int) -> None:
        """Every container is a GPUJob of its own, with a quarter of a GPU."""
        self.random = Random(seed)
        self.seconds = 1000.0
        self.client = FakeClient(_answer)
        clock = Clock(lambda: self.seconds, lambda: 1_700_000_000 + self.seconds)
        settings = OperatorSettings.model_validate({"agent_port": 1})
        client = cast(Client, self.client)
        self.common = common.build(client, settings, clock, lambda job: None)
        self.parts = usage.build(self.common, OperatorMetrics(client, clock))
        self._resources = CustomResources(self.common.state, changed=lambda key: None)
        self.shares: dict[str, list[ShareUse]] = {f"node-{n}": [] for n in range(nodes)}
        for node in self.shares:
            self.common.state.nodes.changed(make_node(node, _GPUS))
        for number in range(containers):
            self._container(number, f"node-{number % nodes}", f"team-{number % namespaces}")
        self.round = 0

    def _container(self, number: int, node: str, namespace: str) -> None:
        name, uid = f"train-{number}", f"gpujob-{number}"
        meta = {
            "name": name,
            "namespace": namespace,
            "uid": uid,
            "generation": 1,
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        self._resources.gpujob({"metadata": meta, "spec": {"image": "i", "gpu": 0.25}})
        made = make_job(name, uid=f"job-{number}", owner_uid=uid, namespace=namespace)
        self.common.state.job_changed(made)
        device = str(len(self.shares[node]) % _GPUS)
        pod = make_pod(
            f"{name}-0",
            uid=f"pod-{number}",
            namespace=namespace,
            job=f"job-{number}",
            node=node,
            devices=half(device, 250),
            phase="Running",
        )
        self.common.state.pod_changed(pod)
        share = ShareUse(
            device=device,
            pod_uid=f"pod-{number}",
            container="main",
            work=uid,
            share=0.25,
            cap_mib=USABLE_MIB // 4,
            device_mib=USABLE_MIB,
            compute_capability="8.0",
        )
        self.shares[node].append(share)

    def answers(self) -> list[tuple[str, bytes]]:
        """What all agents answer in the next round."""
        self.round += 1
        self.seconds += _PERIOD_SECONDS
        new = self.round % _ROUNDS_OF_WINDOW == 1
        return [
            (node, dumps(AgentUsage(look=self.round, devices=_DEVICES, shares=tuple(shares))))
            for node, known in self.shares.items()
            for shares in [[self._next(share, new) for share in known]]
        ]

    def _next(self, share: ShareUse, new_window: bool) -> ShareUse:
        busy = self.random.random()
        seconds = self.round * _PERIOD_SECONDS
        return ShareUse(
            device=share.device,
            pod_uid=share.pod_uid,
            container=share.container,
            work=share.work,
            share=share.share,
            cap_mib=share.cap_mib,
            device_mib=share.device_mib,
            compute_capability=share.compute_capability,
            age_seconds=seconds,
            idle_seconds=0,
            ever_busy=True,
            busy=busy,
            memory_mib=self.random.random() * share.cap_mib,
            cpu_milli=1000 * busy,
            cpu_limit_milli=4000.0,
            ram_mib=2048.0,
            ram_limit_mib=8192.0,
            totals=Totals(
                containers=1,
                seconds=seconds,
                busy_seconds=seconds * self.random.random(),
                held_gpu_seconds=0.25 * seconds,
                used_gpu_seconds=0.2 * seconds,
                buckets=tuple(seconds // 10 for _ in range(10)),
                peak_mib=self.random.randrange(share.cap_mib),
            ),
            processes=(ProcessNow(pid=4711, memory_mib=900.0, busy=0.5),),
            windows=_WINDOWS if new_window else None,
        )


_HEALTH = DeviceHealth(celsius=60.0, watts=240.0, slowed=(), uncorrected_ecc=0)
_DEVICES = tuple(
    DeviceNow(uuid=str(n), busy=0.5, memory_mib=20_000.0, health=_HEALTH) for n in range(_GPUS)
)
_COUNTED = ("looks", "swings", "refused")
_WINDOW = msgspec.structs.replace(
    Window(looks=90),
    **{name: 0.5 for name in Window.__struct_fields__ if name not in _COUNTED},
)
_WINDOWS = (_WINDOW,) * 4


async def _answer(sent: Sent) -> Any:
    await asyncio.sleep(0.001)  # as long as an answer may take; others have their turn
    return {"metadata": {"uid": f"uid-{sent.path}"}} if sent.method == "POST" else {}


async def measured(cluster: Cluster, minutes: int) -> dict[str, Any]:
    """Some minutes of it."""
    stalls: list[float] = []
    longest: list[float] = []
    of_figures: list[float] = []
    watching = asyncio.create_task(_watch(stalls))
    taking = looking = writing = 0.0
    for number in range(minutes * _ROUNDS_OF_MINUTE):
        answers = cluster.answers()
        await asyncio.sleep(0)
        stalls.clear()
        began = time.process_time()
        for node, body in answers:
            cluster.parts.seen.take(node, parse(body), cluster.seconds)
            await asyncio.sleep(0)
        taking += time.process_time() - began
        before, began = len(stalls), time.process_time()
        seen = await cluster.parts.cluster.look()
        looking += time.process_time() - began
        of_figures += stalls[before:]
        if number % _ROUNDS_OF_MINUTE == 0:
            began = time.process_time()
            await cluster.parts.minute.look()
            writing += time.process_time() - began
        longest += stalls
        if number == 0:  # the first writes make the objects
            cluster.client.sent.clear()
            taking = looking = writing = 0.0
            longest.clear()
            of_figures.clear()
    watching.cancel()
    seconds = (minutes * _ROUNDS_OF_MINUTE - 1) * _PERIOD_SECONDS
    sent = cluster.client.sent
    return {
        "percentOfACore": {
            "answers": round(100 * taking / seconds, 2),
            "figuresForMetrics": round(100 * looking / seconds, 2),
            "adviceAndGPUUsages": round(100 * writing / seconds, 2),
        },
        "bytesOfAnAnswer": round(sum(len(body) for _, body in answers) / len(answers)),
        "millisecondsOfALookForMetrics": round(1000 * looking / (_ROUNDS_OF_MINUTE * minutes - 1)),
        "turns": _turns(longest),
        "turnsOfFiguresForMetrics": _turns(of_figures),
        "writesAMinute": round(len(sent) / max(minutes - 1, 1), 1),
        "bytesAMinute": round(
            sum(len(orjson.dumps(each.body)) for each in sent) / max(minutes - 1, 1)
        ),
        "gpusByState": seen.gpus,
    }


def _turns(seconds: Sequence[float]) -> dict[str, float]:
    p99 = sorted(seconds)[len(seconds) * 99 // 100]
    return {
        "longestMilliseconds": round(1000 * max(seconds), 1),
        "p99Milliseconds": round(1000 * p99, 1),
    }


async def _watch(turns: list[float]) -> None:
    """CPU of each turn of the loop."""
    while True:
        before = time.thread_time()
        await asyncio.sleep(0)
        turns.append(time.thread_time() - before)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.perf.bench_usage")
    parser.add_argument("--nodes", type=int, default=125)
    parser.add_argument("--containers", type=int, default=4000)
    parser.add_argument("--namespaces", type=int, default=200)
    parser.add_argument("--minutes", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    cluster = Cluster(options.nodes, options.containers, options.namespaces, options.seed)
    gc.set_threshold(50_000, 20, 100)  # as ``main`` does
    gc.collect()
    gc.freeze()  # as the leader does once it knows the cluster
    found = asyncio.run(measured(cluster, options.minutes))
    print(json.dumps({"machine": machine(), "options": vars(options), **found}, indent=2))  # noqa: T201
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
