"""Pods that wait: found in any order of news, kept off nodes for a while, worked out again."""

from dataclasses import replace

from tests.unit.state.builders import make_gpujob, make_job, make_pod

from gpu_scheduler.core.model.request import JobKey, PodUID, ProjectName, WaitingJob
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord, job_record
from gpu_scheduler.state.pods.pod import record
from gpu_scheduler.state.queue.waiting import PendingPods

KEY = JobKey("team-a/job")
TEAM = ProjectName("team-a")
LATER = 100.0


def job_of(uid: str = "job-uid", owner_uid: str = "gpujob-uid") -> JobRecord:
    found = job_record(make_job(uid=uid, owner_uid=owner_uid))
    assert found is not None
    return found


JOB = job_of()


class Room(PendingPods):
    """Puts pods as the state does."""

    def enter(self, pod: Pod, job: JobRecord | None = JOB) -> bool:
        return self.put(record(pod), pod, job)

    def ready(self, job: GPUJobRecord | None = None, project: str = TEAM) -> WaitingJob | None:
        return self.job(job or make_gpujob(), ProjectName(project))

    def names(self) -> list[str]:
        found = self.ready()
        return [pod.name for pod in found.pods] if found else []


def test_pods_come_in_the_order_of_their_index() -> None:
    room = Room()
    for index in (10, 2, 0):
        room.enter(make_pod(f"job-{index}", index=index))
    assert room.names() == ["job-0", "job-2", "job-10"]


def test_pods_of_later_segments_of_a_sweep_come_later() -> None:
    room = Room()
    for uid, first, index in (("late", 1000, 0), ("early", 0, 999)):
        job = replace(job_of(uid), first_trial=first)
        room.enter(make_pod(f"{uid}-{index}", job=uid, index=index), job)
    assert room.names() == ["early-999", "late-0"]


def test_a_pod_that_came_before_its_job_waits_for_it() -> None:
    room = Room()
    room.enter(make_pod(), None)
    assert (len(room), list(room.keys()), room.names()) == (1, [], [])
    assert room.adopt(JOB)
    assert (list(room.keys()), room.names()) == ([KEY], ["job-0"])
    assert not room.adopt(JOB)
    assert [pod.uid for pod, _ in room.take_early()] == [PodUID("uid-job-0")]
    assert room.take_early() == []


def test_one_that_waits_no_more_came_early_for_nothing() -> None:
    room = Room()
    room.enter(make_pod(), None)
    assert room.adopt(JOB) and room.drop(PodUID("uid-job-0"))
    assert room.take_early() == []


def test_adopting_a_job_without_waiting_pods_is_no_news() -> None:
    assert not Room().adopt(JOB)


def test_the_last_pod_takes_its_job_with_it() -> None:
    room = Room()
    room.enter(make_pod())
    assert room.drop(PodUID("uid-job-0"))
    assert (len(room), list(room.keys()), room.names()) == (0, [], [])
    assert not room.drop(PodUID("uid-job-0"))


def test_a_job_keeps_its_other_pods() -> None:
    room = Room()
    room.enter(make_pod("job-0"))
    room.enter(make_pod("job-1", index=1))
    room.enter(make_pod("other-0", job="second-uid"), job_of("second-uid"))
    room.drop(PodUID("uid-job-0"))
    assert sorted(room.names()) == ["job-1", "other-0"]


def test_news_that_change_nothing_of_the_spec_are_no_news_but_are_kept() -> None:
    room = Room()
    assert room.enter(make_pod(version=1))
    assert not room.enter(make_pod(version=2))
    kept = room.pod(PodUID("uid-job-0"))
    assert kept is not None
    assert kept.metadata.resource_version == "2"


def test_a_changed_spec_changes_the_pod_kind() -> None:
    room = Room()
    room.enter(make_pod(cpu="1"))
    before = room.ready()
    assert room.enter(make_pod(cpu="2", version=2))
    after = room.ready()
    assert before is not None and after is not None
    assert [w.pods[0].pod_shape.cpu_milli for w in (before, after)] == [1000, 2000]
    assert room.resources(PodUID("uid-job-0")).cpu_milli == 2000


def test_the_pod_kind_follows_the_gpujob() -> None:
    room = Room()
    room.enter(make_pod())
    before = room.ready(make_gpujob(gpu=0.5))
    room.forget_job(KEY)
    after = room.ready(make_gpujob(gpu=0.25, gpuModels=["A100"]))
    assert before is not None and after is not None
    assert [w.pods[0].pod_shape.nominal_milli for w in (before, after)] == [500, 250]
    assert after.pods[0].pod_shape.models == ("a100",)


def test_pods_of_one_kind_share_a_pod_kind() -> None:
    room = Room()
    room.enter(make_pod("job-0"))
    room.enter(make_pod("job-1", index=1))
    found = room.ready()
    assert found is not None
    assert found.pods[0].pod_shape is found.pods[1].pod_shape


def test_what_did_not_change_is_not_built_again() -> None:
    room = Room()
    room.enter(make_pod())
    assert room.ready() is room.ready()
    other = room.ready(project="team-b")
    assert other is not None
    assert other.project == "team-b"


def test_a_job_without_a_readable_spec_has_nothing_to_place() -> None:
    room = Room()
    room.enter(make_pod())
    assert room.ready(make_gpujob(gpu=1.5)) is None


def avoided(room: Room) -> set[str]:
    found = room.ready()
    assert found is not None
    return set(found.pods[0].avoid)


def test_a_node_is_avoided_until_its_time_is_over() -> None:
    room = Room()
    room.enter(make_pod())
    assert avoided(room) == set()
    room.avoid(KEY, "a", 0.0, 10.0)
    room.avoid(KEY, "b", 0.0, 20.0)
    assert avoided(room) == {"a", "b"}
    assert room.next_expiry() == 10.0
    assert not room.expire(9.9)
    assert room.expire(10.0)
    assert avoided(room) == {"b"}
    assert room.next_expiry() == 20.0


def test_what_is_avoided_runs_out_even_when_nothing_waits() -> None:
    room = Room()
    room.avoid(KEY, "a", 0.0, 10.0)
    assert room.expire(LATER)
    assert room.next_expiry() is None
    assert not room.expire(LATER)


def test_a_pod_that_its_job_released_belongs_to_nobody() -> None:
    room = Room()
    room.enter(make_pod())
    room.enter(make_pod("job-1", index=1))
    room.enter(make_pod(job=None, version=2), None)
    assert room.names() == ["job-1"]
    assert room.drop(PodUID("uid-job-0"))
    assert room.names() == ["job-1"]


def test_pods_of_a_job_that_is_gone_wait_for_nobody_until_it_is_seen_again() -> None:
    room = Room()
    room.enter(make_pod())
    assert room.disown("job-uid")
    assert (len(room), list(room.keys()), room.names()) == (1, [], [])
    assert not room.disown("job-uid")
    assert room.adopt(JOB)
    assert room.names() == ["job-0"]
