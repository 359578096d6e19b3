"""Histories: what happens to a cluster, one step after the other, and who is to blame for it.

The healthy part is one team with jobs, and pods that ask for a share by themselves, that all fit
onto nodes of its own (others' pods do not tolerate them) and into its quota; it writes nothing odd.
Everything else is hostile. Its jobs played alone say what they are owed: what happens beside them
must change nothing of it. Its shares are all owed a place, and keep it.
"""

from dataclasses import dataclass
from random import Random
from typing import Any
from zlib import crc32

from hypothesis import strategies as st
from tests.unit.generated.jobs import hostile_jobs
from tests.unit.generated.nodes import hostile_nodes, node
from tests.unit.generated.others import hostile_configmaps, hostile_leases, logs
from tests.unit.generated.ours import (
    GPUJOB_NAMES,
    gpujob,
    gpuproject,
    hostile_gpuclasses,
    hostile_gpujobs,
    hostile_gpunodes,
    hostile_gpuprojects,
)
from tests.unit.generated.pods import hostile_pods, pod
from tests.unit.generated.server import FAULTS, path_of
from tests.unit.generated.shares import (
    GANG_SIZE,
    hostile_pod_groups,
    hostile_shares,
    member,
    pod_group,
    ring,
    template,
)
from tests.unit.generated.stage import ROOT, Stage
from tests.unit.generated.values import Obj, Place, spoiled
from tests.unit.generated.worst import lacks_a_claim, worst_gpujobs, worst_pods

from gpu_scheduler.api.gpujob import FINISHED
from gpu_scheduler.api.names import ALLOCATION, COMPONENT_AGENT, LABEL_COMPONENT, LABEL_SHARE
from gpu_scheduler.api.states import STATES
from gpu_scheduler.kube.paths import POD_GROUPS

TEAM = "team-a"
HEALTHY_NODES = ("good-0", "good-1")
ENDED = sorted(FINISHED)
_WATCHED = ("jobs", "pods", "nodes")
_SETTLING_SECONDS = 40  # a late write is 14 s late, and its node is avoided for 10 s
_OWN = {"key": "team-a-only", "operator": "Exists", "effect": "NoSchedule"}
_MOST_REPLICAS = 3
_GPUS = 6  # of each of two nodes: a whole one for each pod of the healthy part
_JOB_UIDS = tuple(f"uid-team-bad-{name}" for name in GPUJOB_NAMES)

_COLLECTIONS = {
    "pod": "/api/v1/pods",
    "node": "/api/v1/nodes",
    "configmap": "/api/v1/configmaps",
    "job": "/apis/batch/v1/jobs",
    "lease": "/apis/coordination.k8s.io/v1/leases",
    "gpujob": f"{ROOT}/gpujobs",
    "gpuproject": f"{ROOT}/gpuprojects",
    "gpuclass": f"{ROOT}/gpuclasses",
    "gpunode": f"{ROOT}/gpunodes",
    "share": "/api/v1/pods",
    "podgroup": POD_GROUPS["v1"],
    "worst gpujob": f"{ROOT}/gpujobs",
    "worst pod": "/api/v1/pods",
}


@dataclass(frozen=True)
class Step:
    """One thing that happens.

    Attributes:
        what: put, remove, again (old news once more), early (one of that name was deleted, unseen),
            submit, finish, restart, or time; scale, ring, group or bare: of the healthy part's
            shares, of a group with its PodGroup, which comes first (1) or last (2);
            clock: somebody sets the wall clock of who leads;
            forge: somebody writes the status of a healthy job, usurp: while no leader leads.
        possible: an API server could hand it out; else its types are wrong, or its format.
        path: of the object.
        obj: the object.
        number: of the healthy job, the seed of a restart, seconds (of a clock: by which it is
            ahead), or how many pods.
    """

    what: str
    path: str = ""
    obj: Obj | None = None
    number: int = 0
    possible: bool = True

    @property
    def alone(self) -> bool:
        """Whether the healthy jobs played alone see it."""
        return self.what in ("submit", "finish", "restart", "time")


