"""What is said on a pod that waits: when, in which words, and how often."""

import msgspec
import pytest
from tests.unit.state.builders import make_assignment, make_job, make_pod
from tests.unit.state.pods.test_shares import WEB, asking, state

from gpu_scheduler.api.names import ASKED, GATE, LABEL_COMPONENT, LABEL_JOB, SCHEDULER_NAME
from gpu_scheduler.core.model.decision import Reason, Wait
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.kube.objects import Gate, Pod
from gpu_scheduler.runtime.common.events import InvolvedObject
from gpu_scheduler.runtime.jobs.doubting import doubt, expire
from gpu_scheduler.runtime.status.pod_conditions import (
    JOB_UNKNOWN_SECONDS,
    WAITS_SECONDS,
    PodConditions,
)
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.doubts import FailedStart
from gpu_scheduler.state.pods.claims import VOLUMES

UID = "uid-web-1"


class RecordedEvents:
    """Events, as far as they are told here."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str, str]] = []

    def say(self, subject: InvolvedObject, kind: str, reason: str, message: str) -> None:
        self.events.append((subject.kind, kind, reason, message))


class Case:
    def __init__(self, known: ClusterState | None = None) -> None:
        self.state, self.said, self.clock = known or state(), RecordedEvents(), 0.0
        self.waits: dict[JobKey, Wait] = {}
        self.conditions = PodConditions(
            self.state,
            self.said,  # type: ignore[arg-type]
            lambda: self.waits,
            clock=lambda: self.clock,
            now=lambda: "now",
        )

    def waits_for(self, reason: Reason, message: str) -> None:
        self.waits[WEB] = Wait(WEB, reason, message, 1)
        self.state.changes.touch(WEB)

    def due(self) -> list[str]:
        return list(self.conditions.touched())


def condition(reason: str, message: str) -> dict[str, str]:
    return {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}


def test_one_that_is_placed_at_once_is_told_nothing() -> None:
    case = Case()
    case.state.pod_changed(asking())
    assert case.due() == []
    case.state.decisions.assume(make_assignment("web-1", job=WEB))
    case.clock = WAITS_SECONDS
    assert case.due() == [UID]
    assert case.conditions.uid(UID) is None, "it has its place"


def test_one_that_waits_is_told_once_after_a_while() -> None:
    case = Case()
    case.state.pod_changed(asking())
    case.waits_for(Reason.WAITING_FOR_GPU, "nothing is free")
    assert case.due() == []
    case.clock = WAITS_SECONDS - 0.1
    assert case.due() == []
    case.clock = WAITS_SECONDS
    assert case.due() == [UID]
    assert case.due() == []
    assert case.conditions.uid(UID) == UID
    before, after = case.conditions.status(UID)
    assert before == {}
    said = {"reason": "Unschedulable", "message": "WaitingForGPU: nothing is free"}
    assert after == said
    write = case.conditions.write(UID, UID, after, after)
    assert write.path.endswith("/namespaces/team-a/pods/web-1/status")
    assert write.body["metadata"] == {"uid": UID}
    (written,) = write.body["status"]["conditions"]
    assert written == condition(**said) | {"lastTransitionTime": "now"}
    case.conditions.written(UID, before, after)
    assert case.said.events == [("Pod", "Normal", "WaitingForGPU", "nothing is free")]


def test_one_whose_claim_is_missing_reads_so_and_no_autoscaler_is_called() -> None:
    case = Case()
    case.state.groups.unmounted = lambda pod: f"{VOLUMES}there is no claim data"
    case.state.pod_changed(asking())
    said = {"reason": "VolumeNotMounted"}
    said["message"] = "VolumeNotMounted: spec.volumes: there is no claim data"
    assert case.conditions.status(UID) == ({}, said)
    case.conditions.written(UID, {}, said)
    assert [each[1:3] for each in case.said.events] == [("Warning", "VolumeNotMounted")]


def test_autoscalers_are_called_only_where_another_node_helps() -> None:
    case = Case()
    case.state.pod_changed(asking())
    helps = (
        Reason.FRAGMENTED,
        Reason.WAITING_FOR_GPU,
        Reason.WAITING_FOR_RESOURCES,
        Reason.UNSATISFIABLE,
    )
    for reason in Reason:
        case.waits_for(reason, "so it is")
        told = case.conditions.status(UID)[1]["reason"]
        assert (told == "Unschedulable") is (reason in helps), reason


def test_what_stands_there_already_is_not_said_again() -> None:
    case = Case()
    case.waits_for(Reason.WAITING_FOR_QUOTA, "it is used up")
    told = condition("WaitingForQuota", "WaitingForQuota: it is used up")
    case.state.pod_changed(asking(conditions=(told,)))
    before, after = case.conditions.status(UID)
    assert before == after
    case.waits_for(Reason.WAITING_FOR_QUOTA, "more of it")
    before, after = case.conditions.status(UID)
    assert case.conditions.is_minor("uid", {"message": after["message"]})
    case.conditions.written(UID, before, after)
    assert case.said.events == [], "the same reason is one Event"


def test_the_projects_namespace_and_the_users_words_come_first() -> None:
    for pod, expected in (
        (asking(namespace="elsewhere"), "belongs to no project"),
        (asking(more={ASKED: "0:gpu-scheduler.io/gpu=1.5"}), "whole numbers"),
    ):
        case = Case()
        case.state.pod_changed(pod)
        _, after = case.conditions.status(UID)
        assert after["reason"] == "Invalid"
        assert expected in after["message"]


def test_one_that_nobody_has_planned_yet_is_told_nothing() -> None:
    case = Case()
    case.state.pod_changed(asking())
    before, after = case.conditions.status(UID)
    assert before == after == {}


def test_a_pod_that_is_gone_or_runs_is_no_business_of_this() -> None:
    case = Case()
    case.state.pod_changed(asking())
    case.state.pod_gone(PodUID(UID))
    assert case.conditions.uid(UID) is None


def test_whose_place_was_refused_is_told_by_whom_and_when_it_is_tried_again() -> None:
    case = Case()
    case.state.pod_changed(asking())
    why = "pod web-1 was refused its place on a: a policy says no"
    doubt(case.state, WEB, FailedStart(0.0, why, delays=lambda times: 30.0))
    case.due()
    case.clock = WAITS_SECONDS
    assert case.due() == [UID], "also while nothing is planned of it"
    _, after = case.conditions.status(UID)
    assert after["reason"] == "PlacementRefused"
    assert f"PlacementRefused: {why}; it is tried again at " in after["message"]
    expire(case.state, 30.0)
    case.waits_for(Reason.WAITING_FOR_GPU, "nothing is free")
    _, after = case.conditions.status(UID)
    assert why in after["message"] and after["message"].endswith("; nothing is free")


NOBODYS = "asks for no share of a GPU: make it anew with the label gpu-scheduler.io/gpu"
BY_NAME = {"schedulerName": SCHEDULER_NAME}
BY_GATE = {"schedulingGates": [{"name": GATE}], "schedulerName": "default-scheduler"}
PLUGIN = {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}


def stray(spec: dict[str, object], *, job_uid: str = "", **meta: object) -> Pod:
    """A pod that waits for us, made by somebody else, and asks for nothing."""
    owners = [{"kind": "Job", "name": "theirs", "uid": job_uid, "controller": True}]
    metadata = {
        "name": "stray",
        "namespace": "team-a",
        "uid": "uid-stray",
        "resourceVersion": "7",
        "ownerReferences": owners if job_uid else [],
        **meta,
    }
    body = {"metadata": metadata, "spec": {"containers": [{"name": "main"}], **spec}, "status": {}}
    return msgspec.json.decode(msgspec.json.encode(body), type=Pod)


@pytest.mark.parametrize(
    ("pod", "after"),
    [
        (stray(BY_NAME), WAITS_SECONDS),
        (stray(BY_GATE), WAITS_SECONDS),
        (stray(BY_NAME, labels={LABEL_COMPONENT: "agent"}), WAITS_SECONDS),
        (stray(BY_NAME, labels={LABEL_JOB: "train"}), WAITS_SECONDS),
        (stray({**BY_NAME, **PLUGIN}), WAITS_SECONDS),
        (stray({**BY_NAME, "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}), 2.0),
        (stray(BY_NAME, job_uid="uid-of-a-job"), JOB_UNKNOWN_SECONDS),
        (stray(BY_NAME, job_uid="uid-of-a-job", labels={LABEL_JOB: "t"}), JOB_UNKNOWN_SECONDS),
    ],
)
def test_whoever_waits_for_us_and_asks_for_nothing_is_told_the_way_out(
    pod: Pod, after: float
) -> None:
    case = Case()
    case.state.pod_changed(pod)
    assert case.due() == []
    case.clock = after - 0.1
    assert case.due() == []
    case.clock = after
    assert case.due() == ["uid-stray"] == [case.conditions.uid("uid-stray")]
    before, told = case.conditions.status("uid-stray")
    assert (before, told["reason"]) == ({}, "Invalid")
    assert NOBODYS in str(told["message"])
    field = GATE if pod.spec.scheduling_gates[:1] == (Gate(GATE),) else SCHEDULER_NAME
    assert str(told["message"]).endswith(field)
    case.conditions.written("uid-stray", before, told)
    ((kind, level, reason, _),) = case.said.events
    assert (kind, level, reason) == ("Pod", "Warning", "Invalid")


def test_nothing_is_said_of_others_pods_nor_of_those_that_go_or_are_ours() -> None:
    case = Case()
    for number, pod in enumerate(
        (
            stray({"schedulerName": "default-scheduler"}),
            stray({"schedulingGates": [{"name": "theirs"}], "schedulerName": "x"}),
            stray(BY_NAME, deletionTimestamp="2026-01-01T00:00:00Z"),
            stray({**BY_NAME, "nodeName": "a"}),
            make_pod(job="late-uid"),
        )
    ):
        meta = msgspec.structs.replace(pod.metadata, uid=f"uid-{number}", name=f"pod-{number}")
        case.state.pod_changed(msgspec.structs.replace(pod, metadata=meta))
    assert case.due() == []
    case.clock = 100.0
    told = [uid for uid in case.due() if case.conditions.uid(uid) is not None]
    assert [uid for uid in told if NOBODYS in str(case.conditions.status(uid)[1])] == ["uid-4"]
    # … as that one's Job is not known; once it is, nothing is:
    case.state.job_changed(make_job("late", uid="late-uid"))
    assert NOBODYS not in str(case.conditions.status("uid-4")[1])
