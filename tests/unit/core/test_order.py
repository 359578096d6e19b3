from tests.unit.builders import job, project, shape

from gpu_scheduler.core.order import job_rank, project_rank
from gpu_scheduler.core.queues import queue_up

S = shape(500)


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


def test_the_project_with_the_smallest_share_of_its_quota_comes_first():
    ranks = {
        "half": project_rank(project("half", 2000), 1000),
        "third": project_rank(project("third", 3000), 1000),
        "idle": project_rank(project("idle", 1), 0),
        "none": project_rank(project("none", 0), 0),
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
    queues, orphans = queue_up({b.name: b, a.name: a}, jobs)
    assert [[pod.name for _, pod in q.pending] for q in queues] == [
        ["first-0", "second-0", "second-1"],
        ["other-0"],
    ]
    assert [o.key for o in orphans] == ["ns/orphan"]
