"""Whose fault a pod's end was, and what is done about it: once, and in time."""

import asyncio
from typing import Any

import msgspec
import pytest
from tests.unit.runtime.evicting import Evicting
from tests.unit.runtime.fake_client import (
    BROKEN,
    BUSY,
    CONFLICT,
    NOT_FOUND,
    NOT_LEADER,
    FakeClient,
    Sent,
)
from tests.unit.runtime.virtual_loop import clock, virtual
from tests.unit.state.builders import (
    UNSCHEDULABLE,
    half,
    make_gpujob,
    make_job,
    make_node,
    make_pod,
)
from tests.unit.state.pods.test_shares import asking
from tests.unit.state.test_cluster_state import make_cluster_state

from gpu_scheduler.api.gpuproject import START_TIMEOUT_SECONDS
from gpu_scheduler.api.names import (
    CONDITION_DISRUPTION,
    CONDITION_TIME_LIMIT,
    LIMIT_OF_TEMPLATE,
    SAID_BY_POLICY,
)
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.common.events import InvolvedObject
from gpu_scheduler.runtime.eviction.overbooked import relieve
from gpu_scheduler.runtime.informers.event_handlers import PodHandler
from gpu_scheduler.state.nodes.devices import NodeDevice

KEY = make_gpujob().key
TRACKED = {"metadata": {"finalizers": ["batch.kubernetes.io/job-tracking"]}}
COUNTED = {"metadata": {}}
STUCK_SECONDS, AVOID_SECONDS = 30.0, 60.0


class FakeEvents:
    def __init__(self) -> None:
        self.said: list[tuple[str, str, str]] = []

    def say(self, subject: InvolvedObject, kind: str, reason: str, message: str) -> None:
        self.said.append((subject.name, reason, message))


class Case:
    def __init__(self) -> None:
        self.state = make_cluster_state()
        self.answer: Any = TRACKED
        self.client = FakeClient(self._reply)
        self.events = FakeEvents()
        self.evicting = Evicting(
            self.state,
            self.client,
            self.events,
            stuck_seconds=STUCK_SECONDS,
            avoid_seconds=AVOID_SECONDS,
        )
        self.evictor, self.placements = self.evicting.evictor, self.evicting.placements
        self.handler = PodHandler(self.state, self.placements)
        self.start = clock()

    def _reply(self, sent: Sent) -> Any:
        return self.answer(sent) if callable(self.answer) else self.answer

    async def see(self, *pods: Pod) -> None:
        for pod in pods:
            self.handler.changed(pod)
        await asyncio.sleep(0.01)

    def avoided(self) -> set[str]:
        """Nodes that the job's next pod would pass over."""
        self.state.pod_changed(make_pod("probe", uid="probe"))
        (job,) = self.state.waiting_jobs()
        self.state.pod_gone(PodUID("probe"))
        return set(job.pods[0].avoid)

    @property
    def evictions(self) -> list[str]:
        return [s.path.split("/")[-2] for s in self.client.of("POST", "/eviction")]

    @property
    def marks(self) -> list[str]:
        return [s.body["status"]["conditions"][0]["type"] for s in self.client.of("PATCH")]


def rejected(version: int = 2, **settings: Any) -> Pod:
    """A pod that the kubelet refused: failed, no conditions, no container ever made."""
    return make_pod(
        version=version, node="a", devices=half(), phase="Failed", reason="OutOfcpu", **settings
    )


# --- ends ---


@virtual
async def test_a_rejected_pod_is_marked_once_and_its_node_avoided() -> None:
    case = Case()
    await case.see(rejected(2), rejected(3), rejected(4))
    assert case.marks == [CONDITION_DISRUPTION]
    assert case.client.sent[0].body["metadata"]["uid"] == "uid-job-0"
    assert case.evictor.counts == {"rejected": 1}
    assert case.avoided() == {"a"}
    ((name, reason, message),) = case.events.said
    assert (name, reason) == ("job", "PodRejected")
    assert "OutOfcpu" in message and "kubelet of a" in message


