"""Programs that say that they have saved their work, and the answer to each.

A report is one write: the time, by our clock, on the pod that sent it, so that the next leader
knows it as well. What cannot be written is to be said again; nothing is lost by that but what would
be lost anyway. A pod that has to go may say so once more at once: it saves what it has when it is
told to stop. Asked twice: before there is a body who sends it (``refusal``), then with it.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from math import ceil

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.jobs.checkpoint import saved
from gpu_scheduler.jobs.write import send
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.failures import Failures
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.kube.times import micro_timestamp
from gpu_scheduler.runtime.reports.answer import Answer, refusal
from gpu_scheduler.runtime.reports.report_tokens import ReportJudge, ReportTokens, Sender
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.pods.pod import PodRecord, Stage

log = logging.getLogger(__name__)

EVERY_SECONDS = 10.0  # a pod's reports, each of which is a write
AGAIN_SECONDS = 1.0  # after a write that failed, at first
_MOST_AGAIN_SECONDS = 60.0
_WRITE_SECONDS = 3.0  # longer than that no report waits for its answer
_WRITES_AT_ONCE = 8  # the leader has other things to write

_HERE = (Stage.PLACED, Stage.RUNNING)  # the kubelet may be slower to say that it runs
_NO_SUCH_POD = refusal(410, "this pod does not run")
_NOTHING_TO_SAVE = refusal(403, "the job of this pod has no spec.checkpoint")
_NOT_EMPTY = refusal(400, "send nothing, or {}: it was saved when this report comes")
_NOT_WRITTEN = "the API server did not take it; say it again"


class Checkpoints(ReportJudge):
    """Takes reports of checkpoints."""

    def __init__(
        self,
        state: ClusterState,
        client: Client,
        tokens: ReportTokens,
        *,
        clock: Callable[[], float],
        now: Callable[[], datetime],
    ) -> None:
        """``clock`` counts how often, ``now`` dates the checkpoint."""
        self._state = state
        self._client = client
        self._clock = clock
        self._now = now
        self._tokens = tokens
        self._next: dict[PodUID, tuple[bool, float]] = {}  # it had to go then; not before
        self._failures: Failures[PodUID] = Failures(clock, first_seconds=AGAIN_SECONDS)
        self._writing = asyncio.Semaphore(_WRITES_AT_ONCE)
        self.answers = Counter()

    def observe(self, obj: Pod, pod: PodRecord) -> None:
        """A pod changed, which the state knows."""

    def gone(self, uid: PodUID) -> None:
        """A pod is gone."""
        self._next.pop(uid, None)
        self._failures.over(uid)

    async def _refused(self, uid: PodUID, sender: Sender) -> Answer | None:
        pod = self._addressed(uid)
        if isinstance(pod, Answer):
            return pod
        return await self._tokens.refusal(uid, sender) or self._too_often(pod)

    def _addressed(self, uid: PodUID) -> PodRecord | Answer:
        pod = self._state.pods.known.get(uid)
        if pod is None or pod.stage not in _HERE:
            return _NO_SUCH_POD
        job = self._state.workloads.gpujob_of(pod)
        if job is None or job.spec is None or job.spec.checkpoint is None:
            return _NOTHING_TO_SAVE
        return pod

    def _too_often(self, pod: PodRecord) -> Answer | None:
        had_to_go, at = self._next.get(pod.uid, (False, 0.0))
        wait = at - self._clock()
        if wait > 0 and had_to_go == self._has_to_go(pod):
            often = f"a pod may say every {EVERY_SECONDS:g} s that it has saved; try again later"
            return refusal(429, often, ceil(wait))
        return None

    async def _answer(self, uid: PodUID, body: bytes) -> Answer:
        pod = self._addressed(uid)
        if isinstance(pod, Answer):
            return pod
        if refused := self._too_often(pod):
            return refused
        if b"".join(body.split()) not in (b"", b"{}"):
            return _NOT_EMPTY
        at, has_to_go = self._now(), self._has_to_go(pod)
        self._next[uid] = has_to_go, self._clock() + EVERY_SECONDS
        if await self._write(pod, at):
            return Answer(200, {"checkpointedAt": micro_timestamp(at)})
        wait = min(_MOST_AGAIN_SECONDS, max(AGAIN_SECONDS, self._failures.left_seconds(uid)))
        if uid in self._next:
            self._next[uid] = has_to_go, self._clock() + wait
        return refusal(503, _NOT_WRITTEN, ceil(wait))

    async def _write(self, pod: PodRecord, at: datetime) -> bool:
        try:
            async with asyncio.timeout(_WRITE_SECONDS), self._writing:
                await send(self._client, saved(pod.meta, at))
        except errors.NotFound:
            return False  # the watch brings the news
        except (errors.ApiError, TimeoutError) as error:
            # Also when we lead no more: the next leader is asked then.
            if self._failures.note(pod.uid, error):
                log.info("not noted as saved: %s/%s: %s", pod.namespace, pod.name, error)
            return False
        self._failures.over(pod.uid)
        return True

    def _has_to_go(self, pod: PodRecord) -> bool:
        return pod.deleting or pod.uid in self._state.pods.leaving