@dataclass(frozen=True)
class History:
    """A healthy part, steps, and what becomes of the operator's writes."""

    jobs: tuple[tuple[float, int], ...]  # GPUs of a pod, pods
    steps: tuple[Step, ...]
    faults: tuple[str, ...] = ("",)
    logs: bytes = b""
    behind: tuple[tuple[str, float], ...] = ()  # see ``Server``

    def fault(self, path: str, tries: int) -> str:
        """Each write goes wrong once at most; which, the healthy and the full run agree on."""
        stable = "/".join(part.split("-")[0] for part in path.split("/"))
        return self.faults[crc32(stable.encode()) % len(self.faults)] if tries == 1 else ""


_objects: dict[str, st.SearchStrategy[Obj]] = {
    "pod": hostile_pods(("", "uid-nobody", *(f"uid-hand-{n}" for n in GPUJOB_NAMES))),
    "node": hostile_nodes(),
    "configmap": hostile_configmaps(),
    "job": hostile_jobs(tuple(zip(GPUJOB_NAMES, _JOB_UIDS, strict=True))),
    "lease": hostile_leases(),
    "gpujob": hostile_gpujobs(),
    "gpuproject": hostile_gpuprojects(),
    "gpuclass": hostile_gpuclasses(),
    "gpunode": hostile_gpunodes(),
    "share": hostile_shares(),
    "podgroup": hostile_pod_groups,
}
_worst: dict[str, st.SearchStrategy[Obj]] = {
    "worst gpujob": worst_gpujobs(),
    "worst pod": worst_pods,
}


@st.composite
def hostile_steps(draw: st.DrawFn, *, worst: bool = False) -> Step:
    """An object of any kind that means harm, and what happens to it.

    ``worst``: also those of a tenant that does its worst, which a real API server gets elsewhere.
    """
    kinds = [*sorted(_objects), "pod", "pod", "gpujob", "gpujob", "node", "share"]
    kinds += sorted(_worst) if worst else []
    kind = draw(st.sampled_from(kinds))
    obj = draw({**_objects, **_worst}[kind])
    possible = draw(st.integers(0, 3)) > 0
    if not possible:
        obj = draw(spoiled(obj, _kept))
    meta = obj["metadata"]
    path = path_of((_COLLECTIONS[kind], meta.get("namespace") or "", meta["name"]))
    what = draw(st.sampled_from(["put", "put", "put", "put", "remove", "again", "early"]))
    return Step(what, path, obj, possible=possible)


def _kept(at: Place) -> bool:
    """What would put a bad object into somebody's way by right: elsewhere, or before others."""
    return at[-1] in ("nodeName", "spec", "labels", "annotations", ALLOCATION) or (
        len(at) == 2 and at[1] in ("creationTimestamp", "generation")
    )


_counts = st.fixed_dictionaries(
    dict.fromkeys(("pending", "running", "succeeded", "failed"), st.integers(0, 3))
)
_forged: st.SearchStrategy[Obj] = st.fixed_dictionaries(
    {
        "phase": st.sampled_from(["Pending", "Running", "Suspended", *ENDED]),
        "reason": st.sampled_from([state.reason for state in STATES if state.reason]),
        "message": st.just("somebody else says so"),
    },
    optional={
        "pods": _counts,
        "preemptedBy": st.just("team-bad/one"),
        "evictions": st.integers(0, 9),
        "lostGPUSeconds": st.integers(0, 10**12),
        "queuePosition": st.integers(1, 10**6),
        "firstFailure": st.just("index 0 failed"),
        "allocatedGPU": st.just("8"),
        "observedGeneration": st.integers(0, 99),
        "sweep": st.just({"trials": 3, "counts": {"succeeded": 3}}),
    },
)
_others = st.one_of(
    st.builds(Step, st.sampled_from(["forge", "usurp"]), obj=_forged, number=st.integers(0, 2)),
    st.builds(Step, st.just("finish"), number=st.integers(0, 2)),
    st.builds(Step, st.just("restart"), number=st.integers(0, 9)),
    st.builds(Step, st.just("time"), number=st.sampled_from([1, 5, 16])),
    st.builds(Step, st.just("clock"), number=st.sampled_from([3600, -3600, 10**9, -(10**9)])),
    st.builds(Step, st.just("scale"), number=st.integers(0, _MOST_REPLICAS)),
    st.builds(Step, st.sampled_from(["ring", "bare"]), number=st.integers(0, 1)),
    st.builds(Step, st.just("group"), number=st.integers(0, 2)),
)


