"""A leader plans when it knows everything that a plan depends on, and not before."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.unit.kube.fake_server import FakeServer, refuse
from tests.unit.state.builders import gpujob_body

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.backoff import Timing
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.objects import Job, Pod
from gpu_scheduler.kube.paths import JOBS, PODS
from gpu_scheduler.kube.reflector import Reflector
from gpu_scheduler.runtime.informers.custom_resources import CustomResources
from gpu_scheduler.runtime.informers.event_handlers import JobHandler, PodHandler
from gpu_scheduler.runtime.informers.first_look import FirstLook
from gpu_scheduler.runtime.informers.our_lists import OurLists
from gpu_scheduler.state.cluster_state import ClusterState

GROUP = "/apis/gpu-scheduler.io/v1alpha1"


class Nobody:
    def observe(self, *_: object) -> None:
        pass

    def gone(self, _: object) -> None:
        pass


class Stage:
    """A server, and what a leader that begins knows of it."""

    def __init__(self, server: FakeServer, client: Client) -> None:
        self.server, self.client = server, client
        self.state = ClusterState()
        self.resources = CustomResources(self.state, changed=lambda key: None)
        reflectors = [
            Reflector(client, JOBS, Job, JobHandler(self.state, lambda key: None)),
            Reflector(client, PODS, Pod, PodHandler(self.state, Nobody())),
        ]
        self.look = FirstLook(OurLists(client, self.resources), reflectors, 0.01)
        self.over = asyncio.Event()

    async def run(self) -> None:
        await self.look.ours()
        async with asyncio.TaskGroup() as group:
            await self.look.rest(group)
            self.over.set()

    def listed(self) -> list[str]:
        """Collections in the order in which they were asked for."""
        return [seen.path.rsplit("/", 1)[1] for seen in self.server.lists_seen()]


@asynccontextmanager
async def on_stage() -> AsyncIterator[tuple[Stage, asyncio.Task[None]]]:
    async with (
        FakeServer() as server,
        Client(server.connection, timing=Timing(random=lambda: 0.0)) as client,
    ):
        body = gpujob_body()
        server.put(f"{GROUP}/gpujobs/job", body)
        server.objects[f"{GROUP}/gpujobs/job"]["metadata"]["namespace"] = "team-a"
        stage = Stage(server, client)
        task = asyncio.ensure_future(stage.run())
        try:
            yield stage, task
        finally:
            task.cancel()
            await asyncio.wait({task})


async def test_whose_a_pod_is_is_known_before_pods_are() -> None:
    async with on_stage() as (stage, _):
        await stage.over.wait()
        assert stage.listed()[:4] == ["gpuclasses", "gpuprojects", "gpunodes", "gpujobs"]
        assert sorted(stage.listed()[4:]) == ["jobs", "pods"]
        assert set(stage.state.gpujobs) == {"team-a/job"}


async def test_it_is_not_over_before_the_last_list_is_complete() -> None:
    async with on_stage() as (stage, _):
        stage.server.hold_lists.clear()
        await stage.server.changes.until(lambda: len(stage.server.lists_seen()) == 1)
        assert not stage.over.is_set()
        stage.server.in_list = lambda _: (
            stage.server.hold_lists.clear() if "gpujobs" in stage.listed() else None
        )
        stage.server.hold_lists.set()
        await stage.server.changes.until(lambda: "gpujobs" in stage.listed())
        assert not stage.over.is_set()
        stage.server.in_list = lambda _: None
        stage.server.hold_lists.set()
        await stage.over.wait()


async def test_a_list_that_cannot_be_had_is_asked_for_until_it_can() -> None:
    async with on_stage() as (stage, _):
        stage.server.answers.append(refuse(403))
        await stage.over.wait()
        assert "403" in stage.client.watches.missing(), "until the watch is open, too"
        assert stage.listed()[:2] == ["gpuclasses", "gpuclasses"]


async def test_who_does_not_lead_any_more_stops_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    async def not_leader(*_: object) -> None:
        raise errors.NotLeader

    monkeypatch.setattr(OurLists, "all", not_leader)
    async with on_stage() as (stage, task):
        with pytest.raises(errors.NotLeader):
            await task
        assert not stage.over.is_set()


async def test_our_own_objects_are_listed_again_now_and_then() -> None:
    async with on_stage() as (stage, _):
        await stage.over.wait()
        going = asyncio.ensure_future(stage.look.run())
        await stage.server.changes.until(lambda: stage.listed().count("gpujobs") >= 3)
        going.cancel()
        await asyncio.wait({going})
