"""One write per decision, and no answer left unresolved: what is charged is what may be placed."""

import asyncio
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.runtime.evicting import Evicting
from tests.unit.runtime.fake_client import (
    AWAY,
    BROKEN,
    CONFLICT,
    NOT_FOUND,
    NOT_LEADER,
    UNPROCESSABLE,
    FakeClient,
    FakeTerm,
    Sent,
)
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.builders import half, make_assignment, make_gpujob, make_pod
from tests.unit.state.test_cluster_state import free, make_cluster_state, waiting

from gpu_scheduler.api.names import LABEL_PATH, TERM, TOUCHED, context_mib_annotation
from gpu_scheduler.core.model.decision import Assignment
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.jobs.place import Pin
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.binding.binder import Binder, Writing
from gpu_scheduler.runtime.jobs.doubting import doubt, expire, observe
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.doubts import FailedStart

POD = PodUID("uid-job-0")
KEY = make_gpujob().key
REFUSALS = [CONFLICT, NOT_FOUND, UNPROCESSABLE, errors.Forbidden(403)]


class Case:
    """A cluster with one waiting pod, and an API server that a test scripts."""

    def __init__(self, pod: Pod | None = None, *, pin: Pin = Pin.AFFINITY) -> None:
        self.pod = pod or make_pod()
        self.state: ClusterState = make_cluster_state(self.pod)
        self.answer: Any = {}  # to the write
        self.now: Any = self.pod  # what a read or a touch shows
        self.client = FakeClient(self._reply)
        self.term = FakeTerm()
        self.told: list[tuple[str, str]] = []  # of pods that were placed
        self.binder = Binder(
            self.state,
            self.client,  # type: ignore[arg-type]
            self.term,  # type: ignore[arg-type]
            Evicting(self.state, self.client, None).gangs,
            Writing(2, pin, placed=self._placed),
            clock=clock,
        )

    def _placed(self, decision: Assignment, pod: Pod) -> None:
        self.told.append((decision.node, pod.metadata.name))

    def _reply(self, sent: Sent) -> Any:
        found = self.now if sent.method == "GET" or touches(sent) else self.answer
        return found() if callable(found) else found

    def decide(self) -> None:
        self.state.decisions.assume(make_assignment())
        self.state.changes.some.clear()
        self.binder.submit(make_assignment(), self.pod)

    @property
    def charged(self) -> bool:
        return POD in self.state.ledger.charges

    async def run(self, seconds: float = 1.0) -> None:
        async with Running(self.binder.run()):
            await asyncio.sleep(seconds)


def touches(sent: Sent) -> bool:
    return TOUCHED in (sent.body or {}).get("metadata", {}).get("annotations", {})


def bound(version: int = 2, **settings_: Any) -> Pod:
    return make_pod(version=version, node="a", devices=half(), **settings_)


@virtual
async def test_a_write_that_is_taken_leaves_the_charge_until_the_watch_shows_it() -> None:
    case = Case()
    case.decide()
    await case.run(3600)
    assert [(s.method, s.path) for s in case.client.sent] == [
        ("POST", "/api/v1/namespaces/team-a/pods/job-0/binding")
    ]
    assert case.charged
    assert case.binder.results == {"placed": 1}
    assert case.told == [("a", "job-0")]
    case.state.pod_changed(bound())
    assert (free(case.state), case.state.decisions.assumed) == ([500, 1000], {})


@virtual
async def test_others_wait_for_a_placement_that_is_under_way_and_for_none_that_is_held_up() -> None:
    case = Case()
    case.answer = lambda: asyncio.sleep(8, {})
    case.decide()
    async with Running(case.binder.run()):
        assert case.binder.hurries()
        await asyncio.sleep(0.9)
        assert case.binder.hurries()
        await asyncio.sleep(0.2)
        assert not case.binder.hurries()
        assert case.binder.results == {}
        await asyncio.sleep(8)
    assert case.binder.results == {"placed": 1}
    at_once = Case()
    at_once.decide()
    await at_once.run(0.1)
    assert not at_once.binder.hurries()


