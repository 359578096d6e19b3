"""An agent that says what a test has it say: a pod on a fake node, and a server on this machine."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tests.api.agent import NODE
from tests.api.caller import Caller
from tests.api.replica import LEASE_NAMESPACE
from tests.api.tenant import Json, until

from gpu_scheduler.api.orders import Orders, parse
from gpu_scheduler.usage.answer import AgentUsage, DeviceNow, EndedUse, ShareUse, Totals, dumps
from gpu_scheduler.usage.key import may_ask

PODS = f"/api/v1/namespaces/{LEASE_NAMESPACE}/pods"
NAME = "usage-agent"


@dataclass(slots=True)
class UsageAgent:
    """What it answers, and who asked."""

    admin: Caller
    look: int = 0
    shares: dict[str, ShareUse] = field(default_factory=dict)  # by pod
    devices: dict[str, DeviceNow] = field(default_factory=dict)  # by UUID
    ended: dict[str, Totals] = field(default_factory=dict)  # by work
    asked: list[int] = field(default_factory=list)  # since which look
    refused: list[str] = field(default_factory=list)  # what they showed

    def orders(self) -> Orders | None:
        """As the operator told it last."""
        notes = self.admin.get(f"{PODS}/{NAME}").body["metadata"].get("annotations", {})
        text = notes.get("gpu-scheduler.io/orders")
        return parse(text) if text else None

    def answer(self, since: int) -> bytes:
        self.look += 1
        self.asked.append(since)
        ended = tuple(EndedUse(work=work, totals=sums) for work, sums in self.ended.items())
        return dumps(
            AgentUsage(
                look=self.look,
                devices=tuple(self.devices.values()),
                shares=tuple(self.shares.values()),
                ended=ended,
            )
        )

    def runs(self, pod: Json, work: str, busy: float, seconds: int, mib: int = 1000) -> None:
        """A pod of ours has done so for so long."""
        uid = pod["metadata"]["uid"]
        buckets = [0] * 10
        buckets[min(int(busy * 10), 9)] = seconds
        self.shares[uid] = ShareUse(
            device="0",
            pod_uid=uid,
            container="main",
            work=work,
            share=0.5,
            cap_mib=20_000,
            device_mib=40_000,
            age_seconds=seconds,
            idle_seconds=0 if busy else seconds,
            ever_busy=busy > 0,
            busy=busy,
            memory_mib=float(mib),
            cpu_milli=1500.0,
            windows=(),
            totals=Totals(
                containers=1,
                seconds=seconds,
                busy_seconds=busy * seconds,
                held_gpu_seconds=0.5 * seconds,
                used_gpu_seconds=min(busy, 0.5) * seconds,
                buckets=tuple(buckets),
                peak_mib=mib,
            ),
        )

    def ends(self, uid: str) -> None:
        share = self.shares.pop(uid)
        self.ended[share.work] = self.ended.get(share.work, Totals()) + share.totals


@contextmanager
def usage_agent(
    admin: Caller,
    port: int,
    node: str = NODE,
    knows: Callable[[UsageAgent], None] = lambda agent: None,
) -> Iterator[UsageAgent]:
    """One that runs as long as this lasts.

    Args:
        admin: who makes it.
        port: that the operator asks.
        node: where it is.
        knows: tells it what it is to say when it is asked first; the second time is 10 s later.
    """
    agent = UsageAgent(admin)
    knows(agent)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told = agent.orders()
            header = self.headers.get("Authorization", "")
            if told is None or not may_ask(header, told.usage_digest):
                agent.refused.append(header)
                self.send_response(401)
                self.end_headers()
                return
            since = parse_qs(urlsplit(self.path).query).get("since", ["0"])[0]
            body = agent.answer(int(since))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    body = {
        "metadata": {"name": NAME, "labels": {"gpu-scheduler.io/component": "agent"}},
        "spec": {"nodeName": node, "containers": [{"name": "agent", "image": "x"}]},
    }
    try:
        assert admin.create(PODS, body).ok
        until(lambda: _phase(admin) == "Running", "the agent's pod runs")
        container = {
            "name": "agent",
            "image": "x",
            "imageID": "x",
            "ready": True,
            "restartCount": 0,
            "containerID": "containerd://1",
        }
        here = {
            "podIP": "127.0.0.1",
            "podIPs": [{"ip": "127.0.0.1"}],
            "containerStatuses": [container],
        }
        answer = admin.patch(f"{PODS}/{NAME}/status", {"status": here})
        assert answer.ok, answer
        yield agent
    finally:
        admin.send("DELETE", f"{PODS}/{NAME}?gracePeriodSeconds=0")
        server.shutdown()
        server.server_close()


def _phase(admin: Caller) -> str:
    return str(admin.get(f"{PODS}/{NAME}").body.get("status", {}).get("phase"))
