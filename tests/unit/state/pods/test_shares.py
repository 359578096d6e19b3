"""Pods that ask for a share by themselves, in the state: groups, what they ask, what they hold."""

from typing import Any

import msgspec
from tests.unit.state.builders import half, make_assignment, make_node, make_pod, make_project

from gpu_scheduler.api.names import (
    ASK_PRIORITY,
    ASK_TYPE,
    ASKED,
    DISTINCT_GPUS,
    GANG_SIZE,
    LABEL_GANG,
)
from gpu_scheduler.core.model.request import (
    DeviceRequest,
    JobKey,
    PodUID,
    ProjectName,
    WaitingJob,
)
from gpu_scheduler.kube.objects import OwnerReference, Pod
from gpu_scheduler.runtime.status.overview import survey
from gpu_scheduler.state.cluster_state import ClusterState

HALF = {ASKED: "0:gpu-scheduler.io/gpu=0.5"}
WEB = JobKey("team-a/pod web-1")


def state() -> ClusterState:
    made = ClusterState()
    made.nodes.changed(make_node())
    made.project_changed(make_project())
    return made


def asking(
    name: str = "web-1",
    more: dict[str, str] | None = None,
    *,
    labels: dict[str, str] | None = None,
    restart: str = "Always",
    controller: str = "ReplicaSet",
    **pod: Any,
) -> Pod:
    made = make_pod(name, job=None, annotations_=HALF | (more or {}), **pod)
    owners = (OwnerReference(controller, "web", "rs", True),) if controller else ()
    meta = msgspec.structs.replace(made.metadata, labels=labels or {}, owner_references=owners)
    spec = msgspec.structs.replace(made.spec, restart_policy=restart)
    return msgspec.structs.replace(made, metadata=meta, spec=spec)


def waiting(state: ClusterState) -> dict[JobKey, WaitingJob]:
    return {job.key: job for job in state.waiting_jobs()}


def test_a_pod_is_a_group_of_its_own() -> None:
    known = state()
    known.pod_changed(asking())
    known.pod_changed(asking("web-2"))
    found = waiting(known)
    assert found.keys() == {WEB, JobKey("team-a/pod web-2")}
    (pod,) = found[WEB].pods
    assert pod.pod_shape.devices == (DeviceRequest(0, 1, 500),)
    assert pod.pod_shape.cpu_milli == 1000
    assert found[WEB].interactive and found[WEB].gang is None
    assert not known.gpujobs


def test_what_it_says_of_itself_counts() -> None:
    known = state()
    known.pod_changed(asking("a", {ASK_PRIORITY: "80", ASK_TYPE: "training"}))
    known.pod_changed(asking("b", restart="Never"))
    found = waiting(known)
    assert found[JobKey("team-a/pod a")].priority == 80
    assert not found[JobKey("team-a/pod a")].interactive
    assert not found[JobKey("team-a/pod b")].interactive


def test_a_placed_one_holds_and_is_known_to_whoever_looks_for_room() -> None:
    known = state()
    known.pod_changed(asking(node="a", devices=half(), phase="Running", version=2))
    assert not waiting(known)
    held = known.running_pods.get(PodUID("uid-web-1"))
    assert held is not None
    assert (held.job, held.project, held.interactive) == (WEB, "team-a", True)
    known.pod_gone(PodUID("uid-web-1"))
    assert known.running_pods.get(PodUID("uid-web-1")) is None
    assert not known.groups.records and not known.jobs.believed


def test_a_decision_is_charged_until_the_watch_shows_it() -> None:
    known = state()
    known.pod_changed(asking())
    known.decisions.assume(make_assignment("web-1", job=WEB))
    assert not waiting(known)
    assert known.snapshot().allocated_milli == {"team-a": 500}
    known.forget(PodUID("uid-web-1"), asking(version=3))
    assert waiting(known).keys() == {WEB}


def test_a_decision_that_is_taken_back_leaves_what_was_read_of_the_pod() -> None:
    """What is kept of a pod that waits is not all of it: nothing else is read off that."""
    known = state()
    known.lacks = lambda pod, asked: "" if pod.status.phase else "nothing is left of it"
    known.pod_changed(asking())
    kept = known.waiting.pod(PodUID("uid-web-1"))
    known.decisions.assume(make_assignment("web-1", job=WEB))
    known.forget(PodUID("uid-web-1"), kept)
    assert waiting(known).keys() == {WEB}


def gang(name: str, **more: Any) -> Pod:
    return asking(name, {GANG_SIZE: "3"}, labels={LABEL_GANG: "ring"}, **more)


