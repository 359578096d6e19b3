"""A namespace that is being deleted: its Jobs go first, and nothing is made there any more."""

import asyncio
from typing import Any

from tests.unit.runtime.fake_client import NOT_FOUND, FakeClient
from tests.unit.runtime.jobs.test_reconcile import KEY, Case
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.builders import make_job, make_pod
from tests.unit.state.test_cluster_state import make_cluster_state, waiting
from tests.unit.sweeps.runtime.cases import Case as SweepCase
from tests.unit.sweeps.runtime.test_results import SECONDS, Store, done

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.kube.objects import Meta, Namespace
from gpu_scheduler.runtime.common.events import Events, InvolvedObject
from gpu_scheduler.runtime.informers.event_handlers import JobHandler, NamespaceHandler
from gpu_scheduler.sweeps.runtime.results import Results

JOB = "/apis/batch/v1/namespaces/team-a/jobs/job"


def namespace(name: str = "team-a", *, deleting: bool = True) -> Namespace:
    return Namespace(Meta(name=name, deletion_timestamp="2026-01-01T00:00:00Z" * deleting))


class GoingCase(Case):
    """A job in a namespace whose deletion has begun."""

    def __init__(self, **spec: Any) -> None:
        super().__init__(**spec)
        NamespaceHandler(self.state, self.queue.add).changed(namespace())


@virtual
async def test_its_jobs_are_deleted_with_their_pods_left_to_the_garbage_collector() -> None:
    case = GoingCase()
    case.state.job_changed(make_job())
    await case.handle()
    assert [(s.method, s.path, s.body) for s in case.client.sent] == [
        ("DELETE", JOB, {"uid": "job-uid", "propagation": "Background"})
    ]


@virtual
async def test_jobs_that_only_say_that_they_are_the_gpujobs_hold_up_a_namespace_as_well() -> None:
    case = GoingCase()
    case.state.job_changed(make_job(completions=5_000_000))
    assert case.state.jobs.believed == {}
    await case.handle()
    assert case.methods == ["DELETE"]


@virtual
async def test_nothing_is_tried_or_made_there_and_the_status_says_why() -> None:
    case = GoingCase()
    await case.handle()
    assert case.client.sent == [] and case.acceptance.judged == 0
    assert "namespace team-a is being deleted" in case.problem
    assert await case.keys_within(600) == [0.0], "asked for by the namespace, and by nobody else"


@virtual
async def test_a_job_that_is_gone_already_is_no_error_and_one_that_goes_is_not_deleted_twice() -> (
    None
):
    case = GoingCase()
    case.state.job_changed(make_job())
    case.answers = {"DELETE": NOT_FOUND}
    await case.handle()
    case.state.job_changed(make_job(version=9, deleting=True))
    await case.handle()
    assert case.methods == ["DELETE"]


@virtual
async def test_jobs_of_a_gpujob_that_went_before_them_are_deleted_too() -> None:
    case = GoingCase()
    case.state.job_changed(make_job())
    case.state.gpujob_gone(KEY)
    await case.handle()
    assert case.methods == ["DELETE"]


@virtual
async def test_elsewhere_no_job_is_deleted() -> None:
    case = Case()
    NamespaceHandler(case.state, case.queue.add).changed(namespace("team-b"))
    case.state.job_changed(make_job())
    await case.handle()
    assert case.client.of("DELETE") == []


def test_its_gpujobs_are_looked_at_once_and_so_are_jobs_that_appear_later() -> None:
    state, told = make_cluster_state(), list[JobKey]()
    handler, jobs = NamespaceHandler(state, told.append), JobHandler(state, told.append)
    handler.changed(namespace(deleting=False))
    assert told == []
    handler.changed(namespace())
    handler.changed(namespace())  # its conditions change several times
    assert told == [KEY]
    jobs.changed(make_job(version=9))  # of a request that was under way
    assert told == [KEY, KEY]


def test_a_namespace_of_the_same_name_is_another_one() -> None:
    state = make_cluster_state()
    handler = NamespaceHandler(state, lambda key: None)
    handler.changed(namespace())
    handler.gone("", "team-a", "uid")
    assert state.namespaces.terminating == set()
    handler.changed(namespace())
    handler.changed(namespace(deleting=False))
    assert state.namespaces.terminating == set()


def test_a_project_is_written_anew_when_a_namespace_of_it_comes_or_goes() -> None:
    state = make_cluster_state()
    handler = NamespaceHandler(state, lambda key: None)
    state.projects.take_touched()
    handler.changed(namespace(deleting=False))
    assert (
        list(state.projects.take_touched()) == ["team-a"] and "team-a" in state.namespaces.existing
    )
    handler.changed(namespace(deleting=False))
    handler.changed(namespace("elsewhere", deleting=False))
    assert list(state.projects.take_touched()) == [], "this says nothing new"
    handler.gone("", "team-a", "uid")
    assert (
        list(state.projects.take_touched()) == ["team-a"]
        and "team-a" not in state.namespaces.existing
    )


def test_its_gpujobs_are_looked_at_again_when_what_was_told_of_its_end_was_late() -> None:
    told = list[JobKey]()
    handler = NamespaceHandler(make_cluster_state(), told.append)
    handler.changed(namespace())
    handler.gone("", "team-a", "uid")
    assert told == [KEY, KEY], "else they would say for ever that their namespace goes"
    handler.gone("", "team-a", "uid")
    assert told == [KEY, KEY]


@virtual
async def test_no_pod_is_placed_there() -> None:
    case = GoingCase()
    case.state.job_changed(make_job())
    case.state.pod_changed(make_pod())
    assert waiting(case.state) == {"team-a/job": ["job-0"]}
    await case.handle()
    assert waiting(case.state) == {}


@virtual
async def test_no_event_is_written_there() -> None:
    client, going = FakeClient(), {"team-a"}
    events = Events(client, instance="me", clock=clock, terminating=going)  # type: ignore[arg-type]
    async with Running(events.run()):
        for name in ("team-a", "team-b"):
            events.say(InvolvedObject("GPUJob", name, "job", name), "Normal", "Reason", "message")
        await asyncio.sleep(1)
    assert [sent.path for sent in client.sent] == ["/api/v1/namespaces/team-b/events"]


@virtual
async def test_no_results_are_written_there() -> None:
    case, store, going = SweepCase(completions=2), Store(), {"team-a"}
    case.job(size=2)
    results = Results(
        store.client,  # type: ignore[arg-type]
        case.sweeps,
        seconds=SECONDS,
        clock=clock,
        terminating=going,
    )
    async with Running(results.run()):
        case.sweep.put(done(0))
        await asyncio.sleep(2 * SECONDS)
        assert store.client.sent == []
        going.clear()
        await asyncio.sleep(1)
        assert store.writes == 1


def test_a_namespace_with_other_labels_may_let_in_what_was_refused() -> None:
    told: list[str] = []
    handler = NamespaceHandler(make_cluster_state(), lambda key: None, told.append)
    for labels in ({}, {}, {"pod-security.kubernetes.io/enforce": "baseline"}, {}):
        handler.changed(Namespace(Meta(name="team-a", labels=labels)))
    assert told == ["team-a", "team-a"]
    handler.gone("", "team-a", "uid")
    handler.changed(Namespace(Meta(name="team-a", labels={"new": "one"})))
    assert len(told) == 2, "nothing was refused in it"