@virtual
async def test_a_gated_pod_is_released_by_one_patch() -> None:
    case = Case(make_pod(path="gate"))
    case.decide()
    await case.run()
    (patch,) = case.client.sent
    gates = [{"$patch": "delete", "name": "gpu-scheduler.io/placement"}]
    assert (patch.method, patch.body["spec"]["schedulingGates"]) == ("PATCH", gates)


@virtual
async def test_a_gated_pod_can_be_pinned_by_the_nodes_host_name() -> None:
    from tests.unit.state.builders import make_node

    case = Case(make_pod(path="gate"), pin=Pin.HOSTNAME)
    case.state.nodes.changed(make_node("a", labels={"kubernetes.io/hostname": "a.example"}))
    case.decide()
    await case.run()
    (patch,) = case.client.sent
    assert patch.body["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "a.example"}


@pytest.mark.parametrize("answer", [*REFUSALS, AWAY, BROKEN], ids=lambda e: type(e).__name__)
def test_a_write_that_did_not_happen_is_taken_back(answer: errors.ApiError) -> None:
    @virtual
    async def run() -> None:
        case = Case()
        case.answer = answer
        case.decide()
        await case.run()
        assert not case.charged
        assert waiting(case.state) == {"team-a/job": ["job-0"]}
        assert case.state.changes.some.is_set()
        assert "placed" not in case.binder.results
        assert case.told == []

    run()


@pytest.mark.parametrize("answer", [*REFUSALS, AWAY, BROKEN], ids=lambda e: type(e).__name__)
def test_a_write_that_did_happen_counts_whatever_the_answer_was(answer: errors.ApiError) -> None:
    @virtual
    async def run() -> None:
        case = Case()
        case.answer, case.now = answer, bound()
        case.decide()
        await case.run()
        assert case.charged
        assert waiting(case.state) == {}
        assert case.binder.results == {"placed": 1}
        assert case.told == [("a", "job-0")]

    run()


@virtual
async def test_a_pod_that_is_gone_is_forgotten() -> None:
    case = Case()
    case.answer, case.now = CONFLICT, NOT_FOUND
    case.decide()
    await case.run()
    assert (free(case.state), waiting(case.state)) == ([1000, 1000], {})
    assert case.binder.results == {"gone": 1}


@virtual
async def test_a_pod_that_was_replaced_by_its_namesake_is_forgotten() -> None:
    case = Case()
    case.answer, case.now = UNPROCESSABLE, make_pod(uid="another", version=9)
    case.decide()
    await case.run()
    assert (free(case.state), waiting(case.state)) == ([1000, 1000], {})
    assert PodUID("another") not in case.state.pods.known  # the watch brings it


@virtual
async def test_a_pod_that_is_being_deleted_does_not_wait_again() -> None:
    case = Case()
    case.answer, case.now = CONFLICT, make_pod(version=2, deleting=True)
    case.decide()
    await case.run()
    assert (free(case.state), waiting(case.state)) == ([1000, 1000], {})


@virtual
async def test_the_charge_stays_while_nobody_can_say_what_became_of_the_write() -> None:
    case = Case()
    case.answer = case.now = AWAY
    case.decide()
    async with Running(case.binder.run()):
        await asyncio.sleep(3600)
        assert case.charged
        reads = sum(map(touches, case.client.sent))
        assert 3600 / 30 <= reads < 3600 / 30 + 20  # it keeps asking, but not often
        case.now = bound()
        await asyncio.sleep(60)
    assert case.charged
    assert case.binder.results == {"placed": 1}


@virtual
async def test_a_long_absence_of_the_server_ends_with_the_pod_waiting_again() -> None:
    case = Case()
    case.answer = case.now = AWAY
    case.decide()
    async with Running(case.binder.run()):
        await asyncio.sleep(3600)
        case.now = case.pod
        await asyncio.sleep(60)
    assert waiting(case.state) == {"team-a/job": ["job-0"]}
    assert case.binder.idle.is_set()


@virtual
async def test_the_watch_may_be_faster_than_the_answer() -> None:
    case = Case()

    async def late() -> errors.ApiError:
        case.state.pod_changed(bound(version=3))
        return AWAY

    case.answer, case.now = lambda: late(), bound(version=2)
    case.decide()
    await case.run()
    assert case.charged
    assert case.binder.results == {"placed": 1}


@virtual
async def test_a_read_that_is_older_than_the_watch_is_repeated() -> None:
    """Otherwise the pod would neither wait nor hold anything."""
    case = Case()
    reads = iter([make_pod(version=1), make_pod(version=2, cpu="3")])

    async def overtaken() -> Pod:
        case.state.pod_changed(make_pod(version=2, cpu="3"))
        return next(reads)

    case.answer, case.now = CONFLICT, lambda: overtaken()
    case.decide()
    await case.run(10)
    assert waiting(case.state) == {"team-a/job": ["job-0"]}


@virtual
async def test_a_pod_that_goes_while_it_is_read_stays_gone() -> None:
    """Otherwise it would hold its GPU for ever: the watch has told its end already."""
    case = Case()

    async def overtaken() -> Pod:
        case.state.pod_gone(POD)
        return bound()

    case.answer, case.now = AWAY, lambda: overtaken()
    case.decide()
    await case.run(10)
    assert free(case.state) == [1000, 1000]
    assert POD not in case.state.pods.known


@virtual
async def test_a_job_has_something_to_say_when_its_placement_takes_long() -> None:
    case = Case()
    hold = asyncio.Event()
    case.answer = hold.wait
    case.decide()
    case.state.changes.touched.clear()
    async with Running(case.binder.run()):
        await asyncio.sleep(0.9)
        assert not case.state.changes.touched
        await asyncio.sleep(0.2)
        assert case.state.changes.touched == {make_assignment().job}
        hold.set()


@virtual
async def test_a_placement_that_is_quick_says_nothing() -> None:
    case = Case()
    case.decide()
    case.state.changes.touched.clear()
    await case.run(10)
    assert not case.state.changes.touched


@virtual
async def test_what_cannot_be_placed_is_not_sent_and_the_node_left_alone_for_a_while() -> None:
    """Otherwise the planner would choose the same node again at once, and again."""
    case = Case(make_pod(path="gate"), pin=Pin.HOSTNAME)  # the node has no such label
    case.decide()
    await case.run()
    assert case.client.of("PATCH") == []
    assert case.binder.results == {"not_placeable": 1}
    (job,) = case.state.waiting_jobs()
    assert job.pods[0].avoid == {"a"}


@virtual
async def test_a_write_that_is_refused_as_such_is_not_repeated_at_once() -> None:
    case = Case()
    case.answer = UNPROCESSABLE
    case.decide()
    await case.run()
    (job,) = case.state.waiting_jobs()
    assert job.pods[0].avoid == {"a"} and job.doubtful


@virtual
async def test_a_pod_that_is_said_to_be_absent_and_is_there_puts_its_job_in_no_doubt() -> None:
    case = Case()
    case.answer = NOT_FOUND
    case.decide()
    await case.run()
    assert case.state.waiting.doubts.of(KEY) is None and POD not in case.state.decisions.assumed


@virtual
async def test_what_a_policy_refuses_is_tried_elsewhere_soon_and_then_ever_more_seldom() -> None:
    case, said = Case(), "requests must equal limits here"
    case.answer = errors.Forbidden(403, "Forbidden", said)
    doubts, pauses = case.state.waiting.doubts, []
    async with Running(case.binder.run()):
        for _ in range(8):
            case.decide()
            await asyncio.sleep(0.6)
            known, until = doubts.of(KEY), doubts.next_expiry()
            assert known is not None and said in known.why and "job-0" in known.why
            assert until is not None and case.state.waiting_jobs()[0].pods[0].avoid == {"a"}
            pauses.append(round(until - clock()))
            await asyncio.sleep(until - clock())
            assert expire(case.state, clock()) and not doubts.held_back(KEY)
            (job,) = case.state.waiting_jobs()
            assert job.pods[0].avoid == {"a"}, "every other node has its turn"
    assert pauses == [1, 30, 60, 120, 240, 480, 600, 600]


@virtual
async def test_words_stay_until_a_pod_starts_or_the_spec_is_another() -> None:
    for news in ("started", "changed", "nothing"):
        case = Case()
        case.answer = errors.Forbidden(403, "Forbidden", "no")
        case.decide()
        await case.run()
        case.state.pod_changed(bound())
        observe(case.state, case.state.pods.known[POD], 0.0)
        assert KEY in case.state.waiting.doubts
        if news == "started":
            case.state.pod_changed(bound(3, phase="Running"))
            observe(case.state, case.state.pods.known[POD], 0.0)
        else:
            generation = 2 if news == "changed" else 1
            case.state.gpujob_changed(make_gpujob(generation=generation))
        assert (KEY in case.state.waiting.doubts) == (news == "nothing")


@virtual
async def test_one_member_of_a_gang_that_starts_shows_nothing() -> None:
    case = Case()
    case.state.gpujob_changed(make_gpujob(gang=True, parallelism=2))
    case.state.pod_changed(make_pod("job-1", index=1))
    doubt(case.state, KEY, FailedStart(0.0, "no", delays=lambda times: 1.0))
    for name, index in (("job-0", 0), ("job-1", 1)):
        assert KEY in case.state.waiting.doubts
        devices = half(f"a/{index}")
        case.state.pod_changed(
            make_pod(name, version=2, index=index, node="a", devices=devices, phase="Running")
        )
        observe(case.state, case.state.pods.known[PodUID(f"uid-{name}")], 0.0)
    assert KEY not in case.state.waiting.doubts


@virtual
async def test_a_lost_race_may_be_repeated_at_once() -> None:
    case = Case()
    case.answer = CONFLICT
    case.decide()
    await case.run()
    (job,) = case.state.waiting_jobs()
    assert job.pods[0].avoid == frozenset()


@virtual
async def test_a_closed_fence_ends_it_with_the_charge_kept() -> None:
    case = Case()
    case.answer = NOT_LEADER
    case.decide()
    with pytest.raises(BaseExceptionGroup) as caught:
        await case.run()
    assert caught.value.subgroup(errors.NotLeader) is not None
    assert case.charged


@virtual
async def test_it_is_idle_only_when_nothing_is_under_way() -> None:
    case = Case()
    assert case.binder.idle.is_set()
    case.answer = case.now = AWAY
    case.decide()
    async with Running(case.binder.run()):
        await asyncio.sleep(100)
        assert not case.binder.idle.is_set()
        case.now = NOT_FOUND
        await asyncio.sleep(100)
        assert case.binder.idle.is_set()


class Server:
    """Stores one pod, and loses, delays and refuses requests as it is told."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = faults
        self.pod: Pod | None = make_pod()
        self.version = 1
        self.held: list[Sent] = []

    @property
    def placed(self) -> bool:
        return self.pod is not None and self.pod.spec.node_name != ""

    def reply(self, sent: Sent) -> Any:
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "delete":
            self.pod = None
        if fault == "edit" and self.pod is not None and not self.placed:
            self.version += 1
            self.pod = make_pod(version=self.version)
        if fault == "late":
            self.deliver()
        if fault == "away":
            return AWAY
        if fault == "hold":
            if sent.method != "GET":
                self.held.append(sent)
            return AWAY
        answer = self.carry_out(sent)
        return AWAY if fault == "lost answer" else answer

    def deliver(self) -> None:
        """What was held back arrives after all."""
        while self.held:
            self.carry_out(self.held.pop(0))

    def carry_out(self, sent: Sent) -> Any:
        if self.pod is None:
            return NOT_FOUND
        if sent.method == "GET":
            return self.pod
        if touches(sent):
            self.version += 1
            self.pod = bound(self.version) if self.placed else make_pod(version=self.version)
            return self.pod
        if self.placed or sent.body["metadata"]["resourceVersion"] != str(self.version):
            return CONFLICT
        self.version += 1
        self.pod = bound(self.version)
        return {}


FAULTS = ["", "away", "lost answer", "delete", "edit", "hold", "late"]


@pytest.mark.long
@settings(max_examples=300)
@given(st.lists(st.sampled_from(FAULTS), max_size=12))
def test_a_charge_is_never_freed_while_the_pod_may_hold_it(faults: list[str]) -> None:
    """Also where a write arrives long after its client has given up."""

    @virtual
    async def run() -> None:
        case, server = Case(), Server(faults)
        case.client.reply = server.reply
        case.decide()
        async with Running(case.binder.run()):
            for _ in range(300):  # twelve answers that do not come are 212 s of back-off
                await asyncio.sleep(1)
                if not case.charged:
                    server.deliver()
                    assert not server.placed
            server.deliver()
        if server.pod is None:
            case.state.pod_gone(POD)  # as the watch tells
        assert case.charged == server.placed
        assert msgspec.json.encode(case.client.sent[0].body)

    run()


@virtual
async def test_a_write_without_a_known_answer_is_made_void_before_its_gpus_go_to_others() -> None:
    case = Case()
    server = Server(["hold"])
    case.client.reply = server.reply
    case.decide()
    await case.run()
    assert not case.charged
    assert waiting(case.state) == {"team-a/job": ["job-0"]}
    server.deliver()
    assert not server.placed


@virtual
async def test_nothing_is_given_away_while_it_is_not_known_whether_the_pod_was_touched() -> None:
    case = Case()
    server = Server(["hold"] + ["hold"] * 20)
    case.client.reply = server.reply
    case.decide()
    async with Running(case.binder.run()):
        await asyncio.sleep(200)
        assert case.charged
        await asyncio.sleep(1000)
    marks = [s.body["metadata"]["annotations"][TOUCHED] for s in case.client.sent if touches(s)]
    assert len(marks) == len(set(marks)) > 20  # the same value twice would change nothing
    assert not case.charged
    server.deliver()
    assert not server.placed


@virtual
async def test_a_touch_that_a_policy_refuses_says_nothing_about_the_pod() -> None:
    """Policies answer 422 as well, as a uid that is another one does."""
    case = Case()
    case.answer = AWAY
    case.client.reply = lambda sent: UNPROCESSABLE if touches(sent) else case._reply(sent)
    case.decide()
    await case.run(100)
    assert case.charged


@virtual
async def test_a_touch_that_finds_another_pod_of_that_name_ends_the_matter() -> None:
    case = Case()
    case.answer, case.now = AWAY, make_pod(uid="another", version=9)
    case.client.reply = lambda sent: UNPROCESSABLE if touches(sent) else case._reply(sent)
    case.decide()
    await case.run()
    assert (free(case.state), waiting(case.state)) == ([1000, 1000], {})


@virtual
async def test_a_known_answer_costs_no_touch() -> None:
    case = Case()
    case.answer = UNPROCESSABLE
    case.decide()
    await case.run()
    assert not any(map(touches, case.client.sent))


@pytest.mark.parametrize("path", ["bind", "gate"])
def test_a_pod_of_which_only_metadata_changed_gets_its_write_again_at_once(path: str) -> None:
    @virtual
    async def run() -> None:
        case = Case(make_pod(path=path))
        answers: list[Any] = [CONFLICT, CONFLICT, {}]
        case.answer = lambda: answers.pop(0)
        case.now = make_pod(path=path, version=2, annotations_={"own": "1"})
        case.decide()
        await case.run(0.1)
        versions = [
            sent.body["metadata"]["resourceVersion"]
            for sent in case.client.sent
            if sent.method != "GET"
        ]
        assert versions == ["1", "2", "2"]
        assert case.charged
        assert case.binder.results == {"raced": 2, "placed": 1}
        assert not case.state.changes.some.is_set()

    run()


@virtual
async def test_a_pod_that_changes_without_end_goes_back_to_the_planner() -> None:
    case = Case()
    case.answer = CONFLICT
    case.now = make_pod(version=2)
    case.decide()
    await case.run()
    assert len(case.client.of("POST")) == 5
    assert waiting(case.state) == {"team-a/job": ["job-0"]}
    (job,) = case.state.waiting_jobs()
    assert job.pods[0].avoid == frozenset()


@virtual
async def test_a_pod_that_asks_for_something_else_now_is_planned_anew() -> None:
    case = Case(make_pod(path="gate"))
    case.answer, case.now = CONFLICT, make_pod(path="gate", version=2, cpu="3")
    case.decide()
    await case.run()
    assert len(case.client.of("PATCH")) == 1
    assert waiting(case.state) == {"team-a/job": ["job-0"]}


@virtual
async def test_a_container_is_told_what_a_context_takes_on_its_device() -> None:
    case = Case()
    info, devices = case.state.ledger.node("a") or (None, ())
    assert info is not None
    measured = tuple(replace(device, context_mib=304) for device in devices)
    case.state.ledger.set_node(info, measured)
    case.decide()
    await case.run()
    (sent,) = case.client.sent
    assert sent.body["metadata"]["annotations"][context_mib_annotation(0)] == "304"


@pytest.mark.parametrize("path", ["bind", "gate"])
def test_every_placing_write_carries_the_term_and_says_its_path(path: str) -> None:
    @virtual
    async def run() -> None:
        case = Case(make_pod(path=path))
        case.decide()
        await case.run()
        (sent,) = case.client.sent
        meta = sent.body["metadata"]
        assert meta["annotations"][TERM] == "me/1"
        assert meta["labels"] == {LABEL_PATH: path}
        assert meta["resourceVersion"] == "1"

    run()


@pytest.mark.parametrize(
    "why", ["a/1 is over, b/2 leads", "failed to configure binding: no params found"]
)
def test_a_write_whose_term_is_refused_is_tried_again_on_the_same_node_but_not_at_once(
    why: str,
) -> None:
    """An API server that has not seen the new Lease yet must not make every job avoid its node."""

    @virtual
    async def run() -> None:
        case = Case()
        case.answer = errors.Forbidden(
            403, message=f"ValidatingAdmissionPolicy 'gpu-scheduler-term' denied request: {why}"
        )
        case.decide()
        async with Running(case.binder.run()):
            await asyncio.sleep(0.4)
            assert case.charged
            await asyncio.sleep(0.2)
        assert case.binder.results == {"fenced": 1}
        assert case.term.doubts == 1
        (job,) = case.state.waiting_jobs()
        assert job.pods[0].avoid == frozenset()

    run()


@virtual
async def test_a_pod_whose_write_cannot_be_made_stops_no_other() -> None:
    case = Case()

    class Breaks:
        def prepare(self, decision: Any, then: Any) -> bool:
            return True

        def annotations(self, decision: Any) -> dict[str, str]:
            raise KeyError("odd")

    how = case.binder._how
    case.binder._how = replace(how, more=Breaks())
    async with Running(case.binder.run()):
        for _ in range(3):  # more than there are workers
            case.decide()
            await asyncio.sleep(1)
            assert not case.charged and case.binder.idle.is_set()
        assert case.binder.results == {"unexpected": 3}
        case.binder._how = how
        case.decide()
        await asyncio.sleep(1)
        assert case.binder.results["placed"] == 1


@virtual
async def test_an_answer_that_breaks_our_code_leaves_the_charge_and_stops_nobody() -> None:
    case = Case()
    case.answer = RuntimeError("odd")
    async with Running(case.binder.run()):
        for _ in range(3):  # more than there are workers
            case.decide()
            await asyncio.sleep(1)
            assert case.charged and case.binder.idle.is_set()
            case.state.forget(POD, case.pod)
        case.answer = {}
        case.decide()
        await asyncio.sleep(1)
        assert case.binder.results == {"unexpected": 3, "placed": 1}