SAID = {"status": "True", "reason": SAID_BY_POLICY, "message": "Pod was rejected"}


@virtual
async def test_what_the_policy_said_of_a_rejected_pod_is_told_in_full_and_never_charged() -> None:
    case = Case()
    case.answer = COUNTED  # the Job controller was faster, and passed it over
    said = ({"type": CONDITION_DISRUPTION, **SAID},)
    await case.see(rejected(2, conditions=said), rejected(3, conditions=said))
    assert case.marks == [CONDITION_DISRUPTION]
    assert case.client.sent[0].body["status"]["conditions"][0]["reason"] == "OutOfcpu"
    assert case.evictor.counts == {"rejected": 1}
    assert case.avoided() == {"a"}
    assert [reason for _, reason, _ in case.events.said] == ["PodRejected"]


@virtual
async def test_what_the_policy_said_of_a_pod_past_its_time_limit_is_told_in_full() -> None:
    case = Case()
    said = ({"type": CONDITION_TIME_LIMIT, **SAID},)
    late = {"phase": "Failed", "reason": "DeadlineExceeded", "ran": True, "conditions": said}
    await case.see(make_pod(node="a", devices=half(), **late))
    assert case.marks == [CONDITION_TIME_LIMIT]
    assert case.evictor.counts == {"time_limit": 1}


@virtual
async def test_a_new_leader_keeps_off_nodes_that_rejected_pods_under_earlier_ones() -> None:
    """Three times in vain on one node, the last 100 s ago: it is avoided for 240 s from then."""
    case = Case()
    case.placements._now = lambda: EPOCH + clock() - case.start
    mark = {**DISRUPTED, "reason": "OutOfcpu", "message": "the kubelet of a rejected the pod: no"}
    before = [
        rejected(
            name=f"job-0-{i}", uid=f"u{i}", conditions=(mark,), startTime=f"2026-01-01T00:{at}Z"
        )
        for i, at in enumerate(("00:00", "02:00", "03:20"))
    ]
    await case.see(*before, *before)
    assert case.avoided() == {"a"}
    assert case.marks == []  # they are
    assert case.events.said == []
    assert case.state.waiting.next_expiry() == pytest.approx(case.start + 140, abs=1)


EPOCH = 1_767_225_900.0  # 2026-01-01T00:05:00Z


@virtual
async def test_a_retry_that_was_charged_all_the_same_is_counted() -> None:
    case = Case()
    case.answer = COUNTED
    await case.see(rejected())
    assert case.evictor.counts == {"charged_by_race": 1}


@virtual
async def test_a_pod_past_its_time_limit_is_marked_as_such() -> None:
    case = Case()
    late = make_pod(node="a", devices=half(), phase="Failed", reason="DeadlineExceeded", ran=True)
    await case.see(late)
    assert case.marks == [CONDITION_TIME_LIMIT]
    assert case.avoided() == set()


@virtual
async def test_a_limit_of_the_template_is_named_as_such() -> None:
    case, late = Case(), {"phase": "Failed", "reason": "DeadlineExceeded", "ran": True}
    main = {"containers": [{"name": "main", "image": "x"}], "activeDeadlineSeconds": 5}
    case.state.gpujob_changed(make_gpujob(template={"spec": main}))
    bears = {LIMIT_OF_TEMPLATE: "true"}
    await case.see(make_pod(node="a", devices=half(), limit_seconds=5, annotations_=bears, **late))
    (sent,) = case.client.of("PATCH")
    (condition,) = sent.body["status"]["conditions"]
    field = "template.spec.activeDeadlineSeconds (5 s)"
    assert condition["message"] == f"the pod ran longer than {field}"
    (known,) = case.state.pods.known.values()
    assert known.failure is not None
    assert known.failure.message.startswith(f"it ran longer than {field}")


