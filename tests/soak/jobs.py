"""What GPUJobs say of themselves, and for how long that is nothing, or what is no longer so.

A job must say at once why it does not run, and stop saying so once it does. Time counts only while
the API server answers the operator and somebody leads. And no pod with a place is deleted without a
word, but where its job has ended, was suspended or deleted.
"""

import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.api.tenant import GROUP
from tests.soak.checker import Checker, Pod, owner_uid
from tests.soak.load import Load, finished
from tests.soak.site import Site, say
from tests.soak.watch import Watch

LIMIT_SECONDS = 2.0
_LET_GO_SECONDS = 60.0  # between a job's end, or what its user does, and the end of its pods
SLIP = "slip-"
"""Names of jobs whose template is no pod's begin so."""
_WAITING_WORDS = frozenset(
    ("WaitingForQuota", "Fragmented", "WaitingForGPU", "WaitingForResources", "WaitingForGang")
    + ("WaitingForTopology",)
)


@dataclass(slots=True)
class SeenJob:
    """A GPUJob as last seen."""

    uid: str
    status: Mapping[str, Any]
    suspended: bool
    pods: int  # that it wants at once
    since: float  # when it was first seen, monotonic


class Jobs:
    """Follows GPUJobs of all namespaces."""

    def __init__(self, site: Site, load: Load, checker: Checker) -> None:
        self._site, self._load, self._checker = site, load, checker
        self.seen: dict[tuple[str, str], SeenJob] = {}
        self.failed: dict[tuple[str, str], dict[str, int]] = {}
        """Failures that the Jobs of a GPUJob counted, by the Job's uid; of Jobs that went, too."""
        self.changes: dict[str, list[float]] = {}
        """When something of a GPUJob, or of a Job of it, changed: epoch seconds."""
        self._owners: dict[str, str] = {}  # of Jobs: the uid of the GPUJob, by theirs
        self._let_go: dict[tuple[str, str], list[float]] = {}  # when its pods might be deleted
        self.watch = Watch(site, f"{GROUP}/gpujobs", self._see, self._gone)
        self.watch_batch = Watch(site, "/apis/batch/v1/jobs", self._count, self._forget)
        self._wrong_since: dict[tuple[str, str, str], float] = {}
        self._calm_since: float | None = None
        self.late: Counter[str] = Counter()
        """Jobs whose word was older than the limit, by what was wrong."""
        self.worst: dict[str, float] = {}
        self.examples: list[str] = []
        self.first_word_seconds: list[float] = []
        self.checked_seconds = 0.0
        self._told: set[tuple[str, str, str]] = set()
        self._looked_at = time.monotonic()

    def unannounced(self) -> list[str]:
        """Pods with a place that were deleted, and neither they nor their job say why."""
        found = []
        for torn in self._checker.torn:
            key = torn.namespace, torn.job
            promise = self._load.preemption_policy.get(key)
            excused = any(abs(torn.at - at) <= _LET_GO_SECONDS for at in self._let_go.get(key, ()))
            if promise is not None and not promise.deleted and not excused:
                clock = time.strftime("%H:%M:%S", time.localtime(torn.at))
                found.append(f"{clock} {torn.namespace}/{torn.name} ({promise.kind})")
        return found

    def _changed(self, key: tuple[str, str]) -> None:
        self.changes.setdefault("/".join(key), []).append(time.time())

    def _gone(self, meta: Mapping[str, Any]) -> None:
        self._changed((meta["namespace"], meta["name"]))
        self._let_go.setdefault((meta["namespace"], meta["name"]), []).append(time.time())
        self.seen.pop((meta["namespace"], meta["name"]), None)

    def _count(self, body: Mapping[str, Any]) -> None:
        meta, failed = body["metadata"], int(body.get("status", {}).get("failed", 0))
        self._owners[meta["uid"]] = owner_uid(meta, "GPUJob")
        name = (meta.get("labels") or {}).get("gpu-scheduler.io/job", "")
        if name:
            self._changed((meta["namespace"], name))
            counted = self.failed.setdefault((meta["namespace"], name), {})
            counted[meta["uid"]] = max(failed, counted.get(meta["uid"], 0))

    def _forget(self, meta: Mapping[str, Any]) -> None:
        self._owners.pop(meta["uid"], None)

    def _own(self, seen: SeenJob, labelled: list[Pod]) -> list[Pod]:
        """Those that are a GPUJob's: a Job without its owner runs on, and is nobody's any more."""
        return [pod for pod in labelled if self._owners.get(pod.made_by) == seen.uid]

    def _see(self, body: Mapping[str, Any]) -> None:
        meta, status = body["metadata"], body.get("status") or {}
        key = meta["namespace"], meta["name"]
        known = self.seen.get(key)
        now = time.monotonic()
        since = now if known is None or known.uid != meta["uid"] else known.since
        if (known is None or not known.status.get("phase")) and status.get("phase"):
            self.first_word_seconds.append(now - since)
        suspended = bool(body["spec"].get("suspend")) or "deletionTimestamp" in meta
        pods = _wanted(body["spec"], int(status.get("pods", {}).get("succeeded", 0)))
        self.seen[key] = SeenJob(meta["uid"], status, suspended, pods, since)
        self._changed(key)
        if suspended or finished(status):
            self._let_go.setdefault(key, []).append(time.time())
        promise = self._load.preemption_policy.get(key)
        if promise is not None and finished(status):
            promise.ended = True

    def look(self) -> None:
        """Whose word is wrong now, and since when."""
        now = time.monotonic()
        elapsed, self._looked_at = now - self._looked_at, now
        calm = self._site.disturbed.since is None and self._site.leaderless.since is None
        if not calm:
            self._calm_since = None
            self._wrong_since.clear()
            return self._site.rest(0.1)
        if self._calm_since is None:
            self._calm_since = now
        self.checked_seconds += elapsed
        live = self._checker.live()
        wrong: set[tuple[str, str, str]] = set()
        unfinished = 0
        for key, seen in list(self.seen.items()):
            if finished(seen.status):
                continue
            unfinished += 1
            if seen.suspended:
                continue
            what = self._wrong(key[1], seen, self._own(seen, live.get(key, [])))
            if what:
                wrong.add((*key, what))
        self._load.unfinished = unfinished
        for each in self._wrong_since.keys() - wrong:
            del self._wrong_since[each]
        for each in wrong:
            age = now - self._wrong_since.setdefault(each, now)
            if age > LIMIT_SECONDS:
                what = each[2]
                self.worst[what] = max(self.worst.get(what, 0.0), age)
                if each not in self._told:
                    self._told.add(each)
                    self.late[what] += 1
                    example = self._example(each, now)
                    say(example)
                    if len(self.examples) < 40:
                        self.examples.append(example)
        return self._site.rest(0.2)

    def _example(self, wrong: tuple[str, str, str], now: float) -> str:
        namespace, name, what = wrong
        status = self.seen[namespace, name].status
        said = {k: status.get(k) for k in ("phase", "reason", "message", "pods")}
        labelled = self._checker.live().get((namespace, name), [])
        pods = self._own(self.seen[namespace, name], labelled)
        states = Counter((p.phase, "held" if p.holds else "", p.deleting) for p in pods)
        calm = now - (self._calm_since or now)
        clock = time.strftime("%H:%M:%S")
        return (
            f"{clock} after {calm:.1f} s of calm: {namespace}/{name} {what}: "
            f"{json.dumps(said)[:300]}; its pods: {dict(states)}"
        )

    def _wrong(self, name: str, seen: SeenJob, pods: list[Pod]) -> str:
        status = seen.status
        if name.startswith(SLIP) and any(pod.holds for pod in pods):
            return "is no pod, and holds a GPU"
        if name.startswith(SLIP) and status.get("reason") != "Invalid":
            return "is no pod, and does not say so"
        if not status.get("phase"):
            return "says nothing"
        held = [pod for pod in pods if pod.holds and not pod.deleting]
        reason = status.get("reason", "")
        if status["phase"] == "Pending" and not reason:
            return "waits without a reason"
        # It may have placed all pods that exist, and wait for room for those that are made then.
        if reason in _WAITING_WORDS and len(held) == len(pods) >= max(1, seen.pods):
            return "says that it waits, and all its pods are placed"
        # Between two waves, or two tries, it reads Running with the reason why nothing runs.
        if status["phase"] == "Running" and not reason and pods and not any(p.holds for p in pods):
            return "says that it runs, and none of its pods is placed"
        return ""


def _wanted(spec: Mapping[str, Any], succeeded: int) -> int:
    """How many pods a job would have now if there were room for all."""
    roles = spec.get("roles")
    if roles:
        return sum(int(role.get("replicas", 1)) for role in roles)
    at_once = int(spec.get("parallelism", 1))
    if "sweep" in spec and "completions" not in spec:
        return at_once
    return min(at_once, int(spec.get("completions", at_once)) - succeeded)
