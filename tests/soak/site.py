"""Where a soak takes place: a control plane with fake nodes, the chart, and two replicas.

The replicas are processes of this machine with the chart's own service account; whoever does
something to the cluster, and whoever checks it, speaks to the API server directly. A replica that
has ended is started again, as a kubelet would.
"""

import random
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

from tests.api.caller import Answer, Caller
from tests.api.replica import Replica
from tests.api.tenant import Json
from tests.perf.procfs import memory

from cluster import Running
from cluster.errors import ClusterError

LEASE = "/apis/coordination.k8s.io/v1/namespaces/gpu-scheduler/leases/gpu-scheduler-leader"
AWAY = (
    OSError,
    HTTPException,
    ValueError,
    ClusterError,
)  # what a request ends in while the server is away
_RESTART_SECONDS = 0.5
_GOING = "create not allowed while custom resource definition is terminating"


def say(text: str) -> None:
    """One line of progress."""
    print(f"{time.strftime('%H:%M:%S')} soak: {text}", file=sys.stderr, flush=True)  # noqa: T201


@dataclass(slots=True)
class Times:
    """Spans of time, told by whoever begins and ends them."""

    spans: list[tuple[float, float]] = field(default_factory=list)
    since: float | None = None

    def begin(self) -> None:
        """It is so from now on."""
        if self.since is None:
            self.since = time.monotonic()

    def end(self) -> None:
        """It is so no more."""
        if self.since is not None:
            self.spans.append((self.since, time.monotonic()))
            self.since = None

    def epoch(self) -> list[tuple[float, float]]:
        """The spans, in epoch seconds."""
        ago = time.time() - time.monotonic()
        return [(a + ago, b + ago) for a, b in self.spans]

    def seconds(self) -> float:
        """How long in all."""
        open_since = 0.0 if self.since is None else time.monotonic() - self.since
        return sum(b - a for a, b in self.spans) + open_since

    def longest(self) -> float:
        """The longest."""
        return max((b - a for a, b in self.spans), default=0.0)


@dataclass(slots=True)
class Site:
    """What all actors share."""

    running: Running
    seed: int
    admin: Caller
    editor: Caller
    enough: threading.Event = field(default_factory=threading.Event)
    """Nobody does anything to the cluster any more."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Nobody looks any more either."""
    disturbed: Times = field(default_factory=Times)
    """The API server does not answer the operator, or not in time."""
    leaderless: Times = field(default_factory=Times)
    counts: dict[str, int] = field(default_factory=dict)
    """Faults and hostile objects, by kind."""
    failures: list[str] = field(default_factory=list)
    """Actors of the soak itself that broke: then its result is worth nothing."""

    def dice(self, who: str) -> random.Random:
        """Random numbers of one actor, the same for the same seed."""
        return random.Random(f"{self.seed}-{who}")

    def count(self, kind: str) -> None:
        """One more of a kind."""
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def rest(self, seconds: float) -> None:
        """Wait, but not beyond the end of what is going on."""
        (self.stop if self.enough.is_set() else self.enough).wait(seconds)

    def act(self, name: str, step: Callable[[], None], until: threading.Event) -> threading.Thread:
        """Repeat ``step`` in a thread; an API server that is away is no failure."""

        def run() -> None:
            while not until.is_set():
                try:
                    step()
                except AWAY:
                    self.rest(0.3)
                except Exception as error:
                    self.failures.append(f"{name}: {error!r}")
                    raise

        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread

    def must(self, answer: Answer, what: str) -> None:
        """Note an answer that the soak itself did not expect."""
        if _GOING in answer.message:
            return  # one of the administrators deletes the kind; then it is 404
        if not answer.ok and answer.status not in (404, 409, 429) and answer.status < 500:
            self.failures.append(f"{what}: {answer.status} {answer.message[:300]}")


def let_edit(admin: Caller, namespace: str, subject: Json) -> None:
    """Bind Kubernetes' role ``edit`` in a namespace."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    meta = {"name": f"edit-{subject['name']}"}
    body = {"metadata": meta, "roleRef": role, "subjects": [subject]}
    answer = admin.create(
        f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings", body
    )
    assert answer.ok, answer


class Replicas:
    """Two replicas, and who of them leads."""

    def __init__(
        self,
        site: Site,
        kubeconfig: Path,
        settings: dict[str, str],
        start: Callable[[Replica], Replica] = Replica.start,
    ) -> None:
        """``start``: starts one, for who has more to do with it than that."""
        self._site, self._kubeconfig, self._settings = site, kubeconfig, settings
        self._start_one = start
        self._lock = threading.Lock()
        self._started = 0
        self.ended: list[tuple[str, int]] = []
        """Replicas that ended, with their exit codes."""
        self.all: list[Replica] = []
        self.stopped: set[str] = set()
        """Names of those that are stopped (SIGSTOP) now, or were told to end."""
        self.holder = ""
        self._before = ""  # when the Lease was last renewed before its holder was stopped
        self._again_at: dict[str, float] = {}  # by replica that has ended: monotonic
        for _ in range(2):
            self.all.append(self._start())

    def _start(self) -> Replica:
        self._started += 1
        name = f"replica-{self._started}"
        replica = Replica(
            self._site.running,
            name,
            dict(self._settings),
            program=True,  # its memory is measured, and a fork has that of its server
            kubeconfig=self._kubeconfig,
        )
        return self._start_one(replica)

    def watch_over(self) -> None:
        """Note whether somebody leads; start again what ended a while ago."""
        lease = self._site.admin.get(LEASE)
        spec = lease.body.get("spec", {}) if lease.ok else {}
        self.holder = str(spec.get("holderIdentity") or "").rpartition("_")[0]
        renewed = str(spec.get("renewTime"))
        leader = self.leader()
        if leader is not None and leader.name in self.stopped:
            self._before = renewed  # it leads again if it renews the Lease, and not before
        if leader is not None and renewed != self._before and leader.synced():
            self._site.leaderless.end()
        else:
            self._site.leaderless.begin()
        with self._lock:
            for number, replica in enumerate(self.all):
                if replica.alive():
                    continue
                if replica.name not in self._again_at:
                    killed = replica.process is None
                    self.ended.append((replica.name, -9 if killed else replica.code()))
                    self._again_at[replica.name] = time.monotonic() + _RESTART_SECONDS
                elif time.monotonic() >= self._again_at[replica.name]:
                    self.all[number] = self._start()
        self._site.rest(0.2)

    def leader(self) -> Replica | None:
        """Who holds the Lease, if it is one that lives."""
        return next((r for r in self.all if r.name == self.holder and r.alive()), None)

    def standby(self) -> Replica | None:
        """One who does not."""
        return next((r for r in self.all if r.name != self.holder and r.alive()), None)

    def memory_mib(self) -> list[float]:
        """Resident memory of those that live."""
        found = []
        for replica in tuple(self.all):
            if replica.process is not None and replica.alive():
                try:
                    found.append(memory(replica.process.pid).rss_mib)
                except (OSError, KeyError):  # it has just ended
                    continue
        return found

    def end(self) -> None:
        """Kill all that are left; those that are stopped go as well."""
        with self._lock:
            for replica in self.all:
                if replica.alive():
                    replica.kill()