@virtual
async def test_a_pod_that_asks_by_itself_is_told_its_own_field() -> None:
    case, late = Case(), {"phase": "Failed", "reason": "DeadlineExceeded", "ran": True}
    pod = asking(node="a", devices=half(), limit_seconds=60, **late)
    await case.see(pod)
    (sent,) = case.client.of("PATCH")
    (condition,) = sent.body["status"]["conditions"]
    assert condition["type"] == CONDITION_TIME_LIMIT
    assert condition["message"] == "the pod ran longer than spec.activeDeadlineSeconds (60 s)"
    known = case.state.pods.known[PodUID("uid-web-1")].failure
    assert known is not None
    assert known.message.startswith("it ran longer than spec.activeDeadlineSeconds (60 s)")


@virtual
async def test_of_one_that_is_rejected_it_says_whether_another_one_comes() -> None:
    for controller, then in (("ReplicaSet", "placing it elsewhere"), ("", "nobody makes it again")):
        case = Case()
        refused = {"phase": "Failed", "reason": "OutOfcpu"}
        await case.see(asking(controller=controller, node="a", devices=half(), **refused))
        ((name, reason, message),) = case.events.said
        assert (name, reason) == ("web-1", "PodRejected")
        assert message.endswith(f"; {then}")


DISRUPTED = {"type": "DisruptionTarget", "status": "True"}
LEFT_ALONE: dict[str, Pod] = {
    "a program that failed": make_pod(node="a", devices=half(), phase="Failed", ran=True),
    "a success": make_pod(node="a", devices=half(), phase="Succeeded", ran=True),
    "an eviction": make_pod(
        node="a", devices=half(), phase="Failed", reason="Evicted", conditions=(DISRUPTED,)
    ),
    "one that was never ours to place": make_pod(path="other", node="a", phase="Failed"),
    "somebody else's": make_pod(job=None, node="a", devices=half(), phase="Failed"),
    "one that runs": make_pod(node="a", devices=half(), phase="Running", ran=True),
}


@pytest.mark.parametrize("case_name", LEFT_ALONE)
def test_other_ends_are_left_alone(case_name: str) -> None:
    @virtual
    async def run() -> None:
        case = Case()
        await case.see(LEFT_ALONE[case_name])
        async with case.evicting.running():
            await asyncio.sleep(100)
        assert case.client.sent == []
        assert case.avoided() == set()

    run()


@virtual
async def test_a_rejection_that_is_seen_before_its_job_is_marked_when_the_job_is_known() -> None:
    """After a change of leader the lists arrive in any order."""
    case = Case()
    case.state.job_gone("job-uid")
    async with case.evicting.running():
        await case.see(rejected())
        assert case.marks == []
        case.state.job_changed(make_job(version=2))
        await asyncio.sleep(5)
    assert case.marks == [CONDITION_DISRUPTION]


@pytest.mark.parametrize("answer", [BROKEN, CONFLICT])
def test_a_mark_that_failed_is_tried_again(answer: errors.ApiError) -> None:
    @virtual
    async def run() -> None:
        case = Case()
        case.answer = answer
        async with case.evicting.running():
            await case.see(rejected())
            case.answer = TRACKED
            await asyncio.sleep(5)
        assert case.marks == [CONDITION_DISRUPTION] * 2
        assert case.evictor.counts == {"rejected": 1}
        assert len(case.events.said) == 1

    run()


@virtual
async def test_a_mark_whose_answer_cannot_be_read_is_tried_again() -> None:
    case = Case()
    case.answer = {}
    async with case.evicting.running():
        await case.see(rejected())
        case.answer = TRACKED
        await asyncio.sleep(5)
    assert case.marks == [CONDITION_DISRUPTION] * 2


@virtual
async def test_a_pod_that_is_gone_before_its_mark_is_no_error() -> None:
    case = Case()
    case.answer = NOT_FOUND
    async with case.evicting.running():
        await case.see(rejected())
        case.handler.gone("team-a", "job-0", "uid-job-0")
        await asyncio.sleep(100)
    assert len(case.client.sent) == 1
    assert case.evictor.counts == {}


