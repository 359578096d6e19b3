"""Every write that the operator makes, as a scene in which somebody keeps wanting it.

A scene is given the API server's answer to that write and runs in virtual time: what asks for the
write goes on asking, as it does in the operator. ``call_sites`` are the places in the code that
write, found in the code; ``SCENES`` says which scene shows which of them.
"""

import ast
import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from tests.unit.runtime import pod_tokens, test_time_to_live
from tests.unit.runtime.binding import test_binder, test_node_orders, test_placeholder_pods
from tests.unit.runtime.binding import test_leader_term as test_term
from tests.unit.runtime.eviction import test_evictor, test_overdue
from tests.unit.runtime.fake_client import CONFLICT, NOT_FOUND, FakeClient, Sent
from tests.unit.runtime.job_writing import place_prospective
from tests.unit.runtime.jobs import test_lifting, test_missing, test_services
from tests.unit.runtime.jobs.test_reconcile import KEY, THERE
from tests.unit.runtime.jobs.test_reconcile import Case as Reconciling
from tests.unit.runtime.reports import test_checkpoints
from tests.unit.runtime.status import test_pod_advice
from tests.unit.runtime.status_case import Case as StatusCase
from tests.unit.runtime.usage.stage import UsageStage
from tests.unit.runtime.virtual_loop import clock
from tests.unit.state.builders import half, make_job, make_pod
from tests.unit.state.nodes.test_placeholders import make_holder
from tests.unit.sweeps.runtime import pruned, test_results
from tests.unit.sweeps.runtime.cases import Case as SweepCase

import gpu_scheduler
from gpu_scheduler.api.parts import parts
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.runtime.common.events import Events, InvolvedObject
from gpu_scheduler.runtime.jobs.acceptance import Refusal
from gpu_scheduler.runtime.jobs.creation import FoundJob, FoundMeta
from gpu_scheduler.runtime.jobs.template_judge import TemplateJudge
from gpu_scheduler.runtime.leading.leader_label import follow
from gpu_scheduler.runtime.status.pod_advice import PodAdvice
from gpu_scheduler.runtime.status.status_writer import StatusWriter
from gpu_scheduler.sweeps.runtime.results import Results
from gpu_scheduler.web.dashboard.answers import RefusedAnswer as Unanswered
from gpu_scheduler.web.dashboard.identities import Identities, Identity
from gpu_scheduler.web.dashboard.rights import Rights

CODE = Path(gpu_scheduler.__file__).parent
_VERBS = {"create", "replace", "merge_patch", "delete"}
# The command line writes once, for its user. The agent's two objects are written at its own pace,
# which its own tests show, and so is the Lease. What a user clicks is sent once, by their token.
# The client is what all of them call.
_ELSEWHERE = (
    "cli/",
    "agent/",
    "simulate/",
    "sweeps/commands/",
    "manifests/",
    "jobs/write.py",
    "kube/lease.py",
    "web/dashboard/own_token.py",
)
_CLIENTS = ("kube/client.py", "kube/transport.py", "kube/command_client.py")


def call_sites() -> Iterator[str]:
    """Functions that write to the API server, as ``path:function``."""
    for path in sorted(CODE.rglob("*.py")):
        name = str(path.relative_to(CODE))
        if name.startswith((*_ELSEWHERE, *_CLIENTS)):
            continue
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if any(map(_writes, ast.walk(function))):
                yield f"{name}:{function.name}"


