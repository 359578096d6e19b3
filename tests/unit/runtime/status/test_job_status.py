"""What a GPUJob's status says of what is known."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pytest
from tests.unit.state.builders import half, make_gpujob, make_job, make_pod

from gpu_scheduler.api import states
from gpu_scheduler.api.allocation import annotations
from gpu_scheduler.api.gpujob import GPUJobStatus
from gpu_scheduler.core.model.decision import (
    Assignment,
    DeviceAllocation,
    Reason,
    Reservation,
    ReservationReason,
    Wait,
)
from gpu_scheduler.core.model.request import JobKey, PodShape, PodUID, ProjectName
from gpu_scheduler.kube.objects import Job, Pod
from gpu_scheduler.runtime.eviction.eviction_costs import EvictionCost
from gpu_scheduler.runtime.eviction.preemption import Preempted
from gpu_scheduler.runtime.status.job_status import gpujob_status
from gpu_scheduler.runtime.status.states import JobContext
from gpu_scheduler.state.jobs.job import GPUJobRecord, job_record
from gpu_scheduler.state.pods.pod import record
from gpu_scheduler.state.queue.nominated import NominatedPod

NO_GPU = annotations("a", ())  # of a placed pod that asked for none
THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
TEAM = ProjectName("team-a")
WAIT = Wait(make_gpujob().key, Reason.FRAGMENTED, "best node a has 0.3 free", 3)


def status_of(
    job: GPUJobRecord | None = None,
    jobs: tuple[Job, ...] = (),
    pods: tuple[Pod, ...] = (),
    wait: Wait | None = None,
    now: str = NOW,
    preempted: Preempted | None = None,
    assumed: Mapping[PodUID, Assignment] = MappingProxyType({}),
    cost: EvictionCost | None = None,
) -> GPUJobStatus:
    records = [found for found in map(job_record, jobs) if found is not None]
    return gpujob_status(
        job or make_gpujob(),
        records,
        map(record, pods),
        project=TEAM,
        now=now,
        known=JobContext(
            wait=wait, preempted=preempted, assumed=assumed, cost=cost or EvictionCost()
        ),
    )


def running(name: str = "job-0", **settings: Any) -> Pod:
    return make_pod(name, node="a", devices=half(), phase="Running", **settings)


@dataclass
class Row:
    """What is known, and what the status says: phase, reason, message, pods, GPU, summary."""

    says: tuple[Any, ...]
    job: GPUJobRecord = field(default_factory=make_gpujob)
    jobs: tuple[Job, ...] = (make_job(),)
    pods: tuple[Pod, ...] = ()
    wait: Wait | None = None


MAKING = "Job job exists, its next pods are being made"
STARTING = "placed on a, containers are starting"
SUSPENDED = "spec.suspend is true: set it to false to go on"
FOUR = {"parallelism": 2, "completions": 4}
ROWS = {
    "just seen": Row(
        ("Pending", "CreatingJob", "it is being checked, then", (0, 0, 0, 0), "0/0.5", "0/0/1"),
        jobs=(),
    ),
    "refused": Row(
        ("Pending", "Invalid", "spec.gpu: ", (0, 0, 0, 0), "0/?", "0/0/0"),
        make_gpujob(gpu=1.5),
        jobs=(),
        wait=WAIT,
    ),
    "waiting": Row(
        ("Pending", "Fragmented", WAIT.message, (1, 0, 0, 0), "0/0.5", "0/0/1"),
        pods=(make_pod(),),
        wait=WAIT,
    ),
    "placed": Row(
        ("Pending", "Starting", STARTING, (1, 0, 0, 0), "0.5/0.5", "0/0/1"),
        pods=(make_pod(node="a", devices=half()),),
    ),
    "running": Row(
        ("Running", "", "", (0, 1, 0, 0), "0.5/0.5", "1/0/1"),
        pods=(running(),),
    ),
    "running, and the next pod waits": Row(
        ("Running", "Fragmented", WAIT.message, (1, 1, 1, 0), "0.5/1", "1/1/4"),
        make_gpujob(**FOUR),
        (make_job(parallelism=2, succeeded=1),),
        (running(), make_pod("job-1")),
        WAIT,
    ),
    "suspended": Row(
        ("Suspended", "Suspended", SUSPENDED, (0, 0, 0, 0), "0/0.5", "0/0/1"),
        make_gpujob(suspend=True),
        wait=WAIT,
    ),
    "suspended, its pods still going": Row(
        ("Suspended", "Suspended", SUSPENDED, (0, 1, 0, 0), "0.5/0.5", "1/0/1"),
        make_gpujob(suspend=True),
        pods=(running(deleting=True),),
    ),
    "succeeded": Row(
        ("Succeeded", "", "", (0, 0, 4, 1), "0/1", "0/4/4"),
        make_gpujob(**FOUR),
        (make_job(succeeded=4, failed=1, ended="Complete"),),
        (make_pod(node="a", devices=half(), phase="Succeeded"),),
        WAIT,
    ),
    "failed": Row(
        ("Failed", "JobFailed", "index 1 used up its retries", (0, 0, 1, 2), "0/1", "0/1/4"),
        make_gpujob(**FOUR),
        (make_job(succeeded=1, failed=2, ended="Failed", message="index 1 used up its retries"),),
    ),
    "whole GPUs": Row(
        ("Pending", "CreatingPods", MAKING, (0, 0, 0, 0), "0/6", "0/0/3"),
        make_gpujob(gpu=2, parallelism=3),
        (make_job(parallelism=3),),
    ),
    "memory": Row(
        ("Pending", "CreatingPods", MAKING, (0, 0, 0, 0), "0/20Gi", "0/0/1"),
        make_gpujob(gpuMemory="20Gi"),
    ),
    "fewer pods in all than at once": Row(
        ("Pending", "CreatingPods", MAKING, (0, 0, 0, 0), "0/1", "0/0/2"),
        make_gpujob(parallelism=9, completions=2),
        (make_job(parallelism=9),),
    ),
    "a Job that is narrower than its GPUJob": Row(
        ("Running", "Fragmented", WAIT.message, (99_998, 1, 1, 0), "0.5/50000", "1/1/100000"),
        make_gpujob(parallelism=100_000),
        (make_job(parallelism=30, succeeded=1),),
        (running(), *(make_pod(f"job-{i}") for i in range(1, 30))),
        WAIT,
    ),
    "the Job of an earlier GPUJob does not count": Row(
        ("Pending", "CreatingJob", "it is being checked", (0, 0, 0, 0), "0/0.5", "0/0/1"),
        jobs=(make_job(owner_uid="earlier", ended="Complete", succeeded=1),),
    ),
}


@pytest.mark.parametrize("case", ROWS)
def test_what_the_status_says(case: str) -> None:
    row = ROWS[case]
    status = status_of(row.job, row.jobs, row.pods, row.wait)
    counts = status.pods
    numbers = (counts.pending, counts.running, counts.succeeded, counts.failed)
    phase, reason, message, *rest = row.says
    assert (status.phase, status.reason) == (phase, reason)
    assert status.message.startswith(message) and bool(status.message) == bool(message)
    assert [numbers, status.gpu, status.pod_summary] == rest
    waits = row.wait is not None and status.reason == row.wait.reason
    assert status.queue_position == (3 if waits else None)
    assert (status.project, status.observed_generation) == ("team-a", row.job.generation)


def after(status: GPUJobStatus, **settings: Any) -> GPUJobRecord:
    """The GPUJob once that status was written."""
    return make_gpujob(status=status.to_json(), **settings)


@pytest.mark.parametrize("case", ROWS)
def test_equal_knowledge_gives_an_equal_status_later_too(case: str) -> None:
    row = ROWS[case]
    first = status_of(row.job, row.jobs, row.pods, row.wait, now=THEN)
    row.job.status = first.to_json()
    try:
        assert status_of(row.job, row.jobs, row.pods, row.wait, now=NOW) == first
    finally:
        row.job.status = {}


def test_a_pod_whose_placement_is_not_confirmed_says_so_until_another_runs() -> None:
    pod = make_pod()
    place = Assignment(make_gpujob().key, PodUID(pod.metadata.uid), "a", half())
    status = status_of(jobs=(make_job(),), pods=(pod,), assumed={place.pod: place})
    assert (status.phase, status.reason) == ("Pending", "Placing")
    assert status.message == "goes to a: the API server has not confirmed it yet"
    status = status_of(jobs=(make_job(),), pods=(pod, running("1")), assumed={place.pod: place})
    assert (status.phase, status.reason, status.message) == ("Running", "", "")


def times(status: GPUJobStatus) -> dict[str, tuple[str, str]]:
    return {c.type: (c.status, c.last_transition_time) for c in status.conditions}


def test_a_condition_keeps_its_time_until_it_changes() -> None:
    job = make_gpujob()
    job.templates = {}
    first = status_of(job, now=THEN)
    assert times(first) == {"Accepted": ("True", THEN), "Placed": ("False", THEN)}
    second = status_of(after(first), (make_job(),), (running(),))
    assert times(second) == {"Accepted": ("True", THEN), "Placed": ("True", NOW)}


def test_what_nobody_has_judged_yet_is_not_said_to_be_accepted() -> None:
    assert "Accepted" not in times(status_of())
    refused = make_gpujob()
    refused.problem = "spec.template: wrong"
    mended = after(status_of(refused), generation=2)
    assert "Accepted" not in times(status_of(mended))
    mended.templates = {}
    accepted = status_of(mended)
    assert times(accepted)["Accepted"][0] == "True"
    assert times(status_of(after(accepted)))["Accepted"][0] == "True", "for the next leader too"


@pytest.mark.parametrize("kind", ["problem", "unfollowed"])
def test_a_refusal_is_a_condition_with_its_sentence(kind: str) -> None:
    job = make_gpujob()
    setattr(job, kind, "metadata.name: taken")
    (accepted, _) = status_of(job).conditions
    assert (accepted.type, accepted.status) == ("Accepted", "False")
    assert (accepted.reason, accepted.message) == ("Invalid", "metadata.name: taken")


def test_a_job_that_runs_on_for_its_suspension_was_refused_does_not_say_that_it_is_suspended():
    job = make_gpujob(suspend=True)
    job.unfollowed = "spec.suspend: no"
    found = status_of(job, (make_job(),), (running(),))
    assert (found.phase, found.reason, found.message) == ("Running", "Invalid", "spec.suspend: no")


def test_a_job_that_goes_on_is_not_running_while_pods_of_before_its_suspension_end():
    job = make_gpujob()
    job.status = {"phase": "Suspended"}
    found = status_of(job, (make_job(),), (running(deleting=True),))
    assert (found.phase, found.reason) == ("Pending", "EndingPods")
    found = status_of(after(found), (make_job(),), (running(deleting=True),))
    assert (found.phase, found.reason) == ("Pending", "EndingPods")
    later = status_of(after(found), (make_job(),), (make_pod(node="a", devices=half()),))
    assert (later.phase, later.reason) == ("Pending", "Starting")


def test_a_pod_whose_claim_is_missing_has_no_volume_and_its_user_moves_it_on():
    said = 'persistentvolumeclaim "data" not found'
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": said,
    }
    pod = make_pod(path="other", devices=half(), allocated_node="a", conditions=(condition,))
    found = status_of(pods=(pod,))
    assert (found.phase, found.reason) == ("Pending", "VolumeNotMounted")
    assert found.message.startswith("PersistentVolumeClaim data of namespace team-a is not there")
    state = states.of(found.reason)
    assert state is not None and state.mover.startswith("its owner mends the cause")


def test_an_end_stays_when_its_job_is_gone() -> None:
    for ended, phase in (("Complete", "Succeeded"), ("Failed", "Failed")):
        job = make_job(succeeded=3, failed=1, ended=ended, message="index 1 failed")
        first = status_of(jobs=(job,), now=THEN)
        later = status_of(after(first))
        assert later == first
        assert (later.phase, later.pods.succeeded) == (phase, 3)


def test_an_end_has_a_condition() -> None:
    complete = status_of(jobs=(make_job(ended="Complete"),))
    assert times(complete)["Complete"] == ("True", NOW)
    failed = status_of(jobs=(make_job(ended="Failed", message="no more retries"),))
    assert times(failed)["Failed"] == ("True", NOW)
    assert failed.conditions[-1].message == "no more retries"


def test_placements_show_the_newest_eight() -> None:
    pods = tuple(running(f"job-{i}", version=i + 1) for i in range(10))
    placements = status_of(pods=pods).placements
    assert [p.pod for p in placements] == [f"job-{i}" for i in range(9, 1, -1)]


def test_a_placement_adds_up_the_caps_of_containers_on_one_device() -> None:
    devices = (
        DeviceAllocation(0, "GPU-0", 500, 20000),
        DeviceAllocation(1, "GPU-0", 200, 8000),
        DeviceAllocation(1, "GPU-1", 1, 5),
    )
    (placement,) = status_of(pods=(make_pod(node="a", devices=devices),)).placements
    assert (placement.node, placement.devices) == ("a", ["GPU-0", "GPU-1"])
    assert placement.memory_mib == 28000


def test_what_is_held_for_pods_without_a_place_is_said_by_device_until_the_job_ends() -> None:
    key = make_gpujob().key
    places = [Assignment(key, PodUID(f"p{n}"), "a", half("1")) for n in (0, 1)]
    nominated = [NominatedPod(place, "", n, n + 1, PodShape()) for n, place in enumerate(places)]
    kept = Reservation(key, key, "b", ReservationReason.RESERVED, None, half("0"))  # type: ignore[arg-type]
    context = JobContext(nominated=nominated, reservations=[kept])
    status = gpujob_status(make_gpujob(), [], [], project=TEAM, now=NOW, known=context)
    assert [each.to_json() for each in status.held_room or ()] == [
        {"node": "a", "device": "1", "milliGPU": 1000, "heldAs": "nominated"},
        {"node": "b", "device": "0", "milliGPU": 500, "heldAs": "reserved"},
    ]
    over = make_gpujob(status={"phase": "Succeeded"})
    status = gpujob_status(over, [], [], project=TEAM, now=NOW, known=context)
    assert (status.held_room, status_of().held_room) == (None, None)


def test_nodes_are_summed_up() -> None:
    assert status_of().node is None
    pods = tuple(make_pod(n, node=n, devices=half(), phase="Running") for n in "abb")
    assert status_of(pods=pods).node == "a +1 more"


def test_a_pod_that_has_ended_holds_nothing() -> None:
    pods = (running(), make_pod("job-1", node="a", devices=half(), phase="Failed"))
    assert status_of(pods=pods).allocated_gpu == "0.5"


def test_a_sentence_that_is_too_long_for_the_api_is_cut() -> None:
    """A tenant can make one: container names, for example, have no limit in the CRD."""
    job = make_gpujob()
    job.problem = "x" * 100_000
    status = status_of(job)
    assert 1000 < len(status.message) <= 4096
    assert len(status.conditions[0].message) <= 4096
    failed = status_of(jobs=(make_job(ended="Failed", message="y" * 30_000),))
    assert 1000 < len(failed.message) <= 4096
    assert len(failed.conditions[-1].message) <= 4096
    wait = Wait(job.key, Reason.UNSATISFIABLE, "z" * 9999, 1)
    assert len(status_of(wait=wait).message) <= 4096


LOST = Preempted(JobKey("team-b/urgent"), PodUID("uid-job-0"))


def test_a_job_whose_pod_is_going_says_for_whom() -> None:
    status = status_of(jobs=(make_job(),), pods=(running(deleting=True),), preempted=LOST)
    assert (status.phase, status.reason) == ("Running", "Preempted")
    assert status.message == "gives way to team-b/urgent, then waits for its turn"
    assert status.preempted_by == "team-b/urgent"


def test_a_job_that_had_to_give_way_says_what_it_waits_for_now() -> None:
    status = status_of(jobs=(make_job(),), pods=(make_pod(uid="next"),), wait=WAIT, preempted=LOST)
    assert (status.phase, status.reason) == ("Pending", "Preempted")
    assert status.message == "gave way to team-b/urgent; best node a has 0.3 free"
    assert status.queue_position == 3


@pytest.mark.parametrize(
    ("told", "now", "says"),
    [(None, 5000, 5000), (3, 2, 2), (100, 99, 99), (5000, 4951, 5000), (5000, 4950, 4950)]
    + [(1000, 1009, 1000), (1000, 1010, 1010), (1, 5000, 5000)],
)
def test_a_place_far_back_is_told_again_when_it_is_a_hundredth_off(
    told: int | None, now: int, says: int
) -> None:
    wait = Wait(JobKey("team-a/job"), Reason.WAITING_FOR_GPU, "no room", now)
    before = make_gpujob(status={} if told is None else {"queuePosition": told})
    assert status_of(before, wait=wait).queue_position == says


def test_what_a_job_can_never_get_is_said_even_after_it_gave_way() -> None:
    never = Wait(make_gpujob().key, Reason.EXCEEDS_QUOTA, "needs 4", 1)
    status = status_of(jobs=(make_job(),), pods=(make_pod(uid="next"),), wait=never, preempted=LOST)
    assert (status.reason, status.message) == ("ExceedsQuota", "needs 4")


def test_a_job_says_how_often_it_was_evicted_and_what_that_cost() -> None:
    never, nothing, much = (
        status_of(cost=cost).to_json()
        for cost in (EvictionCost(), EvictionCost(1, 0.4), EvictionCost(3, 130.0))
    )
    assert "evictions" not in never
    assert "lostGPUSeconds" not in never
    assert (nothing["evictions"], nothing["lostGPUSeconds"]) == (1, 0)
    assert (much["evictions"], much["lostGPUSeconds"]) == (3, 130)


def test_after_a_restart_the_status_itself_remembers_for_whom() -> None:
    job = make_gpujob()
    job.status = {"preemptedBy": "team-b/urgent"}
    status = status_of(job, jobs=(make_job(),), pods=(make_pod(uid="next"),), wait=WAIT)
    assert (status.reason, status.preempted_by) == ("Preempted", "team-b/urgent")


def test_a_job_that_has_its_pods_again_has_given_way_to_nobody() -> None:
    job = make_gpujob()
    job.status = {"preemptedBy": "team-b/urgent"}
    status = status_of(job, jobs=(make_job(),), pods=(running(uid="next"),), preempted=LOST)
    assert (status.reason, status.preempted_by) == ("", None)


def test_between_its_old_and_its_new_pod_a_job_says_for_whom() -> None:
    status = status_of(jobs=(make_job(),), preempted=LOST)
    assert (status.phase, status.reason) == ("Pending", "Preempted")
    assert status.message == "gave way to team-b/urgent; its pods are about to be made anew"


def test_indexes_that_failed_for_good_are_not_missed() -> None:
    job = make_gpujob(parallelism=2, completions=2)
    job.status = {"preemptedBy": "team-b/urgent"}
    status = status_of(job, jobs=(make_job(completions=2, failed_indexes="1"),), pods=(running(),))
    assert status.preempted_by is None


# --- roles ---

ROLES = [
    {"name": "lead", "gpu": 1},
    {"name": "work", "replicas": 2, "gpu": 0.5},
    {"name": "ps"},
]


def role_job(role: str, **settings: Any) -> Job:
    return make_job(f"job-{role}", uid=f"uid-{role}", owner="job", **settings)


def of_role(role: str, index: int = 0, **settings: Any) -> Pod:
    return make_pod(
        f"job-{role}-{index}",
        job=f"uid-{role}",
        index=index,
        node=settings.pop("node", "a"),
        **settings,
    )


def test_counts_and_gpus_are_those_of_all_roles() -> None:
    status = status_of(
        make_gpujob(roles=ROLES),
        (role_job("lead"), role_job("work", succeeded=1), role_job("ps")),
        (
            of_role("lead", devices=half("0", 1000), phase="Running"),
            of_role("work", 1, devices=half("1"), phase="Running", node="b"),
            of_role("ps", annotations_=NO_GPU, phase="Running"),
        ),
    )
    assert (status.phase, status.gpu, status.pod_summary) == ("Running", "1.5/2", "3/1/4")
    assert status.node == "a +1 more"
    assert {p.pod: p.devices for p in status.placements} == {
        "job-lead-0": ["0"],
        "job-work-1": ["1"],
        "job-ps-0": [],
    }


def test_a_job_has_succeeded_when_every_role_has() -> None:
    job = make_gpujob(roles=ROLES)
    done = [role_job(role, ended="Complete", succeeded=n) for role, n in (("lead", 1), ("work", 2))]
    assert status_of(job, tuple(done)).reason == "CreatingJob"  # the third one
    assert status_of(job, (*done, role_job("ps"))).phase == "Running"
    status = status_of(job, (*done, role_job("ps", ended="Complete", succeeded=1)))
    assert (status.phase, status.pod_summary) == ("Succeeded", "0/4/4")


def test_a_role_that_has_failed_is_named_and_ends_the_job() -> None:
    status = status_of(
        make_gpujob(roles=ROLES),
        (role_job("lead"), role_job("work", ended="Failed", message="index 1 failed")),
    )
    assert (status.phase, status.message) == ("Failed", "role work: index 1 failed")


def test_a_gang_that_was_evicted_says_so_until_all_members_are_back() -> None:
    job = make_gpujob(roles=ROLES, status={"preemptedBy": "team-b/urgent"})
    jobs = tuple(role_job(role) for role in ("lead", "work", "ps"))
    back = [
        of_role("lead", devices=half("0", 1000), phase="Running"),
        of_role("work", 0, devices=half("1"), phase="Running"),
        of_role("work", 1, devices=half("1"), phase="Running"),
    ]
    assert status_of(job, jobs, tuple(back)).preempted_by == "team-b/urgent"
    back.append(of_role("ps", annotations_=NO_GPU, phase="Running"))
    assert status_of(job, jobs, tuple(back)).preempted_by is None


def test_what_does_not_count_of_a_template_is_said_as_it_was_found_when_it_was_judged() -> None:
    job, said = make_gpujob(), "spec.template.spec.schedulerName does not count"
    job.templates, job.unhonoured = {}, said
    first = gpujob_status(job, (), (), project=None, now="2026-01-01T00:00:00Z")
    assert (first.conditions[0].type, first.conditions[0].message) == ("Accepted", said)
    later = make_gpujob(status=first.to_json())  # of a leader that has not judged it yet
    second = gpujob_status(later, (), (), project=None, now="2026-01-01T00:00:00Z")
    assert second.conditions[0] == first.conditions[0]