@virtual
async def test_a_node_that_fails_a_job_again_is_avoided_for_longer() -> None:
    case = Case()
    await case.see(rejected(uid="first"))
    assert case.state.waiting.next_expiry() == pytest.approx(clock() + AVOID_SECONDS, abs=1)
    await case.see(rejected(uid="second", name="job-1"))
    assert case.state.waiting.next_expiry() == pytest.approx(clock() + 2 * AVOID_SECONDS, abs=1)


# --- pods that hang ---


def stuck(version: int = 2, **settings: Any) -> Pod:
    """Released from its gate, pinned to node a, and kube-scheduler finds no room there."""
    said: dict[str, Any] = {"conditions": (UNSCHEDULABLE,), **settings}
    return make_pod(version=version, path="other", devices=half(), allocated_node="a", **said)


@virtual
async def test_a_stuck_pod_is_evicted_after_its_time_and_not_before() -> None:
    case = Case()
    async with case.evicting.running():
        await case.see(stuck())
        await asyncio.sleep(STUCK_SECONDS - 1)
        assert case.evictions == []
        await asyncio.sleep(4)
        assert case.evictions == ["job-0"]
        assert case.avoided() == {"a"}
        await asyncio.sleep(100)
    assert case.evictions == ["job-0"]
    assert case.evictor.counts == {"stuck": 1}
    assert "0/1 nodes are available" in case.events.said[0][2]


@virtual
@pytest.mark.parametrize("reason", ["Unschedulable", "SchedulerError"])
async def test_kube_schedulers_own_sentence_is_remembered_and_the_job_is_in_doubt(
    reason: str,
) -> None:
    """The second reason is that of a Binding that is refused, as by a policy."""
    case, said = Case(), {**UNSCHEDULABLE, "reason": reason}
    async with case.evicting.running():
        await case.see(stuck(conditions=(said,)))
        await asyncio.sleep(STUCK_SECONDS + 3)
    doubt = case.state.waiting.doubts.of(KEY)
    assert case.avoided() == {"a"} and doubt is not None
    assert doubt.why == f"kube-scheduler could not bind job-0 to a: {UNSCHEDULABLE['message']}"
    case.state.gpujob_gone(KEY)
    async with case.evicting.running():
        await asyncio.sleep(3)
    assert not case.state.waiting.avoided(KEY) and KEY not in case.state.waiting.doubts


@virtual
async def test_a_claim_that_is_missing_is_its_users_to_make_and_no_other_node_is_promised() -> None:
    case = Case()
    said = '0/1 nodes are available: persistentvolumeclaim "data" not found. not found'
    pod = stuck()
    condition = msgspec.structs.replace(pod.status.conditions[0], message=said)
    status = msgspec.structs.replace(pod.status, conditions=(condition,))
    async with case.evicting.running():
        await case.see(msgspec.structs.replace(pod, status=status))
        await asyncio.sleep(STUCK_SECONDS + 3)
    assert case.events.said[0][2] == (
        "job-0 cannot start on a: PersistentVolumeClaim data of namespace team-a is not there:"
        " whoever made the pod has to make it, or name another; giving its GPUs back until then"
    )
    doubt = case.state.waiting.doubts.of(KEY)
    assert doubt is not None and "not found. not found" not in doubt.why


@virtual
async def test_a_kubelet_that_rejects_is_to_blame_and_when_two_do_the_job_is() -> None:
    case = Case()
    doubts = case.state.waiting.doubts
    await case.see(rejected(uid="1"), rejected(uid="2"))  # of one plan
    assert case.state.waiting.avoided(KEY).keys() == {"a"} and not doubts.held_back(KEY)
    case.state.nodes.changed(make_node("b"))
    elsewhere = {"devices": half("b/0"), "phase": "Failed", "reason": "OutOfcpu"}
    await case.see(make_pod(uid="3", node="b", **elsewhere))
    assert case.state.waiting.avoided(KEY).keys() == {"a", "b"} and doubts.held_back(KEY)
    await case.see(make_pod(uid="4", node="a", devices=half(), phase="Running"))
    assert KEY not in doubts


