from tests.unit.builders import ClusterBuilder, job, pod_shape, project

from gpu_scheduler.core.model.pod_request import PodRequests
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.queue.order import job_rank, project_rank
from gpu_scheduler.core.queue.pod_group import PodGroup
from gpu_scheduler.core.queue.queues import Queues

S = pod_shape(500)


class Anything:
    """Whatever is asked for may start some day."""

    def never(self, group: PodGroup) -> None:
        return None


def test_interactive_then_priority_then_age_then_key():
    jobs = [
        job("late", S, created=9),
        job("b", S, created=5),
        job("a", S, created=5),
        job("urgent", S, priority=90, created=20),
        job("notebook", S, interactive=True, priority=0, created=30),
        job("low", S, priority=10, created=0),
    ]
    ranked = [j.key for j in sorted(jobs, key=job_rank)]
    assert ranked == ["ns/notebook", "ns/urgent", "ns/a", "ns/b", "ns/late", "ns/low"]


def test_the_project_with_the_smallest_part_of_its_fair_share_comes_first():
    def rank(name: str, held: int, share: int) -> tuple[float, int, str]:
        return project_rank(project(name).name, held, share)

    ranks = {
        "half": rank("half", 1000, 2000),
        "third": rank("third", 1000, 3000),
        "idle": rank("idle", 0, 1),
        "none": rank("none", 0, 0),
    }
    assert sorted(ranks, key=lambda name: ranks[name]) == ["idle", "third", "half", "none"]


def test_queues_hold_the_pods_of_each_project_in_order():
    a, b = project("team-a"), project("team-b")
    jobs = [
        job("second", S, 2, created=2),
        job("first", S, created=1),
        job("other", S, project="team-b"),
        job("orphan", S, project="gone"),
    ]
    pod_requests = PodRequests(Snapshot(ClusterBuilder().node("a").obj()))
    queues, orphans = Queues(pod_requests, {b.name: b, a.name: a}).line_up(jobs, Anything())
    assert [[pod.name for group in q.groups() for pod in group.pods] for q in queues] == [
        ["first-0", "second-0", "second-1"],
        ["other-0"],
    ]
    assert [o.key for o in orphans] == ["ns/orphan"]
