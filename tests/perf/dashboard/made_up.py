"""A leader's state at size, in which something changes each second; nothing is sent to anybody.

The containers of ``bench_usage``, each of a GPUJob of its own in a project of its namespace, and
jobs that wait beside them. In a second a tenth of the agents answer, statuses are written, and jobs
end and come.
"""

from collections import deque
from itertools import islice
from types import SimpleNamespace
from typing import Any

from tests.perf.bench_usage import Cluster
from tests.unit.state.builders import gpujob_body, half, make_job, make_pod, make_project

from gpu_scheduler.core.model.decision import Reason, Wait
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.dashboard.reading.picture_maker import PictureMaker
from gpu_scheduler.runtime.common.last_plan import WaitsByJob
from gpu_scheduler.runtime.informers.custom_resources import CustomResources
from gpu_scheduler.state.jobs.job import GPUJobRecord, job_key
from gpu_scheduler.usage.answer import parse

_ANSWER_ROUND = 10  # seconds in which all agents answer once
_STAMP = "2026-01-01T00:00:00Z"


class MadeUpCluster:
    """Knows what a leader knows, and makes pictures of it."""

    def __init__(self, nodes: int, containers: int, jobs: int, namespaces: int, seed: int) -> None:
        """As many jobs as ``jobs``; those without a container wait."""
        self.cluster = Cluster(nodes, containers, namespaces, seed)
        self.state = self.cluster.common.state
        self._resources = CustomResources(self.state, changed=lambda key: None)
        self._namespaces = namespaces
        for number in range(namespaces):
            self.state.project_changed(make_project(f"team-{number}"))
        for number in range(containers):
            self._status(_key(number, namespaces), _running(number))
        for number in range(containers, jobs):
            self._waits(number)
        self._runs = deque(range(containers))
        self._next = jobs
        self._turn = 0
        self._answers: list[tuple[str, bytes]] = []
        self._planned()
        leader: Any = SimpleNamespace(
            common=self.cluster.common, state=self.state, usage=self.cluster.parts
        )
        self.maker = PictureMaker(leader)

    def second(self, statuses: int, turns: int) -> None:
        """One goes by: so many statuses are written, and so many jobs end and come."""
        if not self._answers:
            before = self.cluster.seconds
            self._answers = self.cluster.answers()
            self.cluster.seconds = before
            self._part = -(-len(self._answers) // _ANSWER_ROUND)
        self.cluster.seconds += 1
        for node, body in self._answers[: self._part]:
            self.cluster.parts.seen.take(node, parse(body), self.cluster.seconds)
        del self._answers[: self._part]
        keys = tuple(self.state.gpujobs)
        for _ in range(statuses):
            self._turn = (self._turn + 7919) % len(keys)
            job = self.state.gpujobs[keys[self._turn]]
            job.status = {**job.status, "queuePosition": self._turn}
        for _ in range(turns):
            self._turns_over()

    def _turns_over(self) -> None:
        """One that runs ends, and its room goes to one that comes."""
        old, new = self._runs.popleft(), self._next
        self._next += 1
        self._runs.append(new)
        pod = self.state.pods.known.pop(_uid(old))
        charge = self.state.ledger.charges[pod.uid]
        self.state.pod_gone(pod.uid)
        self._status(_key(old, self._namespaces), {"phase": "Succeeded", "pods": {"succeeded": 1}})
        self._gpujob(new)
        self._status(_key(new, self._namespaces), _running(new))
        (allocated,) = charge.devices
        self._pod(new, charge.node, allocated.device)

    def _pod(self, number: int, node: str, device: str) -> None:
        namespace = f"team-{number % self._namespaces}"
        own = make_job(
            f"train-{number}",
            uid=f"job-{number}",
            owner_uid=f"gpujob-{number}",
            namespace=namespace,
        )
        self.state.job_changed(own)
        made = make_pod(
            f"train-{number}-0",
            uid=_uid(number),
            namespace=namespace,
            job=own.metadata.uid,
            node=node,
            devices=half(device, 250),
            phase="Running",
        )
        self.state.pod_changed(made)

    def _waits(self, number: int) -> None:
        self._gpujob(number)
        self._status(_key(number, self._namespaces), _waiting(number))

    def _gpujob(self, number: int) -> None:
        namespace = f"team-{number % self._namespaces}"
        self._resources.gpujob(
            gpujob_body(f"train-{number}", uid=f"gpujob-{number}", namespace=namespace, gpu=0.25)
        )

    def _status(self, key: JobKey, status: dict[str, Any]) -> None:
        self._job(key).status = status

    def _job(self, key: JobKey) -> GPUJobRecord:
        return self.state.gpujobs[key]

    def _planned(self) -> None:
        waits = {
            key: Wait(key, Reason.WAITING_FOR_RESOURCES, "no node has room", 1)
            for key, job in self.state.gpujobs.items()
            if job.status["phase"] == "Pending"
        }
        self.cluster.common.plan.waits = WaitsByJob(self.state, own=waits)

    def one_that_runs(self) -> GPUJobRecord:
        """A job of which there is a page."""
        (number,) = islice(self._runs, 1)
        return self._job(_key(number, self._namespaces))


def _uid(number: int) -> Any:
    return f"pod-{number}"


def _key(number: int, namespaces: int) -> JobKey:
    return job_key(f"team-{number % namespaces}", f"train-{number}")


def _running(number: int) -> dict[str, Any]:
    placed = {"type": "Placed", "status": "True", "reason": "Placed", "lastTransitionTime": _STAMP}
    return {
        "phase": "Running",
        "pods": {"pending": 0, "running": 1, "succeeded": 0, "failed": 0},
        "node": f"node-{number % 125}",
        "conditions": [placed],
    }


def _waiting(number: int) -> dict[str, Any]:
    said = "no node has room: 125 nodes have no GPU with 0.25 free"
    condition = {
        "type": "Placed",
        "status": "False",
        "reason": "WaitingForResources",
        "message": said,
        "lastTransitionTime": _STAMP,
    }
    return {
        "phase": "Pending",
        "reason": "WaitingForResources",
        "message": said,
        "queuePosition": number,
        "pods": {"pending": 1, "running": 0, "succeeded": 0, "failed": 0},
        "conditions": [condition],
    }
