"""The Job controller as Kubernetes has it: it acts on what it has heard, which may be long ago.

It hears of Jobs and of pods by two watches, each at a speed of its own, decides for one Job at a
time by what it has heard, deletes one pod after the other, and does nothing to a Job's pods until
it has heard of what it did before. It may stand still for any time, and go on. Which pods it
deletes is the order of client-go's ActivePods. Source: pkg/controller/job of Kubernetes 1.36.
"""

from random import Random

from tests.unit.generated.server import ENDED, Server, path_of
from tests.unit.generated.values import Obj

from gpu_scheduler.api.names import JOB_TRACKING

INDEX = "batch.kubernetes.io/job-completion-index"
JOBS, PODS = "/apis/batch/v1/jobs", "/api/v1/pods"
_MOST_PODS = 8  # of one Job at once


class JobController:
    """One of them; ``turn`` gives it a little time, unless ``stopped``."""

    def __init__(self, server: Server, random: Random) -> None:
        self.stopped = False
        self._server, self._random = server, random
        self._heard: dict[str, list[tuple[str, Obj]]] = {JOBS: [], PODS: []}  # not taken in yet
        self._at = {JOBS: 0, PODS: 0}
        self._known: dict[str, dict[str, Obj]] = {JOBS: {}, PODS: {}}
        self._doomed: list[Obj] = []  # pods whose deletion is under way
        self._expected: dict[str, set[str]] = {}  # by Job: pods whose coming or going is expected

    def turn(self) -> None:
        """It takes in some of its news, and does some of its work, in any order."""
        if self.stopped:
            return
        for _ in range(self._random.randint(1, 6)):
            self._random.choice((self._hear, self._hear, self._delete, self._sync))()

    def catch_up(self) -> None:
        """It takes in all of its news and does all of its work, as one that has the time."""
        for _ in range(4):
            for collection in (JOBS, PODS):
                self._take_in(collection, 10_000)
            while self._doomed:
                self._delete()
            self._let_orphans_go()
            for uid in tuple(self._known[JOBS]):
                self._work_on(uid)

    def _hear(self) -> None:
        self._take_in(self._random.choice((JOBS, PODS)), self._random.randint(1, 12))

    def _take_in(self, collection: str, most: int) -> None:
        news, self._at[collection] = self._server.news(collection, self._at[collection])
        waiting = self._heard[collection]
        waiting += news
        known = self._known[collection]
        for kind, obj in waiting[:most]:
            uid = obj["metadata"]["uid"]
            if kind == "DELETED":
                known.pop(uid, None)
            else:
                known[uid] = obj
            for expected in self._expected.values():
                expected.discard(f"{kind}/{uid}")
        del waiting[:most]

    def _delete(self) -> None:
        if self._doomed:
            pod = self._doomed.pop(self._random.randrange(len(self._doomed)))
            meta = pod["metadata"]
            found = self._server.objects.get((PODS, meta["namespace"], meta["name"]))
            if found is not None and found["metadata"]["uid"] == meta["uid"]:
                self._server.deletes(found)
                self._server.remove(path_of((PODS, meta["namespace"], meta["name"])))
            else:
                self._awaits(_owner(pod)).discard(f"DELETED/{meta['uid']}")

    def _sync(self) -> None:
        self._let_orphans_go()
        if self._known[JOBS]:
            self._work_on(self._random.choice(list(self._known[JOBS])))

    def _awaits(self, job: str) -> set[str]:
        return self._expected.setdefault(job, set())

    def _work_on(self, uid: str) -> None:
        job = self._known[JOBS][uid]
        meta, spec = job["metadata"], job["spec"]
        if not uid.startswith("uid-made-") or _ended(job):
            return
        pods = [pod for pod in self._known[PODS].values() if _owner(pod) == uid]
        done = {_index(p) for p in pods if p["status"]["phase"] == "Succeeded"}
        done |= _indexes(job)
        active = [p for p in pods if p["status"]["phase"] not in ENDED]
        completions, parallelism = spec.get("completions") or 0, spec.get("parallelism") or 0
        count = len(active)
        if not self._awaits(uid) and not (completions and len(done) >= completions):
            want = 0 if spec.get("suspend") else min(parallelism, completions - len(done))
            excess = sorted(active, key=_spared)[: max(0, count - want)]
            for pod in excess:
                self._doomed.append(pod)
                self._awaits(uid).add(f"DELETED/{_uid(pod)}")
            taken = done | {_index(p) for p in active}
            missing = [i for i in range(min(completions, 100)) if i not in taken]
            room = min(want, _MOST_PODS) - count
            made = [self._create(job, index) for index in missing[: max(0, room)]]
            self._awaits(uid).update(f"ADDED/{_uid(pod)}" for pod in made if pod is not None)
            count += len(made) - len(excess)
        if self._report(meta, done, count, sum(1 for p in active if _ready(p)), completions):
            for pod in pods:
                if pod not in active:
                    self._let_go(pod)

    def _let_orphans_go(self) -> None:
        for pod in tuple(self._known[PODS].values()):
            if _owner(pod) not in self._known[JOBS] and "deletionTimestamp" in pod["metadata"]:
                self._let_go(pod)

    def _let_go(self, pod: Obj) -> None:
        """Of a pod that has ended, and is counted."""
        meta = pod["metadata"]
        found = self._server.objects.get((PODS, meta["namespace"], meta["name"]))
        if found is not None and found["metadata"].get("finalizers") and _uid(found) == _uid(pod):
            self._server.let_go(path_of((PODS, meta["namespace"], meta["name"])))

    def _report(self, meta: Obj, done: set[int], active: int, ready: int, completions: int) -> bool:
        """Write its status, as a patch of what the Job is by now; whether that is there."""
        found = self._server.objects.get((JOBS, meta["namespace"], meta["name"]))
        if found is None or found["metadata"]["uid"] != meta["uid"]:
            return False
        status = {
            **(found.get("status") or {}),
            "active": active,
            "ready": ready,
            "succeeded": len(done),
            "completedIndexes": ",".join(map(str, sorted(done))),
        }
        if completions and len(done) >= completions:
            status["conditions"] = [
                {"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T01:00:00Z"}
            ]
        if status != (found.get("status") or {}):
            path = path_of((JOBS, meta["namespace"], meta["name"]))
            self._server.put(path, {**found, "status": status})
        return True

    def _create(self, job: Obj, index: int) -> Obj | None:
        meta, template = job["metadata"], job["spec"]["template"]
        if (JOBS, meta["namespace"], meta["name"]) not in self._server.objects:
            return None
        about = template.get("metadata") or {}
        number = self._server.next_uid()
        made = {
            "metadata": {
                **about,
                "annotations": {**(about.get("annotations") or {}), INDEX: str(index)},
                "name": f"{meta['name']}-{index}-{number}",
                "finalizers": [JOB_TRACKING],
                "ownerReferences": [
                    {"kind": "Job", "name": meta["name"], "uid": meta["uid"], "controller": True}
                ],
            },
            "spec": template["spec"],
            "status": {"phase": "Pending"},
        }
        return self._server.make(PODS, meta["namespace"], made)


def _spared(pod: Obj) -> tuple[bool, bool, bool, int]:
    """The first of this order go first: no node, not running, not ready, the newest."""
    number = int(pod["metadata"]["name"].rpartition("-")[2])
    running = pod["status"]["phase"] == "Running"
    return bool(pod["spec"].get("nodeName")), running, _ready(pod), -number


def _ready(pod: Obj) -> bool:
    found = pod["status"].get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in found)


def _ended(job: Obj) -> bool:
    return bool((job.get("status") or {}).get("conditions"))


def _indexes(job: Obj) -> set[int]:
    """Those that it has counted, whose pods may be gone."""
    text = (job.get("status") or {}).get("completedIndexes") or ""
    return {int(each) for each in text.split(",") if each}


def _owner(pod: Obj) -> str:
    owners = pod["metadata"].get("ownerReferences") or ()
    return str(owners[0].get("uid")) if owners else ""


def _index(pod: Obj) -> int:
    return int(pod["metadata"]["annotations"][INDEX])


def _uid(obj: Obj) -> str:
    return str(obj["metadata"]["uid"])
