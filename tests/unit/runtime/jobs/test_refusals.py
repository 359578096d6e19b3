"""Refused jobs: tried ever more seldom, never a burden on others, and at once when it helps."""

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.runtime.binding.test_failed_placements import FakeEvents
from tests.unit.runtime.fake_client import FakeClient, Sent
from tests.unit.runtime.informers.test_custom_resources import project_body
from tests.unit.runtime.job_writing import NO_LIBRARY, place_prospective, reconciler
from tests.unit.runtime.status_case import FakePlanning, FakePreemption
from tests.unit.runtime.status_writing import status_writer
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.builders import gpujob_body, make_job

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.kube import errors
from gpu_scheduler.runtime.common.queue import WorkQueue
from gpu_scheduler.runtime.informers.custom_resources import CustomResources
from gpu_scheduler.runtime.jobs.acceptance import Acceptance
from gpu_scheduler.runtime.jobs.refused.refusals import Refusals
from gpu_scheduler.state.cluster_state import ClusterState

A, B, OTHER = JobKey("team-a/a"), JobKey("team-a/b"), JobKey("team-b/c")
WORKERS = 8


class Cluster:
    """An API server that refuses pods whose name begins with ``bad``, and tells of each write."""

    def __init__(self) -> None:
        self.state = ClusterState()
        self.queue: WorkQueue[JobKey] = WorkQueue()
        self.custom_resources = CustomResources(self.state, changed=self.queue.add)
        self.custom_resources.project(project_body())
        self.bodies: dict[str, dict[str, Any]] = {}
        self.counts: Counter[str] = Counter()
        self.patched: Counter[str] = Counter()
        self.refusing = True
        self.client: Any = FakeClient(self._reply)
        self.acceptance = acceptance = Acceptance(
            self.client,
            replace(NO_LIBRARY, runtime_class="nvidia"),
            placement="bind",
            clock=clock,
        )
        acceptance.doubt("team-a")  # pods of it were refused before
        self.reconciler = reconciler(self.state, self.client, acceptance, self.queue, clock=clock)
        planning: Any = FakePlanning()
        events: Any = FakeEvents()
        preemption: Any = FakePreemption()
        self.status = status_writer(
            self.state,
            self.client,
            planning,
            events,
            preemption,
            finished=self.queue.add,
            seconds=1.0,
            clock=clock,
        )

    def _reply(self, sent: Sent) -> Any:
        self.client.sent.clear()
        self.counts[sent.method] += 1
        self.patched[sent.path] += sent.method == "PATCH"
        if sent.method == "DRYRUN":
            meta = sent.body["metadata"]
            name = meta.get("name") or f"{meta['generateName']}{self.counts['DRYRUN']}"
            if self.refusing and name.startswith("bad"):
                whys = ["maximum cpu is 1,", "maximum memory is 1Gi,"]
                several = " ".join(whys[:: 1 if self.counts["DRYRUN"] % 2 else -1])
                text = f'pods "{name}" is forbidden: {several}'
                return errors.Forbidden(403, "Forbidden", text)
        elif sent.method == "POST":
            name = sent.body["metadata"]["name"]
            return make_job(name, uid=f"job-{name}", owner_uid=f"uid-{name}", version=10**6)
        elif sent.method == "PATCH" and sent.path.endswith("/status") and "gpujobs" in sent.path:
            self._tell(sent.path.split("/")[-2], sent.body["status"])
        return {}

    def _tell(self, name: str, status: dict[str, Any]) -> None:
        """The watch shows what was written."""
        body = self.bodies[name]
        body["status"] = (body.get("status") or {}) | status
        body["metadata"]["resourceVersion"] = str(int(body["metadata"]["resourceVersion"]) + 1)
        asyncio.get_running_loop().call_later(0.01, self.custom_resources.gpujob, body)

    def submit(self, name: str) -> None:
        body = gpujob_body(name, uid=f"uid-{name}")
        body["metadata"]["resourceVersion"] = "1"
        self.bodies[name] = body
        self.custom_resources.gpujob(body)

    def running(self) -> Running:
        works = [self.queue.work(self.reconciler.handle) for _ in range(WORKERS)]
        return Running(*works, self.status.run(), self._plan())

    async def _plan(self) -> None:
        """Whatever may be planned has a place at once."""
        while True:
            for key in place_prospective(self.state):
                self.queue.add(key)
            await asyncio.sleep(0.02)

    async def per_minute(self) -> Counter[str]:
        self.counts.clear()
        await asyncio.sleep(60)
        return Counter(self.counts)


