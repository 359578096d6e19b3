"""What may happen to a cluster between two pictures, as news of one thing at a time."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from tests.unit.dashboard.stage import Stage
from tests.unit.state.builders import gpujob_body, half, make_job, make_node, make_pod, make_project
from tests.unit.sweeps.runtime.cases import RANDOM as SEARCH

from gpu_scheduler.api import names
from gpu_scheduler.core.model.decision import Reason, Wait
from gpu_scheduler.core.model.request import ProjectName
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.runtime.common.last_plan import WaitsByJob
from gpu_scheduler.state.nodes.devices import NodeDevice
from gpu_scheduler.usage.answer import AgentUsage, DeviceNow, ShareUse

NODES, SPACES, JOBS, PODS = ("a", "b"), ("team-a", "team-b"), range(3), range(2)
_PHASES = ("Pending", "Running", "Suspended", "Succeeded", "Failed")
_STAMPS = ("2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z")


class RandomNews:
    """Happens to a stage."""

    def __init__(self, stage: Stage, random: Random) -> None:
        self._stage = stage
        self._state = stage.state
        self._random = random
        self._version = 1
        self._wall = 0.0
        self._look = 0
        self._kinds: tuple[Callable[[], None], ...] = (
            self.gpujob, self.gpujob, self.status, self.status, self.shown, self.gpujob_gone,
            self.job, self.job_gone, self.pod, self.pod, self.pod, self.pod, self.pod_gone,
            self.node, self.node_gone, self.report, self.report_gone, self.silent,
            self.project, self.project_gone, self.answer, self.answer, self.answer,
            self.forgotten,
            self.long_silence, self.advice, self.plan, self.pieces, self.clock_is_set,
            self.accepted,
        )  # fmt: skip

    def happens(self) -> None:
        """One of them."""
        self._version += 1
        self._random.choice(self._kinds)()

    def _one(self) -> tuple[str, str]:
        return self._random.choice(SPACES), f"job-{self._random.choice(JOBS)}"

    def _known(self) -> Any:
        known = tuple(self._state.gpujobs.values())
        return self._random.choice(known) if known else None

    def gpujob(self) -> None:
        """New, of another generation, or another one of that name."""
        namespace, name = self._one()
        spec: dict[str, Any] = {"gpu": self._random.choice((0.25, 0.5)), "parallelism": 2}
        if self._random.random() < 0.2:
            spec |= {"sweep": SEARCH, "completions": 4}
        self._stage.resources.gpujob(
            gpujob_body(
                name,
                namespace=namespace,
                uid=f"{namespace}/{name}/{self._random.choice('xxxy')}",
                generation=self._version,
                version=self._version,
                created=self._random.choice(_STAMPS),
                **spec,
            )
        )

    def status(self) -> None:
        """We said something of it."""
        job = self._known()
        if job is None:
            return
        phase, reason = self._random.choice(_PHASES), self._random.choice(tuple(Reason))
        condition = {
            "type": self._random.choice(("Placed", "Complete", "Failed")),
            "status": self._random.choice(("True", "False")),
            "lastTransitionTime": self._random.choice(_STAMPS),
        }
        job.status = {
            "phase": phase,
            "reason": str(reason),
            "message": f"said {self._version}",
            "queuePosition": self._random.choice((None, 1, 2, "x")),
            "pods": self._random.choice(({}, {"pending": 1, "running": 1}, {"pending": "many"})),
            "conditions": [condition],
        }

    def shown(self) -> None:
        """Its status arrives, or it is being deleted: another record, with the same to say."""
        job = self._known()
        if job is not None:
            self._state.gpujob_changed(replace(job, shown=job.status, deleting=not job.deleting))

    def accepted(self) -> None:
        """Pods of it are planned before they exist, or not any more."""
        job = self._known()
        if job is not None:
            self._state.accept(job, self._random.choice((None, {"": make_pod()})))

    def gpujob_gone(self) -> None:
        """It is deleted."""
        job = self._known()
        if job is not None:
            self._stage.resources.gpujob_gone(job.namespace, job.name, job.uid)

    def job(self) -> None:
        """Its Job, or one of an earlier GPUJob of that name."""
        namespace, name = self._one()
        key = next((k for k in self._state.gpujobs if k == f"{namespace}/{name}"), None)
        uid = self._state.gpujobs[key].uid if key is not None else f"{namespace}/{name}/x"
        self._state.job_changed(
            make_job(
                name,
                uid=f"{namespace}/{name}/job",
                owner_uid=self._random.choice((uid, uid, f"{namespace}/{name}/y")),
                namespace=namespace,
                version=self._version,
                parallelism=2,
                completions=2,
                active=self._random.randint(0, 2),
            )
        )

    def job_gone(self) -> None:
        """It is deleted."""
        namespace, name = self._one()
        self._state.job_gone(f"{namespace}/{name}/job")

    def pod(self) -> None:
        """One of a GPUJob, of a Deployment or of nobody: waits, runs somewhere or has ended."""
        namespace, name = self._one()
        pod = self._random.choice(PODS)
        kind = self._random.choice(("job", "job", "share", "share", "cpu"))
        asked = {names.ASKED: f"0:{names.ASK_GPU}=0.5"} if kind == "share" else {}
        node = self._random.choice(("a", "a", "b", "gone", ""))
        phase = self._random.choice(("Pending", "Running", "Running", "Succeeded"))
        milli = self._random.choice((500, 500, 1000))
        self._state.pod_changed(
            make_pod(
                f"{name}-{kind}-{pod}",
                uid=f"{namespace}/{name}-{kind}-{pod}",
                namespace=namespace,
                version=self._version,
                job=f"{namespace}/{name}/job" if kind == "job" else None,
                node=node,
                devices=half(self._random.choice("0017"), milli) if node and kind != "cpu" else (),
                phase=phase if node else "Pending",
                annotations_=asked,
                created=self._random.choice(_STAMPS),
            )
        )

    def pod_gone(self) -> None:
        """It is deleted."""
        known = tuple(self._state.pods.known)
        if known:
            uid = self._random.choice(known)
            self._state.pod_gone(uid)

    def node(self) -> None:
        """New or changed."""
        self._state.nodes.changed(
            make_node(
                self._random.choice(NODES),
                self._random.randint(1, 3),
                cordoned=self._random.random() < 0.2,
                cpu=self._random.choice(("64", "32")),
                labels={"topology.kubernetes.io/zone": self._random.choice("xy")},
            )
        )

    def node_gone(self) -> None:
        """It is deleted; pods on it may stay."""
        self._state.nodes.gone(self._random.choice(NODES))

    def report(self) -> None:
        """Its agent lists devices, some of them ill."""
        found = tuple(
            NodeDevice(f"GPU-{n}", n, "A100", 40960, healthy=self._random.random() < 0.8)
            for n in range(self._random.randint(1, 3))
        )
        self._state.nodes.reported(self._random.choice(NODES), found, {})

    def report_gone(self) -> None:
        """Its GPUNode is deleted."""
        self._state.nodes.report_gone(self._random.choice(NODES))

    def silent(self) -> None:
        """Its agent renews its Lease no more, or does again."""
        why = self._random.choice(("", "has an agent that is not heard of"))
        self._state.nodes.agent_silent(self._random.choice(NODES), why)

    def project(self) -> None:
        """New, with another quota, or with other namespaces."""
        spaces = self._random.sample(SPACES, self._random.randint(1, 2))
        name, quota = self._random.choice(("vision", "speech")), self._random.choice((500, 2000))
        self._state.project_changed(
            make_project(name, *spaces, quota_milli=quota, generation=self._version)
        )

    def project_gone(self) -> None:
        """It is deleted."""
        self._state.project_gone(ProjectName(self._random.choice(("vision", "speech"))))

    def answer(self) -> None:
        """An agent says what the pods of its node do."""
        node = self._random.choice(NODES)
        shares = []
        for pod in self._state.pods.known.values():
            if pod.node != node or pod.allocation is None or self._random.random() < 0.2:
                continue
            share = ShareUse(
                device=self._state.ledger.resolved(node, pod.allocation.devices)[0].device,
                pod_uid=pod.uid,
                container="main",
                work="w",
                share=0.5,
                busy=self._random.choice((None, 0.0, 0.0, 0.3)),
                idle_seconds=self._random.choice((None, 0, 7200, 7200)),
                memory_mib=self._random.choice((None, 100.0)),
                windows=(),
            )
            shares.append(share)
        devices = tuple(DeviceNow(uuid=str(n), busy=self._random.random()) for n in range(2))
        self._look += 1
        said = AgentUsage(look=self._look, devices=devices, shares=tuple(shares))
        self._stage.seen.take(node, said, self._stage.seconds)

    def forgotten(self) -> None:
        """An agent's pod is gone."""
        self._stage.seen.forget(self._random.choice(NODES))

    def long_silence(self) -> None:
        """Nobody says anything for a while."""
        self._stage.seconds += self._random.choice((20, 60))

    def advice(self) -> None:
        """A minute's look has found something else to say."""
        keys = [job.uid for job in self._state.gpujobs.values()]
        rules = ("OVERSIZED", "IDLE")
        self._stage.minute.headlines = {
            key: self._random.choice(rules) for key in keys if self._random.random() < 0.5
        }

    def plan(self) -> None:
        """A plan has told what waits something else."""
        reason = self._random.choice((Reason.WAITING_FOR_QUOTA, Reason.INVALID))
        keys = [*self._state.groups.records, *self._state.gpujobs]
        own = {key: Wait(key, reason, f"plan {self._version % 3}", 1) for key in keys}
        self._stage.common.plan.waits = WaitsByJob(self._state, own=own)

    def pieces(self) -> None:
        """What waits is smaller, or larger, than before; looked at every ten seconds."""
        self._stage.seconds += 10

    def clock_is_set(self) -> None:
        """The wall clock is, by an hour."""
        self._wall += 3600
        monotonic, ahead = self._stage.monotonic, 1_700_000_000 + self._wall
        clock = Clock(monotonic, lambda: ahead + monotonic())
        object.__setattr__(self._stage.common, "clock", clock)
