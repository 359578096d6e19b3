"""What tenants do all day: jobs of every kind, changed, suspended and deleted at random.

Each job knows how it has to end, so that at the end one can say which were lost, and which failures
were charged that nobody had.
"""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.api.caller import Answer
from tests.api.tenant import GROUP, Json, runs, template
from tests.soak.site import Site

TEAMS = ("red", "green", "blue", "hostile")
HONEST = TEAMS[:3]
ACCOUNT = "runner"
"""A ServiceAccount that comes and goes; some jobs run as it."""
COMPAT = "hostile-compat"
"""A second namespace of the hostile team, where pods may ask with another scheduler's keys."""
HOSTILE_MILLI = 4000
"""What the hostile team may hold."""
MOST_JOBS = 120  # that have not ended
_KEPT_SECONDS = 300  # of a job that has ended
_SECONDS_BETWEEN_JOBS = 2.0  # what two cores carry, the whole control plane included
# By labels of namespaces, which only kube-scheduler judges; no pod has the label.
_ANTI_AFFINITY: Json = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "labelSelector": {"matchLabels": {"soak": "x"}},
                "namespaceSelector": {"matchLabels": {"soak": "x"}},
                "topologyKey": "kubernetes.io/hostname",
            }
        ]
    }
}


@dataclass(slots=True)
class Promise:
    """A job and how it ends if all goes well."""

    namespace: str
    name: str
    kind: str
    indexes: int
    fails: int = 0  # indexes that are meant to fail
    deleted: bool = False
    ended: bool = False  # it has said so
    rejected: bool = False  # some of its nodes reject it: the documented race may charge it