@st.composite
def histories(draw: st.DrawFn, most_steps: int = 7) -> History:
    """A history with a few healthy jobs, which all fit, and a few hostile objects."""
    jobs = draw(
        st.lists(
            st.tuples(st.sampled_from([0.25, 0.5, 1]), st.integers(1, 2)), min_size=1, max_size=2
        )
    )
    step = st.one_of(*(hostile_steps(worst=True) for _ in range(3)), _others)
    steps = draw(st.lists(step, max_size=most_steps))
    for number in range(len(jobs)):
        steps.insert(draw(st.integers(0, len(steps))), Step("submit", number=number))
    faults = draw(st.lists(st.sampled_from(["", "", *FAULTS]), min_size=1, max_size=4))
    behind = draw(
        st.lists(st.tuples(st.sampled_from(_WATCHED), st.sampled_from([0.2, 1.5])), max_size=1)
    )
    return History(tuple(jobs), tuple(steps), tuple(faults), draw(logs), tuple(behind))


@dataclass(frozen=True)
class Outcome:
    """What a history came to."""

    placed: set[tuple[str, str]]
    phases: dict[str, str]
    wanted: set[tuple[str, str]]
    unexplained: list[str]
    longest_silence: tuple[float, str]  # seconds in which a job did not say what it waits for
    neglected: list[str]  # shares of the healthy part without a place
    disturbed: list[str]  # healthy pods that were asked to go, and not from a smaller device
    charges: dict[str, Any]
    charges_of_the_next: dict[str, Any]


