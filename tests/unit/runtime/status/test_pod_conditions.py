"""What is said on a pod that waits: when, in which words, and how often."""

from tests.unit.state.builders import make_assignment
from tests.unit.state.pods.test_shares import WEB, asking, state

from gpu_scheduler.api.names import ASKED
from gpu_scheduler.core.model.decision import Reason, Wait
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.runtime.common.events import InvolvedObject
from gpu_scheduler.runtime.jobs.doubting import doubt, expire
from gpu_scheduler.runtime.status.pod_conditions import WAITS_SECONDS, PodConditions
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.doubts import FailedStart

UID = "uid-web-1"


class Said:
    """Events, as far as they are told here."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str, str]] = []

    def say(self, subject: InvolvedObject, kind: str, reason: str, message: str) -> None:
        self.events.append((subject.kind, kind, reason, message))


class Case:
    def __init__(self, known: ClusterState | None = None) -> None:
        self.state, self.said, self.clock = known or state(), Said(), 0.0
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
    assert case.conditions.is_minor({"message": after["message"]})
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
