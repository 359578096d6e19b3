"""What the reflectors tell reaches the state, and those who must hear of it."""

import pytest
from tests.unit.state.builders import make_gpujob, make_job, make_node, make_pod
from tests.unit.state.queue.test_prospective import accepted, place
from tests.unit.state.test_cluster_state import make_cluster_state, waiting

from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.runtime.informers.event_handlers import JobHandler, NodeHandler, PodHandler
from gpu_scheduler.state.pods.pod import PodRecord

KEY = make_gpujob().key


class Observer:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def observe(self, pod: PodRecord) -> None:
        self.seen.append(f"{pod.name}@{pod.version}")

    def gone(self, uid: PodUID) -> None:
        self.seen.append(f"{uid} gone")


def test_pods() -> None:
    state, observer = make_cluster_state(), Observer()
    handler = PodHandler(state, observer)
    handler.changed(make_pod(version=2))
    handler.changed(make_pod(version=1))  # old news
    assert waiting(state) == {"team-a/job": ["job-0"]}
    handler.gone("team-a", "job-0", "uid-job-0")
    assert waiting(state) == {}
    assert observer.seen == ["job-0@2", "uid-job-0 gone"]
    assert state.changes.some.is_set()


def test_nodes() -> None:
    state = make_cluster_state()
    handler = NodeHandler(state)
    handler.changed(make_node("b"))
    handler.gone("", "a", "uid-a")
    assert [node.name for node in state.snapshot().nodes] == ["b"]
    assert state.changes.some.is_set()


def test_jobs_that_end_or_go_are_looked_at() -> None:
    state, told, free = make_cluster_state(), list[JobKey](), list[str]()
    handler = JobHandler(state, told.append, name_free=free.append)
    handler.changed(make_job(version=2, parallelism=4))
    assert told == []
    handler.changed(make_job(version=3, parallelism=4, ended="Complete"))
    handler.changed(make_job(version=4, parallelism=4, deleting=True))
    handler.gone("team-a", "job", "job-uid")
    assert free == []
    handler.gone("team-a", "other", "unknown")
    handler.changed(make_job("x", uid="x", owner_uid=""))
    assert told == [KEY, KEY, KEY] and free == ["team-a"]
    assert state.jobs.believed == {}


@pytest.mark.parametrize("event", ["its Job counts none", "it is deleted", "it is gone"])
def test_pods_with_places_are_asked_for_once_the_controller_has_done_with_others(
    event: str,
) -> None:
    """They got their places while the pods of a Job that somebody suspended were on their way."""
    state, told = accepted(parallelism=2, completions=5), list[JobKey]()
    jobs = JobHandler(state, told.append, look=told.append)
    pods = PodHandler(state, Observer(), look=told.append)
    jobs.changed(make_job(completions=5, suspend=True, active=2))
    pods.changed(make_pod("job-1", node="a", phase="Running"))
    place(state)
    assert state.shrinks(state.jobs.believed["job-uid"]) and told == []
    match event:
        case "its Job counts none":
            jobs.changed(make_job(completions=5, suspend=True, version=2))
        case "it is deleted":
            pods.changed(make_pod("job-1", node="a", phase="Running", deleting=True, version=2))
        case "it is gone":
            pods.gone("team-a", "job-1", "uid-job-1")
    assert told == [KEY]
    for each in state.decisions.nominated.of(KEY):
        each.asked = True
    jobs.changed(make_job(completions=5, suspend=True, version=3))
    pods.changed(make_pod("job-2", deleting=True))
    assert told == [KEY], "its Job has been told"


def test_a_job_that_lost_its_owner_is_no_longer_the_gpujobs() -> None:
    """Whoever may edit Jobs can do that; otherwise its GPUJob would run for ever."""
    state, told = make_cluster_state(), list[JobKey]()
    handler = JobHandler(state, told.append)
    handler.changed(make_job(owner_uid="", version=2))
    assert (state.jobs.believed, told) == ({}, [KEY])
    handler.changed(make_job(version=3))
    assert list(state.jobs.believed) == ["job-uid"]


def test_old_news_of_a_job_that_had_no_owner_then_are_ignored() -> None:
    state, told = make_cluster_state(), list[JobKey]()
    state.job_changed(make_job(version=5))
    JobHandler(state, told.append).changed(make_job(owner_uid="", version=4))
    assert (list(state.jobs.believed), told) == (["job-uid"], [])


def test_a_job_that_an_editor_changed_is_looked_at() -> None:
    state, told = make_cluster_state(), list[JobKey]()
    handler = JobHandler(state, told.append)
    handler.changed(make_job(version=2, parallelism=100_000))
    assert told == [KEY]
    handler.changed(make_job(version=3, completions=5_000_000))
    assert (state.jobs.believed, told) == ({}, [KEY, KEY])
    handler.gone("team-a", "job", "job-uid")
    assert told == [KEY, KEY, KEY]