def silent(version: int = 2, **settings: Any) -> Pod:
    """Released from its gate, pinned to node a, and kube-scheduler says nothing."""
    return make_pod(version=version, path="other", devices=half(), allocated_node="a", **settings)


@virtual
async def test_a_pod_of_which_kube_scheduler_says_nothing_gives_its_place_back() -> None:
    case = Case()
    async with case.evicting.running():
        await case.see(silent())
        await asyncio.sleep(4 * STUCK_SECONDS - 1)
        assert case.evictions == []
        await asyncio.sleep(4)
    assert case.evictions == ["job-0"]
    doubt = case.state.waiting.doubts.of(KEY)
    assert doubt is not None and case.state.waiting.doubts.held_back(KEY)
    assert "has not bound it within 120 s, and does not say why" in doubt.why
    assert "resource claim" in case.events.said[0][2]


@virtual
async def test_what_kube_scheduler_says_in_between_gives_a_pod_no_more_time() -> None:
    case = Case()
    async with case.evicting.running():
        for version in range(2, 40, 2):
            await case.see(silent(version))
            await asyncio.sleep(STUCK_SECONDS / 4)
            await case.see(stuck(version + 1))
            await asyncio.sleep(STUCK_SECONDS / 4)
    assert case.evictions == ["job-0"]


@pytest.mark.parametrize("conditions", [(), (UNSCHEDULABLE,)])
def test_a_pod_that_nobody_makes_again_has_as_long_as_its_project_gives(conditions: Any) -> None:
    @virtual
    async def run() -> None:
        case = Case()
        pod = asking(
            controller="", path="other", devices=half(), allocated_node="a", conditions=conditions
        )
        async with case.evicting.running():
            await case.see(pod)
            await asyncio.sleep(START_TIMEOUT_SECONDS - 1)
            assert case.evictions == []
            await asyncio.sleep(4)
        assert case.evictions == ["web-1"]
        assert case.events.said[-1][2].endswith("; nobody makes it again")

    run()


@virtual
async def test_the_next_pod_of_a_deployment_is_in_the_doubt_of_the_one_before() -> None:
    """Each of its pods is a group of its own, and so is each that comes in its place."""
    case = Case()
    placed = {"path": "other", "devices": half(), "allocated_node": "a"}

    async def is_doubtful(name: str) -> bool:
        await case.see(asking(name))
        (job,) = case.state.waiting_jobs()
        return job.doubtful

    async with case.evicting.running():
        await case.see(asking(conditions=(UNSCHEDULABLE,), **placed))
        await asyncio.sleep(STUCK_SECONDS + 3)
        assert case.evictions == ["web-1"]
        case.handler.gone("team-a", "web-1", "uid-web-1")
        for name in ("web-2", "web-3"):
            assert await is_doubtful(name)
            case.handler.gone("team-a", name, f"uid-{name}")
        await case.see(asking("web-4", node="a", devices=half(), phase="Running"))
        assert await is_doubtful("web-5"), "it was never in doubt itself, and may have begun before"


@virtual
async def test_nobody_goes_again_for_a_program_that_cannot_be_begun() -> None:
    case = Case()
    ended = {"reason": "StartError", "exitCode": 128, "message": "exec: no such file"}
    statuses = [{"name": "main", "state": {"terminated": ended}}]

    async def fails(uid: str) -> None:
        await case.see(
            make_pod(uid=uid, node="a", devices=half(), phase="Failed", containerStatuses=statuses)
        )

    await fails("1")
    doubts = case.state.waiting.doubts
    assert KEY in doubts and not doubts.held_back(KEY) and case.marks == []
    await case.see(make_pod("job-1", uid="2", node="a", devices=half("1"), phase="Running"))
    await fails("1")
    await fails("3")
    assert KEY not in doubts, "others of it run"


