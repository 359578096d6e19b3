"""The soak sees a device above its capacity, forgets what pods gave back, and misses no job."""

import io
import json
import threading
from types import SimpleNamespace
from typing import Any, cast

from tests.soak.checker import Checker
from tests.soak.jobs import Jobs
from tests.soak.load import Promise
from tests.soak.watch import Watch

CARD_MIB = 81920


def pod(name: str, milli: int, mib: int = 100, phase: str = "Running") -> dict[str, Any]:
    ledger = {"v": 1, "n": "a", "c": {"0": {"0": [milli, mib]}}}
    meta = {"uid": name, "namespace": "team", "name": name}
    meta["annotations"] = {"gpu-scheduler.io/allocation": json.dumps(ledger)}
    return {"metadata": meta, "spec": {}, "status": {"phase": phase}}


def checker() -> Checker:
    site: Any = None  # only for connections
    return Checker(site, lambda node, device: f"{node}/{device}", CARD_MIB)


def test_more_than_a_device_has_is_noted_once_with_its_pods() -> None:
    eyes = checker()
    eyes._see(pod("x", 600))
    assert not eyes.above
    for _ in range(2):
        eyes._see(pod("y", 600))
    (above,) = eyes.above
    assert (above.milli, sorted(above.pods)) == (1200, ["team/x", "team/y"])
    assert eyes.peak_milli == 1200


def test_more_memory_than_a_device_has_is_noted_too() -> None:
    eyes = checker()
    eyes._see(pod("x", 100, CARD_MIB))
    eyes._see(pod("y", 100, 1))
    assert len(eyes.above) == 1


def test_what_has_ended_or_gone_holds_nothing() -> None:
    eyes = checker()
    eyes._see(pod("x", 600))
    eyes._see(pod("x", 600, phase="Succeeded"))
    eyes._see(pod("y", 600))
    eyes._gone(pod("y", 600)["metadata"])
    assert eyes.held_milli() == 0
    assert eyes.placements == 2
    assert not eyes.above


class _Load:
    """What jobs are told to look after."""

    def __init__(self) -> None:
        self.preemption_policy = {("red", "j"): Promise("red", "j", "share", 1)}
        self.unfinished = 0


def gpujob(phase: str) -> dict[str, Any]:
    meta = {"namespace": "red", "name": "j", "uid": "u"}
    return {"metadata": meta, "spec": {}, "status": {"phase": phase}}


def test_a_job_that_has_ended_and_is_gone_is_not_lost_and_one_that_has_not_is() -> None:
    nothing: Any = None
    for phase, ended in (("Succeeded", True), ("Failed", True), ("Running", False)):
        load: Any = _Load()
        jobs = Jobs(nothing, load, nothing)
        jobs._see(gpujob(phase))
        jobs._gone(gpujob(phase)["metadata"])
        assert not jobs.seen
        assert load.preemption_policy["red", "j"].ended is ended


def test_failures_of_jobs_that_are_gone_count_and_are_not_forgotten() -> None:
    nothing: Any = None
    jobs = Jobs(nothing, nothing, nothing)
    for uid, failed in (("a", 2), ("a", 1), ("b", 3)):
        meta = {"namespace": "red", "name": "j", "uid": uid}
        meta["labels"] = {"gpu-scheduler.io/job": "j"}
        jobs._count({"metadata": meta, "status": {"failed": failed}})
    assert sum(jobs.failed["red", "j"].values()) == 5


def test_a_watch_that_lists_again_tells_what_went_meanwhile() -> None:
    site: Any = type("Site", (), {"stop": threading.Event()})
    told: list[str] = []
    watch = Watch(
        site,
        "/x",
        lambda body: told.append(body["metadata"]["uid"]),
        lambda meta: told.append(f"-{meta['uid']}"),
    )

    def answers(*uids: str) -> None:
        items = [{"metadata": {"uid": uid, "resourceVersion": "1"}} for uid in uids]
        watch._open = lambda query: io.BytesIO(  # type: ignore[method-assign]
            json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}).encode()
        )
        watch._list()

    answers("a", "b")
    answers("b", "c")
    assert told == ["a", "b", "-a", "b", "c"]


def test_a_pod_with_a_place_that_is_deleted_without_a_word_is_noted() -> None:
    load: Any = _Load()
    for suspended, announced, found in ((False, False, 1), (True, False, 0), (False, True, 0)):
        eyes = checker()
        jobs = Jobs(nothing(), load, eyes)
        running = pod("x", 500)
        running["metadata"] |= {"namespace": "red", "labels": {"gpu-scheduler.io/job": "j"}}
        eyes._see(running)
        if suspended:
            jobs._see(gpujob("Running") | {"spec": {"suspend": True}})
        if announced:
            condition = {"type": "DisruptionTarget", "status": "True"}
            running = running | {"status": {"phase": "Running", "conditions": [condition]}}
        going = running["metadata"] | {"deletionTimestamp": "2026-01-01T12:00:00Z"}
        for _ in range(2):
            eyes._see(running | {"metadata": going})
        assert len(jobs.unannounced()) == found


def test_pods_of_a_job_whose_owner_somebody_took_away_are_no_pods_of_its_gpujob() -> None:
    """It waits for a place for its next pod, while the old one runs on as nobody's."""
    waits: dict[str, Any] = {"phase": "Pending", "reason": "WaitingForQuota"}
    owner = {"kind": "GPUJob", "uid": "u", "controller": True}
    for owners, wrong in (
        ([owner], "says that it waits, and all its pods are placed"),
        ([], ""),
        ([owner | {"uid": "earlier"}], ""),
        ([owner | {"controller": False}], ""),
        (None, ""),  # the Job is gone
    ):
        eyes = checker()
        site: Any = Site()
        jobs = Jobs(site, cast(Any, _Load()), eyes)
        running = pod("x", 500)
        running["metadata"] |= {"namespace": "red", "labels": {"gpu-scheduler.io/job": "j"}}
        running["metadata"]["ownerReferences"] = [owner | {"kind": "Job", "uid": "job-uid"}]
        eyes._see(running)
        jobs._see(gpujob("") | {"status": waits})
        meta = {"namespace": "red", "name": "j", "uid": "job-uid", "ownerReferences": owners}
        jobs._count({"metadata": meta})
        if owners is None:
            jobs._forget(meta)
        jobs.look()
        assert [what for *_, what in jobs._wrong_since] == ([wrong] if wrong else [])


class Site:
    """All is calm."""

    def __init__(self) -> None:
        self.disturbed = self.leaderless = SimpleNamespace(since=None)

    def rest(self, seconds: float) -> None:
        pass


def test_a_slip_says_that_it_is_one_and_holds_nothing() -> None:
    load: Any = _Load()
    jobs = Jobs(nothing(), load, nothing())
    for status, wrong in (
        ({"phase": "Pending", "reason": "Invalid"}, ""),
        ({"phase": "Pending", "reason": "CreatingJob"}, "is no pod, and does not say so"),
        ({}, "is no pod, and does not say so"),
    ):
        jobs._see(gpujob("") | {"status": status})
        assert jobs._wrong("slip-1", jobs.seen["red", "j"], []) == wrong


def nothing() -> Any:
    return None