def test_a_gang_is_one_group_and_knows_who_is_missing() -> None:
    known = state()
    key = JobKey("team-a/gang ring")
    known.pod_changed(gang("a"))
    known.pod_changed(gang("b", node="a", devices=half(), phase="Running", version=2))
    found = waiting(known)[key]
    assert found.gang is not None
    assert (found.gang.missing, found.gang.size, len(found.pods)) == (2, 3, 1)
    known.pod_changed(gang("c", phase="Succeeded", node="a", devices=half(), version=2))
    known.pod_changed(gang("d", phase="Succeeded", node="a", devices=half(), version=2))
    again = waiting(known)[key].gang
    assert again is not None and again.missing == 1, "each that succeeded counts for itself"
    for name in "abcd":
        known.pod_gone(PodUID(f"uid-{name}"))
    assert not known.groups.records and not known.jobs.believed


def test_a_gang_may_say_that_its_pods_share_gpus() -> None:
    known, key = state(), JobKey("team-a/gang ring")
    known.pod_changed(gang("a"))
    found = waiting(known)[key].gang
    assert found is not None and found.distinct, "unless it says otherwise"
    known.pod_gone(PodUID("uid-a"))
    notes = {GANG_SIZE: "3", DISTINCT_GPUS: "false"}
    known.pod_changed(asking("b", notes, labels={LABEL_GANG: "ring"}))
    found = waiting(known)[key].gang
    assert found is not None and not found.distinct


def test_gangs_of_two_namespaces_are_two() -> None:
    known = state()
    known.pod_changed(gang("a"))
    known.pod_changed(gang("b", namespace="team-b"))
    assert known.groups.records.keys() == {JobKey("team-a/gang ring"), JobKey("team-b/gang ring")}


def test_words_that_mean_nothing_are_told_and_never_planned() -> None:
    known = state()
    for number, text in enumerate(("0:gpu-scheduler.io/gpu=1.5", "nonsense", "")):
        known.pod_changed(asking(f"p{number}", {ASKED: text}))
        record = known.groups.records[JobKey(f"team-a/pod p{number}")]
        assert "gpu-scheduler.io/" in record.problem
    assert not waiting(known)


def test_one_that_lacks_something_waits_until_it_is_another_one() -> None:
    known = state()
    known.lacks = lambda pod, asked: "no library" if pod.metadata.name == "web-1" else ""
    known.pod_changed(asking())
    assert known.groups.records[WEB].problem == "no library"
    assert not waiting(known)
    known.pod_gone(PodUID("uid-web-1"))
    known.lacks = lambda pod, asked: ""
    known.pod_changed(asking(uid="another"))
    assert waiting(known).keys() == {WEB}


def test_a_gang_waits_for_the_one_of_it_that_lacks_something() -> None:
    known, key = state(), JobKey("team-a/gang ring")
    known.lacks = lambda pod, asked: "no library" if pod.metadata.name == "b" else ""
    for name in "abc":
        known.pod_changed(gang(name))
    assert known.groups.records[key].problem == "no library"
    assert not waiting(known)
    known.pod_gone(PodUID("uid-b"))
    assert known.groups.records[key].problem == ""
    assert waiting(known).keys() == {key}


def test_a_stateful_pod_that_comes_again_is_the_same_group_with_a_new_pod() -> None:
    known = state()
    known.pod_changed(asking(uid="one", node="a", devices=half(), phase="Running"))
    known.pod_changed(asking(uid="two"))  # before the end of the first was seen
    assert [pod.uid for pod in waiting(known)[WEB].pods] == ["two"]
    known.pod_gone(PodUID("one"))
    assert waiting(known).keys() == {WEB}
    known.pod_gone(PodUID("two"))
    assert not known.groups.records and not known.jobs.believed


def test_a_pod_of_a_gpujobs_job_that_asks_by_itself_is_none_of_it() -> None:
    known = state()
    pod = asking()
    owners = (OwnerReference("Job", "job", "job-uid", True),)
    meta = msgspec.structs.replace(pod.metadata, owner_references=owners)
    record = known.pod_changed(msgspec.structs.replace(pod, metadata=meta))
    assert record is not None and record.job_uid == "share/uid-web-1"


def test_who_waits_is_to_be_told() -> None:
    known = state()
    known.pod_changed(asking())
    assert known.changes.take_touched_pods() == (WEB,)
    assert known.changes.take_touched_pods() == ()


def test_projects_count_them_as_jobs() -> None:
    known = state()
    known.pod_changed(asking("web-1", node="a", devices=half(), phase="Running", version=2))
    known.pod_changed(asking("web-2"))
    seen = survey(known)
    assert dict(seen.running) == {"team-a": 1}
    assert [job.key for job in seen.waiting[ProjectName("team-a")]] == ["team-a/pod web-2"]
