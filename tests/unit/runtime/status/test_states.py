"""Every state a GPUJob can be in has its word and a sentence: one row for each."""

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pytest
from tests.unit.state.builders import (
    CREATED,
    UNSCHEDULABLE,
    half,
    make_assignment,
    make_gpujob,
    make_job,
    make_pod,
)

from gpu_scheduler.api import states
from gpu_scheduler.api.crd import KINDS
from gpu_scheduler.api.gpujob import GPUJobStatus
from gpu_scheduler.api.names import LABEL_JOB
from gpu_scheduler.api.search import SweepReason as SweepReason
from gpu_scheduler.core.model.decision import Reason, Wait
from gpu_scheduler.core.model.request import JobKey, PodUID, ProjectName
from gpu_scheduler.kube.objects import Job, Pod
from gpu_scheduler.runtime.eviction.preemption import Preempted
from gpu_scheduler.runtime.status.job_status import gpujob_status
from gpu_scheduler.runtime.status.states import NOTHING, JobContext
from gpu_scheduler.state.jobs.doubts import About, Doubt
from gpu_scheduler.state.jobs.job import GPUJobRecord, job_record
from gpu_scheduler.state.pods.containers import Trouble
from gpu_scheduler.state.pods.pod import record

NOW = "2026-01-02T00:00:00Z"
THREE = {"parallelism": 1, "completions": 3}


def placed(name: str = "job-0", **settings: Any) -> Pod:
    return make_pod(name, node="a", devices=half(), **settings)


# As kube-scheduler says it of a Binding that a policy refuses.
REFUSED = {
    **UNSCHEDULABLE,
    "reason": "SchedulerError",
    "message": "binding rejected: no binding here",
}


def mutated(pod: Pod) -> Pod:
    """A pod of a Job of ours whose scheduler somebody has set to another."""
    meta = msgspec.structs.replace(pod.metadata, labels={LABEL_JOB: "job"})
    return Pod(meta, msgspec.structs.replace(pod.spec, scheduler_name="volcano"), pod.status)


def waits(word: str, message: str, container: str = "main") -> list[dict[str, Any]]:
    state = {"waiting": {"reason": word, "message": message}}
    return [{"name": container, "image": "registry/x:1", "state": state}]


def failed(name: str = "job-0", at: str = CREATED, code: int = 1, **settings: Any) -> Pod:
    said = settings.pop("said", "")
    why = settings.pop("why", "Error")
    ended = {"exitCode": code, "reason": why, "message": said, "finishedAt": at}
    status = [{"name": "main", "state": {"terminated": ended}}]
    return placed(name, phase="Failed", containerStatuses=status, **settings)


def doubt(reason: Reason, why: str, until: float | None = 100.0) -> Doubt:
    return Doubt(About("uid-job", 1), reason, why, True, 1, until, "2026-01-02T00:10:00Z")


def wait(reason: Reason) -> JobContext:
    return JobContext(wait=Wait(make_gpujob().key, reason, "with numbers", 1))


def out_of_quota() -> GPUJobRecord:
    job = make_gpujob()
    job.problem = "exceeded quota: jobs, requested: count/jobs.batch=1"
    job.problem_as = Reason.PODS_REFUSED
    return job


@dataclass
class Row:
    """What is known, and phase, reason and a part of the message that it leads to."""

    says: tuple[str, str, str]
    job: GPUJobRecord = field(default_factory=make_gpujob)
    jobs: tuple[Job, ...] = (make_job(),)
    pods: tuple[Pod, ...] = ()
    known: JobContext = NOTHING
    before: dict[str, Any] = field(default_factory=dict)