def _writes(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    if isinstance(called, ast.Name):
        return called.id == "send" and len(node.args) >= 2
    if not isinstance(called, ast.Attribute):
        return False
    if called.attr == "request":
        first = node.args[0] if node.args else None
        return not (isinstance(first, ast.Constant) and first.value == "GET")
    return called.attr in _VERBS and ast.unparse(called.value).endswith("client")


@dataclass
class Scene:
    """Somebody who keeps wanting a write.

    Attributes:
        client: What is sent is noted there.
        works: What runs.
        is_it: Whether it is the write that the scene is about.
        told: What users are told, and how: states, Events.
        holds: Whether devices are held for what cannot be written.
    """

    client: Any
    works: list[Awaitable[object]]
    is_it: Callable[[Sent], bool]
    told: Callable[[], str] = lambda: ""
    holds: Callable[[], bool] = lambda: False
    keep: list[object] = field(default_factory=list)

    def sent(self) -> int:
        return sum(map(self.is_it, self.client.sent))


async def every(seconds: float, do: Callable[[], Any]) -> None:
    while True:
        done = do()
        if done is not None and hasattr(done, "__await__"):
            await done
        await asyncio.sleep(seconds)


def to(method: str, ending: str) -> Callable[[Sent], bool]:
    return lambda sent: sent.method == method and sent.path.endswith(ending)


def _reconciling(
    case: Reconciling,
    is_it: Callable[[Sent], bool],
    reply: Callable[[Sent], Any],
    look_seconds: float = 0.5,
) -> Scene:
    """A GPUJob that is looked at by all who look at jobs, and has a place as soon as it may."""
    case.client.reply = reply
    case.queue.add(KEY)

    def plan() -> None:
        for key in place_prospective(case.state):
            case.queue.ask(key)

    def narrow() -> None:
        case.queue.ask(KEY)

    works = [
        case.queue.work(case.reconciler.handle),
        every(0.25, plan),
        every(look_seconds, narrow),
    ]
    told = lambda: case.state.gpujobs[KEY].complaint  # noqa: E731
    return Scene(
        case.client, works, is_it, told, lambda: bool(case.state.decisions.nominated.of(KEY))
    )


def creating_a_job(answer: Any) -> Scene:
    case = Reconciling()
    is_it = to("POST", "/jobs")
    return _reconciling(case, is_it, lambda sent: answer if is_it(sent) else THERE)


def creating_a_service(answer: Any) -> Scene:
    case = Reconciling(gang=True, parallelism=2)
    is_it = to("POST", "/services")
    return _reconciling(case, is_it, lambda sent: answer if is_it(sent) else make_job())


def putting_a_job_right(answer: Any) -> Scene:
    case = Reconciling(parallelism=2, completions=5)
    found = make_job(parallelism=5, completions=5)
    replies = {"POST": CONFLICT, "GET": found, "PATCH": answer}
    return _reconciling(case, to("PATCH", "/jobs/job"), lambda sent: replies[sent.method])


def changing_a_job(answer: Any) -> Scene:
    case = Reconciling(parallelism=3, completions=8)
    case.state.job_changed(make_job(parallelism=1, completions=8))
    is_it = to("PATCH", "/jobs/job")
    return _reconciling(case, is_it, lambda sent: answer if is_it(sent) else THERE)


def suspending_a_job(answer: Any) -> Scene:
    case = Reconciling(suspend=True)
    case.state.job_changed(make_job())
    is_it = to("PATCH", "/jobs/job")
    return _reconciling(case, is_it, lambda sent: answer if is_it(sent) else THERE)


def deleting_a_finished_gpujob(answer: Any) -> Scene:
    status = test_time_to_live.told("Complete")
    case = Reconciling(ttlSecondsAfterFinished=60, status=status)
    case.now += 61
    is_it = to("DELETE", "/gpujobs/job")
    return _reconciling(case, is_it, lambda sent: answer if is_it(sent) else THERE, 30.0)


def ending_a_pod_of_a_kept_job(answer: Any) -> Scene:
    case = Reconciling()
    case.state.job_changed(make_job(version=2, deleting=True))
    runs = make_pod(node="a", devices=half(), phase="Running", version=2)
    case.state.pod_changed(runs)
    is_it, kept = to("DELETE", "/pods/job-0"), FoundJob(FoundMeta(name="job", uid="job-uid"))
    return _reconciling(case, is_it, lambda sent: answer if is_it(sent) else kept)


def trying_a_template(answer: Any) -> Scene:
    """An answer that says nothing of the template lets it pass: its job has its place."""
    case = Reconciling()
    judge = TemplateJudge(case.client, "ours", clock=clock)
    accepts, is_it = case.acceptance.judge, to("DRYRUN", "/podtemplates")

    async def judged(job: Any, project: Any, *more: Any) -> Any:
        asked = [await judge.problems(part.spec) for part in parts(job.spec)]
        found = [str(problem) for problems in asked for problem in problems]
        return Refusal(found[0]) if found else await accepts(job, project, *more)

    case.acceptance.judge = judged  # type: ignore[method-assign]
    scene = _reconciling(case, is_it, lambda sent: answer if is_it(sent) else THERE)
    return replace(scene, holds=lambda: False)


def trying_a_pod(answer: Any) -> Scene:
    case = test_missing.Case()
    case.answer = answer
    see = lambda: case.see() and None  # noqa: E731
    works = [case.missing.run(), every(0.25, see)]
    return Scene(case.client, works, to("DRYRUN", "/pods"), lambda: case.see())


def trying_what_was_refused(answer: Any) -> Scene:
    case = test_lifting.Case("a")
    case.answers["jobs"] = answer
    return Scene(case.client, [case.lifting.run()], to("DRYRUN", "/jobs"))


def placing_a_pod(answer: Any) -> Scene:
    case = test_binder.Case()
    case.answer = answer

    waiting = case.state.waiting

    def plan() -> None:
        avoided = waiting.avoided(KEY) or waiting.doubts.held_back(KEY)
        waiting.expire(clock())
        if test_binder.POD not in case.state.decisions.assumed and not avoided:
            case.decide()

    works = [case.binder.run(), every(0.1, plan)]
    told = lambda: doubt.why if (doubt := waiting.doubts.of(KEY)) else ""  # noqa: E731
    return Scene(case.client, works, to("POST", "/binding"), told)


def touching_a_pod(answer: Any) -> Scene:
    """Whether a placement was written is not known."""
    case = test_binder.Case()
    case.answer, case.now = test_binder.AWAY, answer
    case.decide()
    return Scene(case.client, [case.binder.run()], test_binder.touches)


def evicting_a_pod(answer: Any) -> Scene:
    case = test_evictor.Case(answer)
    works = [case.evictor.run(), every(0.5, lambda: case.evict() and None)]
    told = lambda: " ".join(said[2] for said in case.events.said[1:])  # noqa: E731
    return Scene(case.client, works, to("POST", "/eviction"), told)


def marking_a_pod(answer: Any) -> Scene:
    case = test_evictor.Case(answer)
    works = [case.evictor.run(), every(5.0, lambda: case.mark() and None)]  # as its pod changes
    told = lambda: " ".join(said[2] for said in case.events.said)  # noqa: E731
    return Scene(case.client, works, to("PATCH", "/status"), told)


def hurrying_a_pod(answer: Any) -> Scene:
    case = test_overdue.Case(1e9, answer)
    start = clock()
    now = test_overdue.epoch_seconds(test_overdue.ENDS) - 1e9 - start
    case.overdue = test_overdue.Overdue(case.state, case.client, now=lambda: now + clock())
    case.see(test_overdue.going(version=3))
    return Scene(case.client, [case.overdue.run()], to("DELETE", "/pods/job-0"))


def writing_a_status(answer: Any) -> Scene:
    case = StatusCase()
    is_it = to("PATCH", "/gpujobs/job/status")
    case.client.reply = lambda sent: answer if is_it(sent) else {}
    touch = partial(case.state.changes.touch, KEY)
    return Scene(case.client, [case.writer.run(), every(0.2, touch)], is_it)


def advising_a_pod(answer: Any) -> Scene:
    case = test_pod_advice.Case()
    case.advice = PodAdvice(case.state, clock=clock)
    client = FakeClient(lambda sent: answer)
    writer = StatusWriter(client, [case.advice], seconds=5.0, clock=clock)  # type: ignore[arg-type]
    take = partial(case.advice.take, list(case.pods.values()), test_pod_advice.IDLE)
    return Scene(client, [writer.run(), every(0.5, take)], to("PATCH", "/pods/web-00/status"))


def saying_an_event(answer: Any) -> Scene:
    client = FakeClient(lambda sent: answer)
    events = Events(client, instance="me", clock=clock)  # type: ignore[arg-type]
    count = iter(range(10**6))

    def say() -> None:
        number = next(count)
        subject = InvolvedObject("GPUJob", "team-a", f"job-{number}", f"uid-{number}")
        events.say(subject, "Warning", "PodFailed", "why")

    return Scene(client, [events.run(), every(6.0, say)], to("POST", "/events"))


def taking_the_term(answer: Any) -> Scene:
    term, client = test_term.probe({})
    client.reply = lambda sent: test_term.BEFORE if sent.method == "GET" else answer
    return Scene(
        client, [term.begin()], to("PUT", "/gpu-scheduler-leader"), lambda: term.waiting_for
    )


def trying_the_term(answer: Any) -> Scene:
    term, client = test_term.probe({})
    is_it = to("DRYRUN", "/binding")
    client.reply = lambda sent: answer if is_it(sent) else test_term.BEFORE
    return Scene(client, [term.begin()], is_it, lambda: term.waiting_for)


def creating_a_holder(answer: Any) -> Scene:
    stage = test_placeholder_pods.Stage(make_pod(node="a", devices=half("0")))
    stage.answers["POST"] = answer
    return _holding(stage, to("POST", "/pods"))


def deleting_a_holder(answer: Any) -> Scene:
    stage = test_placeholder_pods.Stage(enabled=False)
    stage.state.pod_changed(make_holder())
    stage.answers["DELETE"] = answer
    return _holding(stage, lambda sent: sent.method == "DELETE")


def _holding(stage: Any, is_it: Callable[[Sent], bool]) -> Scene:
    def look() -> Awaitable[None]:
        stage.now = clock()
        check: Awaitable[None] = stage.holders.check()
        return check

    return Scene(stage.client, [every(1.0, look)], is_it)


def telling_an_agent(answer: Any) -> Scene:
    stage = test_node_orders.Stage()
    stage.client.reply = lambda sent: answer
    stage.see(test_node_orders.agent())
    count = iter(range(2, 10**6))

    def news() -> None:
        stage.gpu_nodes["a"] = ("uid", str(next(count)))
        stage.changed.add("a")

    return Scene(stage.client, [stage.orders.run(), every(1.0, news)], to("PATCH", "/agent-a"))


def showing_use(answer: Any) -> Scene:
    return _showing_use(answer, "PATCH", "/gpuusages/current/status")


def making_a_usage(answer: Any) -> Scene:
    return _showing_use(answer, "POST", "/gpuusages")


def _showing_use(answer: Any, method: str, path: str) -> Scene:
    is_it = to(method, path)
    made = {"metadata": {"uid": "usage-uid"}}
    client = FakeClient(lambda sent: answer if is_it(sent) else made)
    stage = UsageStage(client, clock)
    stage.job()
    pod = stage.runs()

    async def minute() -> None:
        stage.works(pod, 60)
        stage.answers(0.0)
        await stage.minute.look()

    return Scene(client, [every(5.0, minute)], is_it)


def labelling_the_leader(answer: Any) -> Scene:
    client: Any = FakeClient(lambda sent: answer)
    return Scene(client, [follow(client, "ours", "me", asyncio.Event())], to("PATCH", "/me"))


def noting_a_checkpoint(answer: Any) -> Scene:
    case = test_checkpoints.Case(answer)
    return Scene(case.client, [every(0.5, case.say)], to("PATCH", "/job-0"))


def reviewing_a_token(answer: Any) -> Scene:
    tokens, client = pod_tokens.judges(lambda sent: answer)
    pods = itertools.count()

    def report() -> Awaitable[object]:
        pod = PodUID(f"uid-{next(pods)}")
        return tokens.refusal(pod, pod_tokens.of(pod))

    return Scene(client, [every(0.5, report)], to("POST", "/tokenreviews"))


def asking_who_reads(answer: Any) -> Scene:
    client: Any = FakeClient(lambda sent: answer)
    identities = Identities(client, Clock(clock, clock))

    async def log_in() -> None:
        with suppress(Unanswered):
            await identities.of("a-token", "10.0.0.1")

    return Scene(client, [every(0.5, log_in)], to("POST", "/tokenreviews"))


def asking_what_they_may_see(answer: Any) -> Scene:
    client: Any = FakeClient(lambda sent: answer)
    rights = Rights(client, lambda: frozenset({"a", "b", "c"}), clock)

    async def look() -> None:
        with suppress(Unanswered):
            await rights.visible(Identity("anna"))

    return Scene(client, [every(0.5, look)], to("POST", "/subjectaccessreviews"))


def telling_a_trial_to_stop(answer: Any) -> Scene:
    case = pruned.Case()
    case.answer = answer

    async def report() -> None:
        await case.report(0, 0.1)
        await case.report(1, 0.9)

    return Scene(case.client, [every(1.0, report)], to("PATCH", "/job-1/status"))


def storing_results(answer: Any) -> Scene:
    case, store = SweepCase(completions=200), test_results.Store()
    case.job(size=200)
    store.client.reply = lambda sent: NOT_FOUND if sent.method == "GET" else answer
    numbers = iter(range(200))

    def ends() -> None:
        if (number := next(numbers, None)) is not None:
            case.sweep.put(test_results.done(number))

    told: list[str] = []
    results = Results(
        store.client,  # type: ignore[arg-type]
        case.sweeps,
        seconds=test_results.SECONDS,
        clock=clock,
        refused=lambda key, why: told.append(why),
    )
    works = [results.run(), every(5.0, ends)]
    return Scene(store.client, works, to("POST", "/configmaps"), lambda: " ".join(told))


def making_a_service_again(answer: Any) -> Scene:
    case = test_services.Case()
    case.client.reply = lambda sent: NOT_FOUND if sent.method == "GET" else answer
    told = lambda: " ".join(case.events)  # noqa: E731
    return Scene(case.client, [case.services.run()], to("POST", "/services"), told)


MAKING, CHANGING = "runtime/jobs/creation.py", "runtime/jobs/job_writes.py:_write"
SCENES: dict[Callable[[Any], Scene], str] = {
    creating_a_job: f"{MAKING}:create_job",
    creating_a_service: f"{MAKING}:create_service",
    putting_a_job_right: f"{MAKING}:_put_right",
    changing_a_job: CHANGING,
    suspending_a_job: CHANGING,
    deleting_a_finished_gpujob: "runtime/jobs/removal.py:_delete",
    ending_a_pod_of_a_kept_job: "runtime/jobs/removal.py:_end_pods",
    trying_a_template: "runtime/jobs/template_judge.py:_ask",
    trying_a_pod: "runtime/jobs/acceptance.py:_dry_run",
    trying_what_was_refused: "runtime/jobs/acceptance.py:_try_job",
    placing_a_pod: "runtime/binding/binder.py:_try",
    touching_a_pod: "runtime/binding/binder.py:_touch",
    evicting_a_pod: "runtime/eviction/evictor.py:_send",
    showing_use: "runtime/usage/usage_writes.py:write",
    making_a_usage: "runtime/usage/usage_writes.py:_make",
    marking_a_pod: "runtime/eviction/evictor.py:_send",
    hurrying_a_pod: "runtime/eviction/overdue.py:_hurry",
    writing_a_status: "runtime/status/status_writer.py:_send",
    advising_a_pod: "runtime/status/status_writer.py:_send",
    saying_an_event: "runtime/common/events.py:_write",
    taking_the_term: "runtime/binding/leader_term.py:_write",
    trying_the_term: "runtime/binding/leader_term.py:_ask",
    creating_a_holder: "runtime/binding/placeholder_pods.py:_create",
    deleting_a_holder: "runtime/binding/placeholder_pods.py:_delete",
    telling_an_agent: "runtime/binding/node_orders.py:_tell_one",
    labelling_the_leader: "runtime/leading/leader_label.py:_keep",
    noting_a_checkpoint: "runtime/reports/checkpoints.py:_write",
    reviewing_a_token: "runtime/reports/token_reviews.py:_ask",
    asking_who_reads: "web/dashboard/identities.py:_review",
    asking_what_they_may_see: "web/dashboard/rights.py:_ask",
    telling_a_trial_to_stop: "sweeps/runtime/pruning.py:_mark",
    storing_results: "sweeps/runtime/results.py:_send",
    making_a_service_again: f"{MAKING}:create_service",
}
