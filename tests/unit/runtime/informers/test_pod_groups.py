"""PodGroups are asked for once a pod names one, in the version in which the API server has them."""

import asyncio
from typing import Any

import pytest
from tests.unit.runtime.fake_client import AWAY, NOT_FOUND, FakeClient, Sent
from tests.unit.state.pods.test_pod_groups import gang, member, ring
from tests.unit.state.pods.test_shares import state

from gpu_scheduler.kube.objects import GangPolicy, Meta, PodGroup, PodGroupSpec, SchedulingPolicy
from gpu_scheduler.runtime.informers import pod_groups
from gpu_scheduler.runtime.informers.pod_groups import GROUP, VERSIONS, PodGroups

PLACE = Meta(name="ring", namespace="team-a", uid="u")


class Case:
    """A server that serves them in a version, and what is watched of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, version: str = "") -> None:
        self.version, self.away, self.comes_after = version, 0, 0
        self.state = state()
        self.client: Any = FakeClient(self._reply)
        self.paths: list[str] = []
        self.watched = asyncio.Event()
        case = self

        class Watched:
            def __init__(self, client: Any, path: str, *_: Any) -> None:
                case.paths.append(path)

            async def run(self) -> None:
                case.watched.set()
                await asyncio.Event().wait()

        monkeypatch.setattr(pod_groups, "Reflector", Watched)
        monkeypatch.setattr(pod_groups, "_BACKOFF", pod_groups.Backoff(0.001, 0.001))
        self.watch = PodGroups(self.client, self.state)
        self.task = asyncio.create_task(self.watch.run())

    def _reply(self, sent: Sent) -> Any:
        self.away -= 1
        if self.away >= 0:
            return AWAY
        if self.comes_after and len(self.client.sent) > self.comes_after:
            self.version = "v1"
        if sent.path == f"/apis/{GROUP}/v1":
            others = [{"name": "priorityclasses"}]
            return {"resources": others + [{"name": "podgroups"}] * (self.version == "v1")}
        if sent.path == f"/apis/{GROUP}/{self.version}":
            return {"resources": [{"name": "workloads"}, {"name": "podgroups"}]}
        return NOT_FOUND


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("away", [0, 3])
async def test_they_are_watched_where_they_are_served_and_not_before_a_pod_asks(
    monkeypatch: pytest.MonkeyPatch, version: str, away: int
) -> None:
    case = Case(monkeypatch, version)
    case.away = away
    for _ in range(5):
        await asyncio.sleep(0)
    assert case.client.sent == []
    case.state.pod_changed(member("a"))
    await asyncio.wait_for(case.watched.wait(), 60)
    assert case.paths == [f"/apis/{GROUP}/{version}/podgroups"]
    case.task.cancel()


async def test_where_none_serves_them_it_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(monkeypatch)
    case.state.pod_changed(member("a"))
    case.comes_after = 2 * len(VERSIONS)
    await asyncio.wait_for(case.watched.wait(), 60)
    case.task.cancel()


async def test_what_they_say_is_known_to_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(monkeypatch)
    case.state.pod_changed(member("a"))
    case.watch.changed(PodGroup(PLACE, PodGroupSpec(SchedulingPolicy(GangPolicy(2)))))
    assert gang(case.state).missing == 2
    case.watch.changed(PodGroup(PLACE))
    found = ring(case.state)
    assert found is not None and found.gang is None
    case.watch.gone("team-a", "ring", "u")
    assert ring(case.state) is None
    case.task.cancel()
