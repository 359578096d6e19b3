"""Synthetic agents, one for each fake node: ``python -m tests.perf.signals.agents``.

They are told what runs as real ones are, by the orders on their pods, and answer who shows the key
that stands there, each at a loopback address of its own. A line ``faults`` in the input makes half
of them no good, ``honest`` mends them; each line is answered with one of JSON: what was answered
since the line before. Ends with the input.
"""

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import uvloop
from tests.perf.install import RELEASE
from tests.perf.signals.answers import NodeAnswers
from tests.perf.signals.faults import SLOW_SECONDS, Fault, faults_of, garbage
from tests.perf.signals.nodes import DEVICE_MIB, agent_ip, agent_name, uuids

from gpu_scheduler.api.names import COMPONENT_AGENT, LABEL_COMPONENT, ORDERS
from gpu_scheduler.api.orders import parse
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.kubeconfig import from_kubeconfig
from gpu_scheduler.kube.objects import Meta
from gpu_scheduler.kube.paths import core
from gpu_scheduler.kube.reflector import Reflector, WatchOptions
from gpu_scheduler.usage.key import may_ask

READY = "ready"


class _Pod(msgspec.Struct, frozen=True, gc=False):
    metadata: Meta = Meta()


@dataclass(slots=True)
class _Agent:
    """One agent: what it says, and to whom."""

    answers: NodeAnswers
    random: Random
    fault: Fault = Fault.NONE
    digest: str = ""
    orders: str = ""
    wrong: int = 0  # answers that were nonsense


@dataclass(slots=True)
class Agents:
    """All of them; a sink for their pods."""

    agents: dict[str, _Agent]  # by name of the pod
    began: float
    counts: Counter[str] = field(default_factory=Counter)

    def now(self) -> float:
        """Seconds since the clock began, which whoever started this knows."""
        return time.monotonic() - self.began

    def changed(self, obj: _Pod) -> None:
        """See ``EventHandler``."""
        agent = self.agents.get(obj.metadata.name)
        text = obj.metadata.annotations.get(ORDERS, "")
        if agent is None or not text or text == agent.orders:
            return
        orders, agent.orders = parse(text), text
        agent.digest = orders.usage_digest
        agent.answers.told(orders, self.now())

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """See ``EventHandler``."""

    def replaced(self) -> None:
        """See ``EventHandler``."""

    def command(self, line: str) -> str:
        """What is said to a line of the input."""
        wanted = faults_of(len(self.agents)) if line == "faults" else [Fault.NONE]
        for number, agent in enumerate(self.agents.values()):
            agent.fault = wanted[number % len(wanted)]
        told, self.counts = dict(self.counts), Counter()
        shares = sum(len(agent.answers) for agent in self.agents.values())
        return json.dumps({"answers": told, "shares": shares})


class _Connection(asyncio.Protocol):
    """One of the leader's to one agent: a request after the other."""

    def __init__(self, agents: Agents, agent: _Agent) -> None:
        self._agents = agents
        self._agent = agent
        self._head = b""
        self._later: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport: asyncio.Transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._later is not None:
            self._later.cancel()

    def data_received(self, data: bytes) -> None:
        self._head += data
        while b"\r\n\r\n" in self._head:
            head, _, self._head = self._head.partition(b"\r\n\r\n")
            self._asked(head.decode("latin-1"))

    def _asked(self, head: str) -> None:
        agent, counts = self._agent, self._agents.counts
        first, *lines = head.split("\r\n")
        header = next((line[15:] for line in lines if line.startswith("Authorization: ")), "")
        if agent.fault is Fault.SILENT:
            counts[agent.fault] += 1
        elif agent.fault is Fault.GARBAGE:
            counts[agent.fault] += 1
            agent.wrong += 1
            self._send(*garbage(agent.wrong, agent.random))
        elif not may_ask(header, agent.digest):
            counts["refused"] += 1
            self._send("401 Unauthorized", b"")
        else:
            since = int(first.split()[1].rpartition("=")[2])
            body = agent.answers.answer(since, self._agents.now())
            counts[agent.fault] += 1
            counts["bytes"] += len(body)
            if agent.fault is Fault.SLOW:
                self._transport.write(_head("200 OK", body))
                loop = asyncio.get_running_loop()
                self._later = loop.call_later(SLOW_SECONDS, self._transport.write, body)
            else:
                self._send("200 OK", body)

    def _send(self, status: str, body: bytes) -> None:
        self._transport.write(_head(status, body) + body)


def _head(status: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode()


def _listener(agents: Agents, agent: _Agent) -> Callable[[], asyncio.Protocol]:
    return lambda: _Connection(agents, agent)


async def _serve(options: argparse.Namespace) -> None:
    made = {
        agent_name(number): _Agent(
            NodeAnswers(uuids(number), DEVICE_MIB, Random(number)), Random(number)
        )
        for number in range(options.agents)
    }
    agents = Agents(made, options.began)
    loop = asyncio.get_running_loop()
    for number, agent in enumerate(made.values()):
        await loop.create_server(_listener(agents, agent), agent_ip(number), options.port)
    connection = from_kubeconfig(Path(options.kubeconfig))
    selector = WatchOptions(label_selector=f"{LABEL_COMPONENT}={COMPONENT_AGENT}")
    async with Client(connection, user_agent="bench-signals-agents") as client:
        reflector = Reflector(client, core("pods", RELEASE), _Pod, agents, selector)
        following = asyncio.create_task(reflector.run())
        await reflector.synced.wait()
        print(READY, flush=True)  # noqa: T201
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(agents.command(line.strip()), flush=True)  # noqa: T201
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


def main() -> None:
    """Answer until the input ends."""
    parser = argparse.ArgumentParser(prog="python -m tests.perf.signals.agents")
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--agents", type=int, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--began", type=float, required=True, help="monotonic seconds")
    uvloop.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