# While containers still run, this alone says that the kubelet ends a pod as failed.
ENDED_BY_KUBELET = ({"type": "Ready", "status": "False", "reason": "PodFailed"},)
RUNS = {"phase": "Running", "pods": {"succeeded": 0, "failed": 0}}
IMAGE = 'failed to pull and unpack image "registry/x:1": not found'
BACK_OFF = f'Back-off pulling image "registry/x:1": ErrImagePull: {IMAGE}'
ROWS = {
    "just seen": Row(("Pending", "CreatingJob", "its Job is made"), jobs=()),
    "its Job is being deleted": Row(
        ("Pending", "CreatingJob", "Job job is being deleted"), jobs=(make_job(deleting=True),)
    ),
    "no pod yet": Row(("Pending", "CreatingPods", "Job job exists")),
    "refused pods": Row(
        ("Pending", "PodsRefused", "exceeded quota"),
        known=JobContext(refused="exceeded quota: gpu"),
    ),
    "no room for its Job in a quota": Row(
        ("Pending", "PodsRefused", "count/jobs.batch"), out_of_quota(), jobs=()
    ),
    "invalid": Row(("Pending", "Invalid", "spec.gpu"), make_gpujob(gpu=1.5), jobs=()),
    **{
        f"the planner says {reason}": Row(
            ("Pending", reason, "with numbers"), pods=(make_pod(),), known=wait(Reason(reason))
        )
        for reason in (s.reason for s in states.STATES if s.group is states.Group.WAITS)
    },
    "not planned yet": Row(("Pending", "WaitingForPlan", "1 pod to be"), pods=(make_pod(),)),
    "a gate of somebody else's": Row(
        ("Pending", "SchedulingGated", "schedulingGates of others: example.com/hold"),
        pods=(make_pod(gates=("example.com/hold",)),),
    ),
    "another scheduler": Row(
        ("Pending", "SchedulingGated", "names the scheduler default-scheduler"),
        pods=(make_pod(path="other", gates=()),),
    ),
    "a scheduler that a webhook has set": Row(
        ("Pending", "SchedulingGated", "a mutating policy or webhook of the cluster has set"),
        pods=(mutated(make_pod(path="other", gates=())),),
    ),
    "one that has put it somewhere": Row(
        ("Running", "SchedulingGated", "was put on node a by the scheduler volcano, without a GPU"),
        pods=(mutated(make_pod(path="other", gates=(), node="a", phase="Running")),),
    ),
    "one that is to bind it": Row(
        ("Pending", "SchedulingGated", "waits for the scheduler volcano"),
        pods=(mutated(make_pod(path="gate", gates=(), devices=half(), allocated_node="a")),),
    ),
    "its place is being written": Row(
        ("Pending", "Placing", "goes to a: the API server has not confirmed it yet"),
        pods=(make_pod(),),
        known=JobContext(assumed={PodUID("uid-job-0"): make_assignment()}),
    ),
    "kube-scheduler has not bound it": Row(
        ("Pending", "Placing", "0/1 nodes are available"),
        pods=(
            make_pod(
                path="gate",
                gates=(),
                devices=half(),
                allocated_node="a",
                conditions=(UNSCHEDULABLE,),
            ),
        ),
    ),
    "its binding is refused": Row(
        ("Pending", "Placing", "kube-scheduler: binding rejected: no binding here"),
        pods=(
            make_pod(
                path="gate", gates=(), devices=half(), allocated_node="a", conditions=(REFUSED,)
            ),
        ),
    ),
    "on its node": Row(
        ("Pending", "Starting", "placed on a, containers are starting"), pods=(placed(),)
    ),
    "an init container runs": Row(
        ("Pending", "Starting", "init container fetch runs"),
        pods=(placed(initContainerStatuses=[{"name": "fetch", "state": {"running": {}}}]),),
    ),
    "no such image": Row(
        ("Pending", "ImageNotPulled", f"registry/x:1 cannot be had: ErrImagePull: {IMAGE}"),
        pods=(placed(containerStatuses=waits("ErrImagePull", IMAGE)),),
    ),
    "no such image, between two tries": Row(
        ("Pending", "ImageNotPulled", f"registry/x:1 cannot be had: ErrImagePull: {IMAGE}"),
        pods=(placed(containerStatuses=waits("ImagePullBackOff", BACK_OFF)),),
    ),
    "no such Secret": Row(
        (
            "Pending",
            "ContainerNotStarted",
            'pod job-0 on a: it cannot start: CreateContainerConfigError: secret "x" not found',
        ),
        pods=(
            placed(containerStatuses=waits("CreateContainerConfigError", 'secret "x" not found')),
        ),
    ),
    "a sidecar that ends": Row(
        ("Pending", "ContainerNotStarted", "container proxy of pod job-0 on a: it cannot start"),
        pods=(
            placed(
                initContainerStatuses=waits("CrashLoopBackOff", "back-off 10s", "proxy"),
                containerStatuses=waits("PodInitializing", ""),
            ),
        ),
    ),
    "one of two pods cannot start": Row(
        ("Running", "ImageNotPulled", "pod job-1"),
        make_gpujob(parallelism=2),
        (make_job(parallelism=2, completions=2),),
        (
            placed(phase="Running"),
            placed("job-1", index=1, containerStatuses=waits("ErrImagePull", IMAGE)),
        ),
    ),
    "a volume that is not there": Row(
        ("Pending", "VolumeNotMounted", "FailedMount"),
        pods=(placed(containerStatuses=waits("ContainerCreating", "")),),
        known=JobContext(trouble=lambda pod: Trouble(Reason.VOLUME_NOT_MOUNTED, "FailedMount: no")),
    ),
    "no sandbox": Row(
        ("Pending", "SandboxNotCreated", "no network"),
        pods=(placed(),),
        known=JobContext(trouble=lambda pod: Trouble(Reason.SANDBOX_NOT_CREATED, "no network")),
    ),
    "it is being deleted": Row(
        ("Pending", "Deleting", "metadata.finalizers has example.com/wait"),
        make_gpujob(deleting=True, finalizers=("example.com/wait",)),
    ),
    "it did not start in time": Row(
        ("Pending", "StartTimedOut", "600 s"),
        pods=(make_pod(uid="next"),),
        known=JobContext(doubt=doubt(Reason.START_TIMED_OUT, "did not start within 600 s")),
    ),
    "a policy refused its place": Row(
        ("Pending", "PlacementRefused", "requests must equal limits; it is tried again at 2026-"),
        pods=(make_pod(uid="next"),),
        known=JobContext(doubt=doubt(Reason.PLACEMENT_REFUSED, "requests must equal limits")),
    ),
    "a policy refused its place, and others have it since": Row(
        ("Pending", "PlacementRefused", "must equal limits; until one of its pods has started"),
        pods=(make_pod(uid="next"),),
        known=replace(
            wait(Reason.WAITING_FOR_GPU),
            doubt=doubt(Reason.PLACEMENT_REFUSED, "requests must equal limits", None),
        ),
    ),
    "a policy refused its place, and its pod is being deleted meanwhile": Row(
        ("Pending", "PlacementRefused", "until one of its pods has started"),
        pods=(make_pod(deleting=True),),
        known=JobContext(doubt=doubt(Reason.PLACEMENT_REFUSED, "requests must equal limits", None)),
    ),
    "a policy refused its place, and it is tried again": Row(
        ("Pending", "Starting", ""),
        pods=(placed(),),
        known=JobContext(doubt=doubt(Reason.PLACEMENT_REFUSED, "requests must equal limits", None)),
    ),
    "running": Row(("Running", "", ""), pods=(placed(phase="Running"),)),
    "running, and the next pod waits": Row(
        ("Running", "WaitingForGPU", "with numbers"),
        make_gpujob(parallelism=2),
        pods=(placed(phase="Running"), make_pod("job-1")),
        known=wait(Reason.WAITING_FOR_GPU),
    ),
    "it gave way": Row(
        ("Pending", "Preempted", "gave way to team-b/urgent"),
        known=JobContext(preempted=Preempted(JobKey("team-b/urgent"), PodUID("uid-job-0"))),
        before=RUNS,
    ),
    "its pod was evicted": Row(
        ("Pending", "Evicted", "drained"), known=JobContext(evicted="drained"), before=RUNS
    ),
    "evicted, as an earlier leader knew": Row(
        ("Pending", "Evicted", "drained"),
        before={"phase": "Pending", "reason": "Evicted", "message": "drained"},
    ),
    "evicted, and then suspended and resumed": Row(
        ("Pending", "Resuming", "about to be told"),
        jobs=(make_job(suspend=True),),
        known=JobContext(evicted="drained"),
        before={"phase": "Pending", "reason": "Evicted", "message": "drained"},
    ),
    "evicted, and its Job is gone": Row(
        ("Pending", "CreatingJob", "is being checked"),
        jobs=(),
        before={"phase": "Pending", "reason": "Evicted", "message": "drained"},
    ),
    "evicted, and all its indexes are over": Row(
        ("Running", "Finishing", "1 of 1 indexes succeeded; the verdict is outstanding"),
        pods=(placed(phase="Succeeded"),),
        known=JobContext(evicted="drained"),
        before=RUNS,
    ),
    "between two waves": Row(
        ("Running", "CreatingPods", "1 indexes succeeded; Job job exists"),
        make_gpujob(**THREE),
        (make_job(completions=3),),
        (placed(phase="Succeeded"),),
        before=RUNS,
    ),
    "between two waves, too short to have been seen": Row(
        ("Running", "CreatingPods", "1 indexes succeeded"),
        make_gpujob(**THREE),
        (make_job(completions=3, succeeded=1, completed_indexes="0"),),
        before={"phase": "Pending", "pods": {"succeeded": 0, "failed": 0}},
    ),
    "between two waves, and the next has to wait": Row(
        ("Pending", "WaitingForGPU", "with numbers"),
        make_gpujob(**THREE),
        (make_job(completions=3),),
        (placed(phase="Succeeded"), make_pod("job-1", index=1)),
        known=wait(Reason.WAITING_FOR_GPU),
        before=RUNS,
    ),
    "the second wave starts": Row(
        ("Running", "Starting", "containers are starting"),
        make_gpujob(**THREE),
        (make_job(completions=3),),
        (placed(phase="Succeeded"), placed("job-1", index=1)),
        before=RUNS,
    ),
    "tried again": Row(
        ("Running", "Retrying", "index 0 failed (container main ended with exit code 1: boom)"),
        pods=(failed(said="boom\n"),),
        before=RUNS,
    ),
    "its pod is ending": Row(
        ("Running", "EndingPods", "job-0 is ending"),
        pods=(placed(phase="Running", deleting=True),),
    ),
    "its pod is ending before it has begun": Row(
        ("Pending", "EndingPods", "job-0 is ending"), pods=(placed(deleting=True),)
    ),
    "its program is being ended at its time limit": Row(
        ("Running", "EndingPods", "job-0 has reached spec.timeLimitSeconds (5 s) and is ending"),
        pods=(placed(phase="Running", ran=True, limit_seconds=5, conditions=ENDED_BY_KUBELET),),
        before=RUNS,
    ),
    "its time limit is over before it has started": Row(
        ("Pending", "EndingPods", "job-0 has reached spec.timeLimitSeconds (5 s) and is ending"),
        pods=(placed(limit_seconds=5, conditions=ENDED_BY_KUBELET),),
    ),
    "its kubelet ends it for another reason": Row(
        ("Running", "EndingPods", "job-0 is being ended by the kubelet of a"),
        pods=(placed(phase="Running", ran=True, conditions=ENDED_BY_KUBELET),),
        before=RUNS,
    ),
    "one is being ended at its time limit, another runs": Row(
        ("Running", "", ""),
        make_gpujob(parallelism=2, completions=2),
        pods=(
            placed(phase="Running", ran=True, limit_seconds=5, conditions=ENDED_BY_KUBELET),
            placed("job-1", index=1, phase="Running", ran=True, limit_seconds=5),
        ),
    ),
    "the verdict is outstanding": Row(
        ("Running", "Finishing", "1 of 1 indexes succeeded; the verdict is outstanding"),
        pods=(placed(phase="Succeeded"),),
        before=RUNS,
    ),
    "suspended": Row(("Suspended", "Suspended", "set it to false"), make_gpujob(suspend=True)),
    "resumed": Row(
        ("Pending", "Resuming", "about to be told"),
        jobs=(make_job(suspend=True),),
        before={"phase": "Suspended"},
    ),
    "succeeded": Row(
        ("Succeeded", "", ""), jobs=(make_job(ended="Complete", succeeded=1),), before=RUNS
    ),
    **{
        f"failed: {reason}": Row(
            ("Failed", reason, message),
            jobs=(
                make_job(failed=1, failed_indexes="0", ended="Failed", message="Job has failed"),
            ),
            pods=pods,
        )
        for reason, message, pods in (
            (
                "ProgramFailed",
                "index 0 failed: container main ended with exit code 3: ValueError: no",
                (failed(code=3, said="Traceback\n  x\nValueError: no\n"),),
            ),
            ("ProgramFailed", "exit code 139 (SIGSEGV)", (failed(code=139),)),
            (
                "OOMKilled",
                "exit code 137 (OOMKilled, SIGKILL)",
                (failed(code=137, why="OOMKilled"),),
            ),
            ("ProgramNotFound", "exit code 127 (no such program)", (failed(code=127),)),
            (
                "ProgramNotFound",
                'exit code 128 (StartError): exec: "nope": executable file not found',
                (
                    failed(
                        code=128, why="StartError", said='exec: "nope": executable file not found'
                    ),
                ),
            ),
            (
                "TimeLimitExceeded",
                "it ran longer than spec.timeLimitSeconds (5 s): DeadlineExceeded: for too long",
                (
                    placed(
                        phase="Failed",
                        ran=True,
                        reason="DeadlineExceeded",
                        message="for too long",
                        limit_seconds=5,
                    ),
                ),
            ),
            (
                "PodFailed",
                "Evicted: the node was low on resource",
                (
                    placed(
                        phase="Failed",
                        ran=True,
                        reason="Evicted",
                        message="the node was low on resource",
                    ),
                ),
            ),
            ("JobFailed", "Job has failed", ()),
        )
    },
}


