"""Histories in which somebody sets the wall clocks of a cluster's machines, at random moments.

The machines are the leader's, the API server's and the nodes'; what each of them writes down has
the time of its own clock. Two histories of one seed differ in nothing else, so that everything that
is decided in one of them can be compared with the other. One node's agent is dead: its Lease is of
the future.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import format_datetime
from random import Random
from typing import Any

from tests.unit.generated import controllers
from tests.unit.generated.nodes import USABLE_MIB, node
from tests.unit.generated.ours import metadata
from tests.unit.generated.server import Server, place_of
from tests.unit.generated.sharing import GPUS, NODES, SHORT, Sharing
from tests.unit.generated.stage import EPOCH, ROOT
from tests.unit.generated.values import Obj
from tests.unit.runtime.virtual_loop import clock

from gpu_scheduler.api.names import (
    AGENT_LEASE_PREFIX,
    API_VERSION,
    COMPONENT_AGENT,
    LABEL_COMPONENT,
)
from gpu_scheduler.core.model.decision import Evict
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.kube.times import micro_timestamp, timestamp

STEPS = (61.0, 300.0, 3600.0, 86_400.0, 30 * 365 * 86_400.0)
DEAD = "dead"
OFTEN = 0.5  # how likely a clock is set at one of the moments at which others act
WAITS = {"guarantee_seconds": 10.0, "patience_seconds": 5.0}  # long enough to be hit


class Stepping(Clock):
    """As if nothing had been done about it: the time that is counted is that of the wall clock."""

    def now(self) -> float:
        return self._wall()


class ClockSteps(Sharing):
    """One history.

    ``steps``: clocks are set, by others every time; else they go wrong once and stay so. ``api``:
    also that of the API server, as where one machine is all of the cluster; then one leader leads
    to the end. Else leaders change, and find out by its answers what time the API server has.
    """

    def __init__(self, seed: int, *, steps: bool, api: bool) -> None:
        super().__init__(seed)
        self._set, self._steps, self._api = Random(seed), steps, api
        self.ahead = dict.fromkeys(("api", *NODES, DEAD), 0.0)  # seconds
        self.stage.wall_ahead = STEPS[2]
        self.stage.settings = SHORT.model_copy(update=WAITS)
        self.decided: list[tuple[Any, ...]] = []
        server, stage = self.server, self.stage
        server.now = lambda: timestamp(self.at("api"))
        server.now_on = lambda name: timestamp(self.at(name))
        server.date = lambda: format_datetime(self.at("api"), usegmt=True)
        put = server.put

        def stamped(path: str, obj: Obj, **more: Any) -> None:
            if place_of(path).key not in server.objects:
                meta = {**obj["metadata"], "creationTimestamp": server.now()}
                obj = {**obj, "metadata": meta}
                if place_of(path).plural == "gpujobs":
                    obj["spec"] = {**obj["spec"], "ttlSecondsAfterFinished": 15}
            put(path, obj, **more)

        server.put = stamped  # type: ignore[method-assign]
        stage.round = self._round
        self._note_what_is_decided()
        server.put(f"/api/v1/nodes/{DEAD}", node(DEAD, GPUS))
        for name in (*NODES, DEAD):
            self._beat(name)
            server.put(f"{ROOT}/gpunodes/{name}", _gpunode(name))
        if api:
            self._lead_once()

    def at(self, machine: str) -> datetime:
        """What time it is on a machine."""
        return datetime.fromtimestamp(EPOCH + clock_or_zero() + self.ahead[machine], UTC)

    def gpu(self, index: int) -> str:
        """As its agent calls it."""
        return f"GPU-{index}"

    def _lead_once(self) -> None:
        self.server._strikes = lambda *_: False
        lead, led = self.stage.lead, False

        async def once(random: Random) -> None:
            nonlocal led
            if not led:
                led = True
                await lead(random)
                self.ahead["api"] = STEPS[2]  # nothing that the leader sees now has its own time

        self.stage.lead = once  # type: ignore[method-assign]

    def _round(self, server: Server) -> None:
        """Everybody else acts, and clocks are set."""
        if self._steps and self._set.random() < OFTEN:
            machine = self._set.choice(("leader", *sorted(self.ahead), "leader", "leader"))
            ahead = self._set.choice(STEPS) * self._set.choice((1, -1))
            if machine == "leader":
                self.stage.wall_ahead = ahead
            elif machine != "api" or self._api:
                self.ahead[machine] = ahead
        for name in NODES:
            self._beat(name)
        controllers.round_of(server)

    def _beat(self, name: str) -> None:
        """An agent renews its Lease."""
        lease = f"{AGENT_LEASE_PREFIX}{name}"
        at = self.at(name).replace(year=2056) if name == DEAD else self.at(name)
        body = {
            "metadata": {
                **metadata(lease, self.stage.settings.lease_namespace),
                "labels": {LABEL_COMPONENT: COMPONENT_AGENT},
            },
            "spec": {
                "holderIdentity": name,
                "leaseDurationSeconds": 40,
                "renewTime": micro_timestamp(at),
            },
        }
        namespace = self.stage.settings.lease_namespace
        self.server.put(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{lease}", body)

    def _note_what_is_decided(self) -> None:
        server, judge, note = self.server, self.judge, self.decided.append
        gets, may_go, deletes, decides = server.gets, server.may_go, server.deletes, judge.decides
        remove = server.remove

        def now() -> float:
            return round(clock(), 3)

        def got(pod: Obj) -> None:
            name, devices = server.held_by(pod)
            note((now(), "gets", pod["metadata"]["name"], name, tuple(g.device for g in devices)))
            gets(pod)

        def asked(pod: Obj) -> bool:
            note((now(), "goes", pod["metadata"]["name"]))
            return may_go(pod)

        def deleted(pod: Obj) -> None:
            note((now(), "is deleted", pod["metadata"]["name"]))
            deletes(pod)

        def decided(evicts: Iterable[Evict]) -> None:
            for each in evicts:
                note((now(), each.reason, each.pod, each.beneficiary, each.message))
            decides(list(evicts))

        def removed(path: str) -> None:
            if place_of(path).plural == "gpujobs":
                note((now(), "is removed", path))
            remove(path)

        server.gets, server.may_go, server.deletes = got, asked, deleted
        server.remove = removed  # type: ignore[method-assign]
        judge.decides = decided  # type: ignore[method-assign]

    async def play(self) -> None:
        """See ``Sharing``; how the jobs ended is decided, too."""
        await super().play()
        for job in self.server.of(f"{ROOT}/gpujobs"):
            self.decided.append((job["metadata"]["name"], job.get("status", {}).get("phase")))


def clock_or_zero() -> float:
    """Virtual seconds; before they pass, when a history is set up, those at which they begin."""
    try:
        return clock()
    except RuntimeError:
        return 1000.0


def _gpunode(name: str) -> Obj:
    return {
        "apiVersion": API_VERSION,
        "kind": "GPUNode",
        "metadata": metadata(name),
        "status": {
            "devices": [
                {
                    "uuid": f"GPU-{index}",
                    "index": index,
                    "model": "NVIDIA-A100-PCIE-40GB",
                    "usableMiB": USABLE_MIB,
                    "healthy": True,
                }
                for index in range(GPUS)
            ]
        },
    }
