"""Who held a GPU before: as pods gave it back."""

from typing import Any

import pytest
from tests.unit.runtime.usage.stage import NODE, UsageStage
from tests.unit.state.builders import half, make_pod

from gpu_scheduler.kube.clock import Heard
from gpu_scheduler.runtime.usage.charting import earlier_holders
from gpu_scheduler.runtime.usage.charting.earlier_holders import EarlierHolder, EarlierHolders


class Followed(UsageStage):
    """Followers are told of pods as a leader's are."""

    def __init__(self) -> None:
        super().__init__()
        self.versions = 0
        self.began = self.now()
        self.holders = EarlierHolders(self.state, self.common.clock)

    def now(self) -> float:
        return self.common.clock.now()

    def told(self, name: str = "job-0", phase: str = "Running", **said: Any) -> None:
        """Of a pod; it holds half a GPU if nothing else is said."""
        self.versions += 1
        known = {"node": NODE, "devices": half(), "phase": phase, "version": self.versions} | said
        pod = make_pod(name, **known)
        record = self.state.pod_changed(pod)
        assert record is not None
        self.holders.observe(pod, record)

    def leaves(self, name: str = "job-0") -> None:
        uid = next(each.uid for each in self.state.pods.known.values() if each.name == name)
        self.state.pod_gone(uid)
        self.holders.gone(uid)

    def before(self, device: str = "0") -> list[EarlierHolder]:
        return list(self.holders.of(NODE, device))

    def names(self, device: str = "0") -> list[str]:
        return [each.name.name for each in self.before(device)]


def test_who_holds_it_now_is_not_among_them_and_who_gave_it_back_is() -> None:
    stage = Followed()
    stage.job()
    stage.told()
    began = stage.now()
    assert stage.before() == []
    stage.seconds += 90
    stage.told(phase="Succeeded")
    (held,) = stage.before()
    assert (held.namespace, held.name.kind, held.name.name) == ("team-a", "GPUJob", "job")
    assert (held.milli, held.pods, held.since, held.until) == (500, 1, began, began + 90)
    stage.seconds += 30
    stage.told(phase="Succeeded")
    stage.leaves()
    assert stage.before() == [held]
    assert stage.before("1") == []


def test_pods_of_the_same_work_are_one_row() -> None:
    stage = Followed()
    stage.job()
    for number, milli in enumerate((250, 500, 100)):
        stage.told(f"job-{number}", devices=half(milli=milli))
        stage.seconds += 10
    stage.leaves("job-1")
    stage.leaves("job-0")
    (held,) = stage.before()
    assert (held.milli, held.pods, held.until - held.since) == (500, 2, 30)


def test_a_pod_whose_job_is_known_later_is_its_jobs_and_one_of_nobody_its_own() -> None:
    stage = Followed()
    stage.told()
    stage.told("stray", job=None)
    stage.job()
    stage.told()
    stage.seconds += 5
    stage.leaves()
    stage.seconds += 5
    stage.leaves("stray")
    assert [(each.name.kind, each.name.name) for each in stage.before()] == [
        ("pod", "stray"),
        ("GPUJob", "job"),
    ]


def test_a_job_that_was_deleted_before_its_pods_is_called_by_its_name() -> None:
    stage = Followed()
    stage.job()
    stage.told()
    (key,) = stage.state.gpujobs
    stage.resources.gpujob_gone("team-a", "job", "gpujob-uid")
    assert key not in stage.state.gpujobs
    stage.told()
    stage.leaves()
    assert stage.names() == ["job"]


def test_of_pods_that_ran_before_this_replica_led_the_start_is_known() -> None:
    stage = Followed()
    stage.job()
    stage.told(created="2023-11-14T22:00:00Z", startTime="2023-11-14T22:13:20Z")
    stage.leaves()
    (held,) = stage.before()
    assert (held.since, held.until) == (1_700_000_000, stage.began)


def test_when_it_began_is_told_by_the_api_servers_clock_once_that_is_known() -> None:
    stage = Followed()
    stage.seconds += 5
    stage.common.clock.begin(Heard("Wed, 15 Nov 2023 00:00:05 GMT", stage.seconds))
    assert stage.holders.began == stage.now() - 5
    assert stage.now() - stage.began > 3600


def test_a_pod_that_holds_another_device_has_given_the_first_back() -> None:
    stage = Followed()
    stage.job()
    stage.told()
    stage.told(devices=half("1"))
    assert (stage.names("0"), stage.names("1")) == (["job"], [])
    stage.leaves()
    assert stage.names("1") == ["job"]


def test_the_last_ones_are_kept_and_the_last_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(earlier_holders, "MOST", 2)
    monkeypatch.setattr(earlier_holders, "MOST_GPUS", 1)
    stage = Followed()
    for number, name in enumerate(("a", "b", "c", "b")):
        stage.told(name, job=None, uid=str(number))
        stage.leaves(name)
    assert stage.names() == ["b", "c"]
    stage.told("d", job=None, devices=half("1"))
    stage.leaves("d")
    assert (stage.names("0"), stage.names("1")) == ([], ["d"])