def status_of(row: Row) -> GPUJobStatus:
    row.job.status = row.before
    try:
        return gpujob_status(
            row.job,
            [found for found in map(job_record, row.jobs) if found is not None],
            map(record, row.pods),
            project=ProjectName("team-a"),
            known=row.known,
            now=NOW,
        )
    finally:
        row.job.status = {}


@pytest.mark.parametrize("case", ROWS)
def test_each_state_says_what_is_so(case: str) -> None:
    row = ROWS[case]
    status = status_of(row)
    phase, reason, message = row.says
    assert (status.phase, status.reason) == (phase, reason), status.message
    assert message in status.message
    assert bool(status.message) == bool(reason)
    assert len(status.message) < 1000


_CANNOT_START = {
    "ImageNotPulled",
    "ContainerNotStarted",
    "VolumeNotMounted",
    "SandboxNotCreated",
}


@pytest.mark.parametrize("case", ROWS)
def test_a_condition_says_when_a_pod_cannot_start_and_only_then(case: str) -> None:
    status = status_of(ROWS[case])
    found = [c for c in status.conditions if c.type == "CannotStart"]
    assert bool(found) is (status.reason in _CANNOT_START)
    for each in found:
        assert (each.status, each.reason, each.message) == ("True", status.reason, status.message)


