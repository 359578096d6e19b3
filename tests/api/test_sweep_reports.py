"""Trials that report, on a real control plane; a test plays the programs of fake nodes."""

import json
import socket
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.api import pod_tokens
from tests.api.conftest import administrator
from tests.api.free_port import free_port
from tests.api.pod_watch import Pods, PodWatch
from tests.api.replica import CALM_LEASE, Replica
from tests.api.tenant import Json, Tenant, template, until

from cluster import Running
from gpu_scheduler.api.names import REPORT_URL, TRIAL

LOSS: Json = {"metric": "loss", "goal": "minimize"}
GOOD, BAD = 0.1, 9.0


def listed(*qualities: float, **early_stopping: Any) -> Json:
    """A sweep whose trials are as good as this says."""
    trials = [{"quality": quality} for quality in qualities]
    found: Json = {"algorithm": "list", "objective": LOSS, "trials": trials}
    return {**found, "earlyStopping": early_stopping} if early_stopping else found


@dataclass(slots=True)
class Site:
    """A cluster and its leader."""

    running: Running
    port: int = field(default_factory=free_port)
    leader: Replica | None = None

    def start(self, name: str, port: int) -> Replica:
        """A replica that takes reports at this port; trials are told that of the first one."""
        settings = {
            **CALM_LEASE,
            "results_seconds": "0.5",
            "report_port": str(port),
            "report_host": "127.0.0.1",
            "report_url": f"http://127.0.0.1:{self.port}/reports",
        }
        return Replica(self.running, name, settings).start()


@pytest.fixture
def site(control_plane: Running) -> Iterator[Site]:
    """An operator of the test's own, so that a test may kill it."""
    made = Site(control_plane)
    made.leader = made.start(f"leader-{made.port}", made.port)
    try:
        made.leader.wait_leading()
        yield made
    finally:
        if made.leader.alive():
            made.leader.stop()


@pytest.fixture
def tenant(site: Site) -> Iterator[Tenant]:
    made = Tenant(administrator(site.running)).create(quota=4, limit=4)
    yield made
    made.delete()


@dataclass(frozen=True, slots=True)
class Program:
    """The program of a trial: what it knows is what its pod was given."""

    tenant: Tenant
    pod: Json

    @property
    def trial(self) -> int:
        return int(self.pod["metadata"]["annotations"][TRIAL])

    @property
    def url(self) -> str:
        url: str = self.pod["metadata"]["annotations"][REPORT_URL]
        return url

    def report(self, loss: float, step: int = 1, *, port: int | None = None) -> bool:
        """Whether it was told to stop."""
        body = json.dumps({"step": step, "metrics": {"loss": loss}})
        status, answer = self.post(body, port=port)
        assert status == 200, answer
        stop: bool = answer["stop"]
        return stop

    def post(self, body: str, *, port: int | None = None) -> tuple[int, Json]:
        """Send a report that says this, with the token in the pod's file."""
        url = self.url if port is None else with_port(self.url, port)
        return post(url, body, pod_tokens.projected(self.tenant.admin, self.pod))

    def ends(self, result: str = "") -> None:
        """Ends well, as a kubelet would tell."""
        terminated = {"exitCode": 0, "message": result, "reason": "Completed"}
        container = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
        status = {
            "phase": "Succeeded",
            "containerStatuses": [{**container, "state": {"terminated": terminated}}],
        }
        name = self.pod["metadata"]["name"]
        path = f"/api/v1/namespaces/{self.tenant.name}/pods/{name}/status"
        assert self.tenant.admin.patch(path, {"status": status}).ok


def with_port(url: str, port: int) -> str:
    host, _, path = url.removeprefix("http://").partition("/")
    return f"http://{host.partition(':')[0]}:{port}/{path}"


def post(url: str, body: str | bytes, token: str = "") -> tuple[int, Json]:
    data = body.encode() if isinstance(body, str) else body
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, data, headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # nobody is held up for longer
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            text = error.read()
            return error.code, json.loads(text) if text.startswith(b"{") else {}


def programs(tenant: Tenant, job: str) -> dict[int, Program]:
    """Programs that run, by trial."""
    found = (
        Program(tenant, pod)
        for pod in tenant.pods(job)
        if pod["status"].get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp")
    )
    return {program.trial: program for program in found}