@virtual
async def test_a_refused_job_writes_its_status_once() -> None:
    cluster = Cluster()
    cluster.submit("bad")
    async with cluster.running():
        await asyncio.sleep(5)
        assert cluster.counts["PATCH"] <= 3 and cluster.counts["DRYRUN"] <= 2
        later = [await cluster.per_minute() for _ in range(5)]
    assert sum(each["PATCH"] for each in later) == 0
    assert all(each["DRYRUN"] <= 2 for each in later)


@pytest.mark.long
@virtual
async def test_ten_thousand_refused_jobs_write_little_and_leave_the_workers_to_others() -> None:
    cluster, jobs = Cluster(), 10_000
    for number in range(jobs):
        cluster.submit(f"bad-{number}")
    async with cluster.running():
        await asyncio.sleep(120)
        assert cluster.state.gpujobs[JobKey("team-a/bad-9999")].problem
        for _ in range(2):
            minute = await cluster.per_minute()
            # Of one namespace two hear of their refusal in a second, once 2,000 have.
            assert minute["PATCH"] <= 2 * 60 + 1 and minute["DRYRUN"] <= 10 * 60 + 2
        assert max(cluster.patched.values()) <= 3
        cluster.submit("good")
        await asyncio.sleep(1)
        assert "job-good" in cluster.state.jobs.believed


@pytest.mark.long
@virtual
async def test_when_what_refused_them_is_gone_all_start() -> None:
    cluster, jobs = Cluster(), 50
    for number in range(jobs):
        cluster.submit(f"bad-{number}")
    async with cluster.running():
        await asyncio.sleep(3600)
        cluster.refusing = False
        await asyncio.sleep(31 + jobs * 0.1)
    assert len(cluster.state.jobs.believed) == jobs
    assert not any(job.problem for job in cluster.state.gpujobs.values())


@pytest.mark.long
@virtual
async def test_a_refused_job_that_its_owner_changes_is_judged_at_once() -> None:
    cluster = Cluster()
    for name in ("bad-first", "bad-second"):
        cluster.submit(name)
    async with cluster.running():
        await asyncio.sleep(3600)
        cluster.refusing = False
        body = cluster.bodies["bad-second"]
        meta = body["metadata"]
        changed = meta | {"generation": 2, "resourceVersion": str(10**6)}
        cluster.custom_resources.gpujob(body | {"metadata": changed})
        await asyncio.sleep(0.1)
        assert "job-bad-second" in cluster.state.jobs.believed


class Line:
    """Refusals, and when they ask for which key."""

    def __init__(self) -> None:
        self.now, self.asked = 0.0, dict[JobKey, float]()
        self.refusals = Refusals(lambda: self.now, self._again)

    def _again(self, key: JobKey, seconds: float) -> None:
        self.asked[key] = round(seconds, 2)


def test_a_job_alone_is_tried_every_thirty_seconds() -> None:
    line = Line()
    for _ in range(9):
        line.refusals.refused(A, 1)
        assert line.asked[A] == 30.0
        line.now += 30.0


def test_of_several_one_is_tried_every_thirty_seconds_and_each_ever_more_seldom() -> None:
    line = Line()
    keys = [JobKey(f"team-a/{number}") for number in range(20)]
    for key in keys:
        line.refusals.refused(key, 1)
    tried: list[JobKey] = []
    for _ in range(7200):
        line.now += 1.0
        for key in keys:
            if line.refusals.may_try(key, 1):
                tried.append(key)
                line.refusals.refused(key, 1)
    assert 7200 / 30 - 9 <= len(tried) <= len(keys) * (5 + 7200 / 600)
    assert set(tried[-20:]) == set(keys)