def test_every_word_is_reached_by_a_row_above() -> None:
    reached = {row.says[1] for row in ROWS.values()}
    of_sweeps = {each.value for each in SweepReason}  # tests of sweeps reach those
    assert {state.reason for state in states.STATES} - of_sweeps == reached - of_sweeps


def test_every_word_has_one_row_in_the_table() -> None:
    told = [state.reason for state in states.STATES if state.reason]
    assert sorted(told) == sorted(set(told))
    not_told = {SweepReason.NONE, SweepReason.ALL_TRIALS_ENDED}
    assert set(told) == {*Reason, *SweepReason} - not_told


@pytest.mark.parametrize("case", ROWS)
def test_a_job_that_neither_runs_nor_has_ended_has_a_reason(case: str) -> None:
    status = status_of(ROWS[case])
    assert status.reason or status.pods.running or status.phase == "Succeeded"


@pytest.mark.parametrize("case", ROWS)
def test_a_status_that_was_written_changes_nothing_by_itself(case: str) -> None:
    row = ROWS[case]
    first = status_of(row)
    again = status_of(replace(row, before=first.to_json()))
    assert (again.reason, again.message, again.pods) == (first.reason, first.message, first.pods)
    assert again.phase == first.phase or (first.phase, again.phase) == ("Pending", "Running")


def test_explain_lists_every_word() -> None:
    status = KINDS[0].definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    told = status["properties"]["status"]["properties"]["reason"]["description"]
    for state in states.STATES:
        assert not state.reason or f"{state.reason}: {state.means}" in told