@virtual
async def test_once_one_of_them_has_started_the_next_is_in_no_doubt() -> None:
    case = Case()
    refused = {"phase": "Failed", "reason": "OutOfcpu"}
    await case.see(asking(node="a", devices=half(), **refused))
    await case.see(asking("web-2"))
    (job,) = case.state.waiting_jobs()
    assert job.doubtful
    await case.see(asking("web-2", version=2, node="a", devices=half(), phase="Running"))
    await case.see(asking("web-3"))
    (job,) = case.state.waiting_jobs()
    assert not job.doubtful


@virtual
async def test_a_new_leader_reads_the_doubt_off_a_pod_that_waits() -> None:
    case = Case()
    said = "PlacementRefused: no port; until one of its pods has started it gets free GPUs only"
    said += ", and nobody gives way to it; needs 1 GPU"
    condition = {**UNSCHEDULABLE, "reason": "PlacementRefused", "message": said}
    await case.see(asking("web-2", conditions=(condition,)))
    (job,) = case.state.waiting_jobs()
    assert job.doubtful


@virtual
async def test_a_pod_that_starts_in_time_is_not_evicted() -> None:
    case = Case()
    async with case.evicting.running():
        await case.see(stuck())
        await asyncio.sleep(STUCK_SECONDS - 5)
        await case.see(make_pod(version=3, path="other", node="a", devices=half()))
        await asyncio.sleep(100)
    assert case.evictions == []


@virtual
async def test_the_time_starts_anew_when_a_pod_gets_stuck_anew() -> None:
    case = Case()
    async with case.evicting.running():
        await case.see(stuck(2))
        await asyncio.sleep(STUCK_SECONDS - 5)
        await case.see(make_pod(version=3, path="other", devices=half(), allocated_node="a"))
        await case.see(stuck(4))
        await asyncio.sleep(STUCK_SECONDS - 5)
        assert case.evictions == []


@virtual
async def test_a_stuck_pod_that_goes_by_itself_is_forgotten() -> None:
    case = Case()
    async with case.evicting.running():
        await case.see(stuck())
        await asyncio.sleep(5)
        case.handler.gone("team-a", "job-0", "uid-job-0")
        await asyncio.sleep(100)
    assert case.client.sent == []


@virtual
async def test_a_pod_on_a_node_that_vanished_is_evicted() -> None:
    case = Case()
    async with case.evicting.running():
        await case.see(make_pod(node="a", devices=half()))
        case.state.nodes.gone("a")
        await asyncio.sleep(STUCK_SECONDS + 5)
    assert case.evictions == ["job-0"]
    assert "the node is gone" in case.events.said[0][2]


@virtual
async def test_a_node_that_is_back_in_time_keeps_its_pods() -> None:
    case = Case()
    async with case.evicting.running():
        await case.see(make_pod(node="a", devices=half()))
        case.state.nodes.gone("a")
        await asyncio.sleep(STUCK_SECONDS - 5)
        case.state.nodes.changed(make_node("a"))
        await asyncio.sleep(100)
    assert case.evictions == []


@virtual
async def test_an_eviction_that_met_a_conflict_is_tried_again_until_the_pod_goes() -> None:
    """The answer need not mean that the pod was replaced: it may just have been changed."""
    case = Case()
    case.answer = CONFLICT
    async with case.evicting.running():
        await case.see(stuck())
        await asyncio.sleep(STUCK_SECONDS + 5)
        assert len(case.evictions) >= 2
        case.handler.gone("team-a", "job-0", "uid-job-0")
        before = len(case.evictions)
        await asyncio.sleep(20)
    assert len(case.evictions) == before
    assert case.evictor.counts == {"stuck": 1} and len(case.events.said) == 1


@virtual
async def test_an_eviction_that_is_tried_again_does_not_make_the_node_avoided_for_longer() -> None:
    """One pod is one failure of the node, however often its eviction is asked for."""
    case = Case()
    case.answer = CONFLICT
    async with case.evicting.running():
        await case.see(stuck())
        await asyncio.sleep(STUCK_SECONDS + 3)
        until = case.state.waiting.next_expiry()
        await asyncio.sleep(20)
        assert len(case.evictions) > 2
        assert case.state.waiting.next_expiry() == until