async def play(history: History, *, hostile: bool) -> Outcome:
    """Play a history, with its hostile steps or without; every step is checked.

    Raises:
        AssertionError: something does not hold that must hold at every step.
    """
    stage = Stage(history.fault)
    server = stage.server
    server.logs = history.logs
    server.behind = dict(history.behind)
    server.may_bind = lambda pod: not lacks_a_claim(pod)
    for name in HEALTHY_NODES:
        own = node(name, _GPUS)
        own["spec"]["taints"] = [{"key": _OWN["key"], "effect": _OWN["effect"]}]
        server.put(f"/api/v1/nodes/{name}", own)
    server.put(f"{ROOT}/gpuprojects/{TEAM}", gpuproject(TEAM, [TEAM], quota=2 * _GPUS))
    if hostile:  # so that what comes is more than talk: a node to be on, and a quota
        server.put("/api/v1/nodes/bad-0", node("bad-0"))
        agent = pod("agent-bad", "gpu-scheduler", node="bad-0", phase="Running")
        agent["metadata"]["labels"] = {LABEL_COMPONENT: COMPONENT_AGENT}
        server.put("/api/v1/namespaces/gpu-scheduler/pods/agent-bad", agent)
        bad = gpuproject("project-bad", ["team-bad"], quota=1, limit=4)
        bad["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z"
        server.put(f"{ROOT}/gpuprojects/project-bad", bad)
    await stage.lead(Random(0))
    try:
        for step in history.steps:
            if hostile or step.alone:
                await _take(stage, history, step)
        await stage.passes(_SETTLING_SECONDS)
        charges, phases = stage.charges(), _phases(stage)
        unexplained, silence = stage.unexplained(), stage.longest_silence
        await stage.lead(Random(1))
        return Outcome(
            stage.placed(TEAM),
            phases,
            {(f"job{n}", str(i)) for n, (_, pods) in enumerate(history.jobs) for i in range(pods)},
            unexplained,
            silence,
            stage.waiting_shares(TEAM),
            _disturbed(stage),
            charges,
            stage.charges(),
        )
    finally:
        await stage.end()


def _disturbed(stage: Stage) -> list[str]:
    """Healthy pods that were evicted, but for those on a device that had got smaller.

    What a device no longer has nobody can go on using: see ``runtime.eviction.overbooked``.
    """
    own = (pod for pod in stage.evicted if pod.startswith(f"{TEAM}/"))
    return [pod for pod in own if pod not in stage.crowded]


async def _forge(stage: Stage, step: Step) -> None:
    """Somebody writes a status; without a leader no end that no Job contradicts."""
    assert step.obj is not None
    job = stage.server.objects.get((f"{ROOT}/gpujobs", TEAM, f"job{step.number}"))
    own = stage.server.objects.get(("/apis/batch/v1/jobs", TEAM, f"job{step.number}"))
    if job is None or (step.what == "usurp" and own is None and step.obj["phase"] in ENDED):
        return
    if step.what == "usurp":
        await stage.end()
    stage.server.put(
        f"{ROOT}/namespaces/{TEAM}/gpujobs/job{step.number}", {**job, "status": step.obj}
    )
    if step.what == "usurp":
        await stage.lead(Random(step.number))


async def _group(stage: Stage, number: int) -> None:
    """A gang that is Kubernetes' own comes or goes; see ``Step``."""
    path = path_of((POD_GROUPS["v1"], TEAM, "own"))
    body = pod_group("own", TEAM, {"gang": {"minCount": GANG_SIZE}})
    if number == 1:
        stage.server.put(path, body)
    made = member("0.5", controlled=True, group="own", tolerations=(_OWN,))
    stage.scale(TEAM, "group", GANG_SIZE * bool(number), made)
    if number == 2:
        await stage.passes(1)
        stage.server.put(path, body)
    if not number:
        stage.server.remove(path)


def _phases(stage: Stage) -> dict[str, str]:
    """Of the healthy jobs, as their statuses say."""
    jobs = (job for job in stage.server.of(f"{ROOT}/gpujobs"))
    mine = [job for job in jobs if job["metadata"]["namespace"] == TEAM]
    return {job["metadata"]["name"]: job.get("status", {}).get("phase", "") for job in mine}


async def _take(stage: Stage, history: History, step: Step) -> None:
    server = stage.server
    stage.possible &= step.possible
    if step.what == "put":
        assert step.obj is not None
        if LABEL_SHARE in (step.obj["metadata"].get("labels") or ()):
            server.remove(step.path)  # no user may change what such a pod says
        server.put(step.path, step.obj)
    elif step.what == "remove":
        server.remove(step.path)
    elif step.what == "again":
        assert step.obj is not None
        server.again(step.path, step.obj)
    elif step.what == "early":
        assert step.obj is not None
        server.gone_before(step.path, step.obj)
        server.put(step.path, step.obj)
    elif step.what == "submit":
        gpu, pods = history.jobs[step.number]
        name = f"job{step.number}"
        main = {"name": "main", "image": "registry/x:1"}
        theirs = {"spec": {"containers": [main], "tolerations": [_OWN]}}
        job = gpujob(name, TEAM, gpu=gpu, parallelism=pods, template=theirs)
        del job["spec"]["image"]
        server.put(f"{ROOT}/namespaces/{TEAM}/gpujobs/{name}", job)
    elif step.what == "finish":
        stage.finish(TEAM, f"job{step.number}")
    elif step.what == "scale":
        made = template("0.5", controlled=True, tolerations=(_OWN,))
        stage.scale(TEAM, "web", step.number, made)
    elif step.what == "ring":
        made = ring("1", controlled=True, tolerations=(_OWN,))
        stage.scale(TEAM, "ring", step.number * GANG_SIZE, made)
    elif step.what == "group":
        await _group(stage, step.number)
    elif step.what == "bare":
        path = f"/api/v1/namespaces/{TEAM}/pods/bare"
        server.remove(path)
        if step.number:
            made = template("0.25", controlled=False, tolerations=(_OWN,))
            made["metadata"]["name"] = "bare"
            server.make("/api/v1/pods", TEAM, {**made, "status": {"phase": "Pending"}})
    elif step.what in ("forge", "usurp"):
        await _forge(stage, step)
    elif step.what == "clock":
        stage.wall_ahead = step.number
    elif step.what == "restart":
        await stage.lead(Random(step.number))
    await stage.passes(step.number if step.what == "time" else 1)