def test_one_that_is_accepted_lets_all_of_its_namespace_try_and_nobody_else() -> None:
    line = Line()
    for key in (A, B, OTHER):
        line.refusals.refused(key, 1)
    line.now = 10.0
    assert not line.refusals.may_try(B, 1)
    line.refusals.accepted(A)
    assert line.refusals.may_try(B, 1) and not line.refusals.may_try(OTHER, 1)


def test_many_of_a_namespace_come_one_after_the_other() -> None:
    line = Line()
    keys = [JobKey(f"team-a/{number}") for number in range(5)]
    for key in keys:
        line.refusals.refused(key, 1)
    line.now = 30.0
    assert [line.refusals.may_try(key, 1) for key in keys] == [True, False, False, False, False]
    assert [line.asked[key] for key in keys[1:]] == [0.1, 0.2, 0.3, 0.4]


def test_a_job_that_is_another_now_was_never_tried() -> None:
    line = Line()
    line.refusals.refused(A, 1)
    assert line.refusals.may_try(A, 2) and not line.refusals.may_try(A, 1)


def test_nothing_is_remembered_of_jobs_that_are_gone() -> None:
    line = Line()
    for key in (A, B, OTHER):
        line.refusals.refused(key, 1)
    for key in (A, B, OTHER):
        line.refusals.forget(key)
    assert (line.refusals._of, line.refusals._line) == ({}, {})


def test_when_what_refuses_a_namespace_changes_its_jobs_are_due_at_once() -> None:
    asked: list[tuple[JobKey, float]] = []
    refusals = Refusals(lambda: 0.0, lambda key, seconds: asked.append((key, seconds)))
    for key in (A, OTHER):
        refusals.refused(key, "same")
        assert not refusals.may_try(key, "same")
    asked.clear()
    refusals.changed("team-a")
    assert asked == [(A, 0.0)]
    assert refusals.may_try(A, "same") and not refusals.may_try(OTHER, "same")


def test_news_without_end_do_not_keep_a_refused_job_busy() -> None:
    line, tried = Line(), list[float]()
    line.refusals.refused(A, 1)
    for tick in range(10 * 300):  # pods that a quota counts come and go
        line.now = tick / 10
        line.refusals.changed("team-a")
        if line.refusals.may_try(A, 1):
            tried.append(line.now)
            line.refusals.refused(A, 1)
    assert tried[0] == 0.0, "the first are acted on at once"
    assert len(tried) <= 6 + 300 / 30
    for _ in range(3):  # turns, and no news in the last one
        line.now += 61
        assert line.refusals.may_try(A, 1)
        line.refusals.refused(A, 1)
    line.now += 1
    line.refusals.changed("team-a")
    assert line.refusals.may_try(A, 1), "there was none for a while"


def test_after_news_a_job_is_tried_several_times_for_the_api_server_may_hear_of_them_later() -> (
    None
):
    line, tried = Line(), list[float]()
    line.refusals.refused(A, 1)
    line.now = 10.0
    line.refusals.changed("team-a")
    while line.now < 140:
        if line.refusals.may_try(A, 1):
            tried.append(line.now - 10)
            line.refusals.refused(A, 1)
        line.now += 1
    assert tried == [0, 1, 3, 7, 15, 31, 61, 91, 121]


def test_news_while_a_job_is_judged_are_not_missed() -> None:
    line = Line()
    line.refusals.refused(A, 1)
    line.now = 30.0
    assert line.refusals.may_try(A, 1)
    line.refusals.changed("team-a")  # before the answer
    line.refusals.refused(A, 1)
    line.now = 31.0
    assert line.refusals.may_try(A, 1)
