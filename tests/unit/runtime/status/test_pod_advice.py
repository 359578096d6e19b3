"""What to change about work that asks by itself, on its pods: when it comes, stays and goes."""

from typing import Any

import pytest
from tests.unit.runtime.usage.stage import UsageStage
from tests.unit.state.builders import half, make_pod
from tests.unit.state.pods.test_shares import asking, state

from gpu_scheduler.api.advice import Advice
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.runtime.status.pod_advice import AGAIN_SECONDS, MOST_PODS, PodAdvice
from gpu_scheduler.state.pods.pod import PodRecord
from gpu_scheduler.usage.answer import ShareUse, Totals

KIND = "gpu-scheduler.io/Advice"
IDLE = Advice(rule="GPU_IDLE", since="then", message="it is idle", command="release it")
SMALL = Advice(rule="OVERSIZED", since="later", message="ask for 0.2", command="")
TOLD = {
    "type": KIND,
    "status": "True",
    "reason": "GPU_IDLE",
    "message": "it is idle (release it)",
    "lastTransitionTime": "then",
}
GONE = {"$patch": "delete", "type": KIND}


class Case:
    """Pods of a Deployment, and the conditions that are written on them."""

    def __init__(self, pods: int = 1) -> None:
        self.state, self.now, self.version = state(), 0.0, 1
        self.pods: dict[str, PodRecord] = {}
        for number in range(pods):
            self.pod(f"web-{number:02}")
        self.advice = PodAdvice(self.state, clock=lambda: self.now)

    def pod(self, name: str, *conditions: dict[str, str], **pod: Any) -> None:
        self.version += 1
        pod = {"node": "a", "devices": half("GPU-0"), "phase": "Running", **pod}
        made = asking(name, version=self.version, conditions=conditions, **pod)
        record = self.state.pod_changed(made)
        assert record is not None
        self.pods[name] = record

    def take(self, headline: Advice | None) -> dict[str, dict[str, str]]:
        """What is written after a minute, by pod."""
        self.now += 60.0
        self.advice.take(list(self.pods.values()), headline)
        found: dict[str, dict[str, str]] = {}
        for uid in self.advice.touched():
            if self.advice.uid(uid) is None:
                continue
            before, after = self.advice.status(uid)
            if before == after:
                continue
            write = self.advice.write(uid, uid, after, after)
            assert write.body["metadata"] == {"uid": uid}
            (condition,) = write.body["status"]["conditions"]
            name = uid.removeprefix("uid-")
            assert write.path == f"/api/v1/namespaces/team-a/pods/{name}/status"
            found[name] = condition
            self.advice.written(uid, before, after)
        return found


def test_it_is_written_once_and_goes_with_its_headline() -> None:
    case = Case()
    assert case.take(None) == {}
    assert case.take(IDLE) == {"web-00": TOLD}
    assert case.take(IDLE) == {}, "the watch has not shown it yet"
    case.pod("web-00", TOLD)
    case.now += AGAIN_SECONDS
    assert case.take(IDLE.model_copy(update={"message": "for longer"})) == {}
    assert case.take(None) == {"web-00": GONE}


def test_a_pod_is_written_to_once_an_hour_at_most() -> None:
    case = Case()
    case.take(IDLE)
    case.pod("web-00", TOLD)
    assert case.take(SMALL) == {}
    case.pod("web-00")  # somebody has taken it away
    assert case.take(IDLE) == {}
    case.now += AGAIN_SECONDS
    assert case.take(SMALL)["web-00"]["reason"] == "OVERSIZED"


def test_only_the_oldest_pods_of_a_workload_say_it() -> None:
    case = Case(MOST_PODS + 5)
    assert sorted(case.take(IDLE)) == [f"web-{number:02}" for number in range(MOST_PODS)]
    assert case.take(IDLE) == {}
    case.state.pod_gone(PodUID("uid-web-00"))
    del case.pods["web-00"]
    assert sorted(case.take(IDLE)) == [f"web-{MOST_PODS:02}"]


def test_a_leader_that_comes_finds_it_there() -> None:
    case = Case()
    case.pod("web-00", TOLD)
    assert case.take(IDLE) == {}
    assert case.take(None) == {"web-00": GONE}


def test_of_other_pods_nothing_is_written() -> None:
    """They have a GPUJob that says it, no place of ours, or have ended."""
    case = Case()
    case.pod("web-00", phase="Succeeded", ran=True)
    case.pod("web-01", devices=())
    record = case.state.pod_changed(make_pod(node="a", devices=half("GPU-0"), phase="Running"))
    assert record is not None
    case.pods["job-0"] = record
    assert case.take(IDLE) == {}


def test_what_is_forgotten_is_no_news() -> None:
    case = Case()
    case.take(IDLE)
    case.advice.keep(())
    assert case.advice.status("uid-web-00") == ({}, {})


@pytest.mark.parametrize("silent", [False, True])
async def test_a_minute_says_it_of_an_idle_deployment(silent: bool) -> None:
    stage = UsageStage()
    record = stage.state.pod_changed(
        asking(node="a", devices=half("0"), phase="Running", conditions=(TOLD,) * silent)
    )
    assert record is not None
    stage.shares[record.uid] = ShareUse(
        device="0",
        pod_uid=record.uid,
        container="main",
        share=0.5,
        age_seconds=9000,
        idle_seconds=8000,
        ever_busy=True,
        windows=(),
        totals=Totals(containers=1),
    )
    if not silent:
        stage.answers()
    await stage.minute.look()
    due = list(stage.minute.pod_advice.touched())
    assert due == ([] if silent else [record.uid]), "of what no agent has said nothing changes"
    if not silent:
        _, after = stage.minute.pod_advice.status(record.uid)
        assert after["reason"] == "GPU_IDLE"