def wait_programs(tenant: Tenant, job: str, count: int) -> dict[int, Program]:
    return until(
        lambda: len(found := programs(tenant, job)) == count and found,
        lambda: f"{count} trials of {job} run: {json.dumps(tenant.status(job))}",
        60,
    )


def counts(tenant: Tenant, job: str) -> Json:
    found: Json = tenant.status(job).get("sweep", {}).get("counts", {})
    return found


class Attempts:
    """Counts the pods that every trial ever had."""

    def __init__(self) -> None:
        self.pods: dict[str, set[str]] = {}

    def __call__(self, pods: Pods) -> None:
        for uid, pod in pods.items():
            trial = pod["metadata"].get("annotations", {}).get(TRIAL)
            if trial is not None:
                self.pods.setdefault(trial, set()).add(uid)

    def most(self) -> int:
        return max(len(uids) for uids in self.pods.values())


def test_the_hopeless_half_is_told_to_stop_and_its_gpus_are_used_by_others(
    site: Site, tenant: Tenant
) -> None:
    total, at_once, steps = 16, 4, Counter[int]()
    told: set[int] = set()
    over: set[int] = set()
    sweep = listed(*[GOOD, BAD] * (total // 2), type="median", minTrials=2)

    def replaced() -> bool:
        # The project may hold no more GPUs, so the next trial starts when they are free.
        running = programs(tenant, "half").keys() - over
        return len(running) == min(at_once, total - len(over))

    def play() -> bool:
        for trial, program in sorted(programs(tenant, "half").items()):
            if trial in over:
                continue
            hopeless = trial % 2 == 1
            steps[trial] += 1
            if program.report(BAD if hopeless else GOOD, steps[trial]):
                told.add(trial)
                over.add(trial)
                program.ends()
                until(replaced, f"the GPU of trial {trial} is used again")
            elif not hopeless and steps[trial] == 3:
                over.add(trial)
                program.ends(json.dumps({"loss": GOOD}))
                until(replaced, f"there is a trial after trial {trial}")
        return len(over) == total

    attempts = Attempts()
    with PodWatch(site.running, tenant.name, attempts) as watch:
        tenant.submit("half", gpu=1, parallelism=at_once, sweep=sweep, template=template())
        wait_programs(tenant, "half", at_once)
        until(play, lambda: f"all trials end; told {told}, over {over}")
        status = tenant.wait_phase("half", "Succeeded")
    assert told == {trial for trial in range(total) if trial % 2}
    assert status["sweep"]["counts"]["pruned"] == total // 2
    assert status["sweep"]["counts"]["succeeded"] == total // 2
    assert attempts.most() == 1, "no trial was tried again"
    assert watch.peak.gpu_milli == at_once * 1000


def test_what_does_not_stop_is_ended_and_neither_tried_again_nor_failed(
    site: Site, tenant: Tenant
) -> None:
    grace = 1
    early = {"type": "asha", "reductionFactor": 2, "graceSeconds": grace}
    # It ignores SIGTERM: a kubelet kills it when the two seconds of the eviction are over.
    deaf = template({"kwok.x-k8s.io/termination-seconds": "2"})
    sweep = listed(GOOD, GOOD, BAD, BAD, **early)
    attempts = Attempts()
    with PodWatch(site.running, tenant.name, attempts):
        tenant.submit("deaf", gpu=1, parallelism=4, retries=3, sweep=sweep, template=deaf)
        running = wait_programs(tenant, "deaf", 4)
        tenant.submit("next", gpu=1, parallelism=2, completions=2, template=template())
        tenant.wait_reason("next", "WaitingForQuota")
        assert [running[trial].report(GOOD) for trial in (0, 1)] == [False, False]
        assert [running[trial].report(BAD) for trial in (2, 3)] == [True, True]
        tenant.wait_placed("next", 2)
        until(lambda: counts(tenant, "deaf").get("pruned") == 2, "both count as pruned")
        for trial in (0, 1):
            running[trial].ends(json.dumps({"loss": GOOD}))
        status = tenant.wait_phase("deaf", "Succeeded")
    assert status["sweep"]["counts"]["succeeded"] == 2
    assert sum(status["sweep"]["counts"].get(kind, 0) for kind in ("failed", "resultMissing")) == 0
    assert status["sweep"].get("errors", []) == []
    assert attempts.most() == 1 and len(attempts.pods) == 4
    # The verdict is ours: to the Job these are indexes that nobody tries again.
    until(
        lambda: tenant.batch_job("deaf-s0")["status"].get("failedIndexes") == "2,3",
        "its Job has ended them",
    )
    tenant.wait_event("deaf", "TrialEnded")


def test_every_report_has_its_answer(site: Site, tenant: Tenant) -> None:
    tenant.submit(
        "asked", gpu=1, parallelism=2, sweep=listed(GOOD, GOOD, type="median"), template=template()
    )
    running = wait_programs(tenant, "asked", 2)
    one, other = running[0], running[1]
    good = json.dumps({"step": 1, "metrics": {"loss": 0.4}})
    base, uid = one.url.rsplit("/", 1)
    assert uid == one.pod["metadata"]["uid"]
    token = pod_tokens.projected(tenant.admin, one.pod)
    answers = {
        "of its own": (one.url, good, token),
        "no token": (one.url, good, ""),
        "for another trial": (other.url, good, token),
        "an unknown pod": (f"{base}/no-such-uid", good, token),
        "one of an earlier version": (f"{base.rpartition('/')[0]}/u/0/{'0' * 32}", good, token),
        "not JSON": (one.url, "step=1", token),
        "no step": (one.url, '{"metrics": {"loss": 1}}', token),
        "another metric": (one.url, '{"step": 1, "metrics": {"accuracy": 1}}', token),
        "a metric of the wrong type": (one.url, '{"step": 1, "metrics": {"loss": "x"}}', token),
        "not a number": (one.url, '{"step": 2, "metrics": {"loss": NaN}}', token),
        "much too long": (one.url, "x" * 100_000, token),
    }
    got = {name: post(*request) for name, request in answers.items()}
    assert {name: status for name, (status, _) in got.items()} == {
        "of its own": 200,
        "no token": 401,
        "for another trial": 403,
        "an unknown pod": 410,
        "one of an earlier version": 410,
        "not JSON": 400,
        "no step": 400,
        "another metric": 400,
        "a metric of the wrong type": 400,
        "not a number": 200,  # a value, and the worst of all
        "much too long": 413,
    }
    assert all(body.get("error") for status, body in got.values() if status != 200)
    statuses = Counter[int]()

    def flood() -> int:
        """More at a time than it may send, unless that takes long on a busy machine."""
        with ThreadPoolExecutor(8) as threads:
            statuses.update(threads.map(lambda _: post(one.url, good, token)[0], range(200)))
        return statuses[429]

    until(flood, lambda: f"a trial reports as often as is good for others: {statuses}")
    assert statuses[200] and statuses.keys() == {200, 429}
    assert not other.report(0.4), "and others are not held up"
    one.ends(json.dumps({"loss": 0.4}))
    until(lambda: post(one.url, good, token)[0] == 410, "it has ended")
    secrets = [token, token.rpartition(".")[2]]
    seen = json.dumps([tenant.job("asked"), tenant.events("asked")])
    logs = "".join(path.read_text() for path in site.running.folder.glob("leader-*.log"))
    assert logs
    assert not [secret for secret in secrets if secret in seen or secret in logs]


def test_a_new_leader_goes_on_where_the_old_one_was_killed(site: Site, tenant: Tenant) -> None:
    port = free_port()
    second = site.start(f"leader-{port}", port)
    try:
        early = {"type": "asha", "reductionFactor": 2, "graceSeconds": 600}
        sweep = listed(GOOD, BAD, **early)
        tenant.submit("survives", gpu=1, parallelism=2, sweep=sweep, template=template())
        running = wait_programs(tenant, "survives", 2)
        good, hopeless = running[0], running[1]
        until(lambda: listens(port), "the stand-by listens")
        assert good.post("{}", port=port)[0] == 503
        assert not good.report(GOOD) and hopeless.report(BAD)
        assert site.leader is not None
        site.leader.kill()
        site.leader.forget()
        until(
            lambda: good.post("{}", port=port)[0] == 400,
            "the new leader knows whose token this is, though not what it reported",
        )
        assert hopeless.report(GOOD, 2, port=port), "it was told, and is told again"
        hopeless.ends()
        good.ends(json.dumps({"loss": GOOD}))
        status = tenant.wait_phase("survives", "Succeeded")
        assert status["sweep"]["counts"]["pruned"] == 1
        assert status["sweep"]["counts"]["succeeded"] == 1
    finally:
        if second.alive():
            second.stop()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