class Load:
    """Submits jobs."""

    def __init__(self, site: Site) -> None:
        self._site, self._dice = site, site.dice("load")
        self._number = 0
        self.lock = threading.Lock()
        self.preemption_policy: dict[tuple[str, str], Promise] = {}
        self.unfinished = 0
        """Set by whoever watches the jobs."""

    def create_teams(self) -> None:
        """A namespace and a project for each."""
        for team in TEAMS:
            answer = self._site.admin.create("/api/v1/namespaces", {"metadata": {"name": team}})
            self._site.must(answer, f"namespace {team}")
        self.create_projects()
        self.create_accounts()

    def create_accounts(self) -> None:
        """The ServiceAccount that some jobs run as, where it is not there."""
        for team in HONEST:
            path = f"/api/v1/namespaces/{team}/serviceaccounts"
            answer = self._site.admin.create(path, {"metadata": {"name": ACCOUNT}})
            self._site.must(answer, f"the account of {team}")

    def create_projects(self) -> None:
        """The project of each team, where it is not there."""
        admin = self._site.admin
        for team in TEAMS:
            spec: Json = {"namespaces": [team], "quota": 10, "weight": 1}
            if team == "hostile":
                limit = HOSTILE_MILLI // 1000
                spec = {"namespaces": [team, COMPAT], "quota": 2, "limit": limit}
            body = {
                "apiVersion": "gpu-scheduler.io/v1alpha1",
                "kind": "GPUProject",
                "metadata": {"name": team},
                "spec": spec,
            }
            self._site.must(admin.create(f"{GROUP}/gpuprojects", body), f"project {team}")

    def all_deleted(self) -> None:
        """Whatever jobs there are go, and nobody has them made again."""
        with self.lock:
            for promise in self.preemption_policy.values():
                promise.deleted = promise.deleted or not promise.ended

    def submit(self) -> None:
        """One more job, unless there are enough."""
        if self.unfinished >= MOST_JOBS:
            return self._site.rest(0.5)
        dice = self._dice
        kind, promise, spec = self._job()
        body = {
            "apiVersion": "gpu-scheduler.io/v1alpha1",
            "kind": "GPUJob",
            "metadata": {"name": promise.name, "namespace": promise.namespace},
            "spec": spec,
        }
        with self.lock:
            self.preemption_policy[promise.namespace, promise.name] = promise
        answer = self._create(f"{GROUP}/namespaces/{promise.namespace}/gpujobs", body)
        self._site.must(answer, f"{kind}: {json.dumps(spec)[:300]}")
        if not answer.ok and answer.status != 409:
            with self.lock:
                del self.preemption_policy[promise.namespace, promise.name]
        return self._site.rest(dice.expovariate(1 / _SECONDS_BETWEEN_JOBS))

    def _create(self, path: str, body: Json) -> Answer:
        """Whether it was made is not known without an answer: it is asked again until there is."""
        while True:
            try:
                return self._site.admin.create(path, body)
            except Exception:
                if self._site.stop.is_set():
                    raise
                self._site.rest(1.0)

    def _job(self) -> tuple[str, Promise, Json]:
        dice = self._dice
        self._number += 1
        kind = dice.choice(
            ("share", "share", "share", "memory", "whole", "gang", "roles", "sweep", "gate")
            + ("failing", "rejected", "slow to go", "interactive", "account")
        )
        promise = Promise(dice.choice(HONEST), f"{kind.split()[0]}-{self._number}", kind, 1)
        notes: dict[str, str] = {}
        pod: Json = {}
        spec: Json = {"retries": 0, "priority": dice.choice((10, 50, 50, 90))}
        spec["ttlSecondsAfterFinished"] = _KEPT_SECONDS
        count = dice.randint(1, 6)
        spec["gpu"] = dice.choice((0.1, 0.125, 0.2, 0.25, 0.3, 0.5, 0.7))
        if kind == "memory":
            del spec["gpu"]
            spec["gpuMemory"] = dice.choice(("9Gi", "30Gi", "79Gi"))
        elif kind == "whole":
            spec["gpu"] = dice.choice((1, 1, 2, 4))
        elif kind == "gang":
            spec |= {"gang": True, "gpu": dice.choice((1, 2))}
        elif kind == "roles":
            del spec["gpu"]
            spec["roles"] = [
                {"name": "main", "gpu": 1},
                {"name": "worker", "replicas": count, "gpu": dice.choice((0.5, 1))},
            ]
            spec["distinctGpus"] = False
            count += 1
        elif kind == "sweep":
            spec["sweep"] = {
                "algorithm": "random",
                "seed": 7,
                "objective": {"metric": "lr", "goal": "minimize"},
                "parameters": {"lr": {"logUniform": [1e-5, 0.1]}},
            }
            spec["completions"] = count = dice.randint(4, 20)
            spec["parallelism"] = dice.randint(1, 5)
            notes["termination_message_of"] = "gpu-scheduler.io/hparams"
        elif kind == "gate":
            pod["affinity"] = _ANTI_AFFINITY
        elif kind == "account":
            pod["serviceAccountName"] = ACCOUNT
        elif kind == "failing":
            notes["fail_indexes"] = "0"
            promise.fails = 1
        elif kind == "rejected":
            promise.rejected = True
            notes["reject_on"] = ",".join(f"gpu-{dice.randrange(6):04d}" for _ in range(2))
        elif kind == "slow to go":
            notes["termination_seconds"] = str(dice.randint(3, 20))
        elif kind == "interactive":
            spec["type"] = "interactive"
            spec["gpu"] = 0.5
        if "roles" not in spec and "sweep" not in spec:
            spec["parallelism"] = count
            if kind != "gang" and dice.random() < 0.3:
                spec["completions"] = count = count + dice.randint(1, 6)
        promise.indexes = count
        spec["template"] = template(runs(dice.randint(1, 15), **notes), **pod)
        return kind, promise, spec

    def meddle(self) -> None:
        """Change, suspend or delete something."""
        dice, admin = self._dice, self._site.admin
        with self.lock:
            known = [p for p in self.preemption_policy.values() if not p.deleted]
        if known:
            promise = dice.choice(known[-MOST_JOBS:])
            path = f"{GROUP}/namespaces/{promise.namespace}/gpujobs/{promise.name}"
            what = dice.choice(("delete", "suspend", "suspend", "priority", "quota"))
            self._site.count(f"user {what}")
            if what == "delete":
                promise.deleted = True
                admin.send("DELETE", path)
            elif what == "suspend":
                admin.patch(path, {"spec": {"suspend": True}})
                self._site.rest(dice.uniform(0.1, 5))
                self.resume(path)
            elif what == "priority":
                admin.patch(path, {"spec": {"priority": dice.randint(0, 100)}})
            else:
                team = dice.choice(HONEST)
                spec = {"quota": dice.choice((8, 10, 12)), "weight": dice.choice((1, 2))}
                admin.patch(f"{GROUP}/gpuprojects/{team}", {"spec": spec})
        self._site.rest(dice.uniform(1, 5))

    def resume(self, path: str) -> None:
        """Surely: a job that stays suspended would count as lost."""
        while True:
            try:
                answer = self._site.admin.patch(path, {"spec": {"suspend": None}})
            except Exception:
                time.sleep(0.5)
                continue
            if answer.ok or answer.status in (404, 409, 422):
                return
            time.sleep(0.5)


def finished(status: Mapping[str, Any]) -> bool:
    """Whether a GPUJob has ended."""
    return status.get("phase") in ("Succeeded", "Failed")