@virtual
async def test_a_disruption_budget_delays_an_eviction() -> None:
    case = Case()
    answers: list[Any] = [BUSY, BUSY, BUSY, {}]
    case.answer = lambda sent: answers.pop(0)
    async with case.evicting.running():
        await case.see(stuck())
        await asyncio.sleep(STUCK_SECONDS + 20)
    assert case.evictions == ["job-0"] * 4
    assert case.evictor.counts == {"stuck": 1}


@virtual
async def test_a_disruption_budget_that_goes_on_saying_no_is_asked_again_and_again() -> None:
    case = Case()
    case.answer = BUSY
    async with case.evicting.running():
        await case.see(stuck())
        await asyncio.sleep(600)
        asked = len(case.evictions)
        assert asked > 10
        case.answer = {}
        await asyncio.sleep(100)
        assert len(case.evictions) > asked


@virtual
async def test_a_closed_fence_ends_it() -> None:
    case = Case()
    case.answer = NOT_LEADER
    with pytest.raises(errors.NotLeader):
        async with case.evicting.running():
            await asyncio.sleep(1)
            await case.see(rejected())
            await asyncio.sleep(10)


# --- devices above their capacity ---

OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def both(first: str = "0", second: str = "0") -> list[Pod]:
    """Two pods, 0.6 of a GPU each, on device ``first`` and ``second``."""
    return [
        make_pod("new", node="a", devices=half(second, 600), created=NEW, phase="Running"),
        make_pod("old", node="a", devices=half(first, 600), created=OLD, phase="Running"),
    ]


@virtual
async def test_devices_within_their_capacity_are_left_alone() -> None:
    case = Case()
    await case.see(*both("0", "1"))
    assert not relieve(case.state, case.evictor)
    assert case.client.sent == []


@virtual
async def test_of_two_pods_on_too_small_a_device_the_newer_goes_once() -> None:
    case = Case()
    await case.see(*both())
    assert relieve(case.state, case.evictor)
    await asyncio.sleep(0.01)
    assert case.evictions == ["new"]
    assert case.evictor.counts == {"overbooked": 1}
    assert [reason for _, reason, _ in case.events.said] == ["Overbooked"]


@virtual
async def test_planning_goes_on_while_an_evicted_pod_takes_its_time() -> None:
    """Its device is full in the arrays anyway; other nodes need not wait for its grace period."""
    case = Case()
    await case.see(*both())
    assert relieve(case.state, case.evictor)
    assert not relieve(case.state, case.evictor)


@virtual
async def test_a_device_that_is_named_in_two_ways_is_one_device() -> None:
    """Pods from before the agent name it by index, later ones by UUID."""
    case = Case()
    agent = (NodeDevice("GPU-0", 0, "A100", 40960), NodeDevice("GPU-1", 1, "A100", 40960))
    case.state.nodes.reported("a", agent)
    await case.see(*both("0", "GPU-0"))
    assert relieve(case.state, case.evictor)
    await asyncio.sleep(0.01)
    assert case.evictions == ["new"]


@virtual
async def test_a_device_that_no_node_lists_is_given_out_once_as_any_other() -> None:
    case = Case()
    await case.see(*both("GPU-gone", "GPU-gone"))
    assert relieve(case.state, case.evictor)
    await asyncio.sleep(0.01)
    assert case.evictions == ["new"]


@virtual
async def test_an_eviction_from_an_overbooked_device_that_failed_is_tried_again() -> None:
    case = Case()
    case.answer = BROKEN
    async with case.evicting.running():
        await case.see(*both())
        assert relieve(case.state, case.evictor)
        await asyncio.sleep(0.5)
        case.answer = {}
        await asyncio.sleep(5)
    assert case.evictions == ["new", "new"]
