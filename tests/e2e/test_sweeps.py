"""The examples of sweeps in real containers: they search, report, and are stopped.

The operator's image has Python and numpy and is on the node already; the programs come in a
ConfigMap.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from tests.api.caller import Caller
from tests.api.pod_watch import Pods, PodWatch
from tests.api.tenant import Json, Tenant
from tests.api.trials import rows
from tests.e2e.conftest import install_options
from tests.e2e.gpu_jobs import UNTIL_TOLD, end_in_turn
from tests.e2e.metrics import holder, wait_leader
from tests.e2e.report_service import NAME, endpoints
from tests.e2e.waits import TIMEOUT, until

from cluster import Running
from cluster.name_server import NameServer
from demo import install
from gpu_scheduler.api.names import (
    CONDITION_PRUNED,
    HPARAMS,
    LABEL_JOB,
    LABEL_LEADER,
    TRIAL,
)
from gpu_scheduler.sweeps.core.outcome import TrialState
from gpu_scheduler.sweeps.runtime.pruning import GOODBYE_SECONDS

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "sweeps"
IMAGE = f"{install.REPOSITORY}:{install.TAG}"
TRIALS = 8

# Reports for ever, unless it is good and done, or is told to stop and listens. What it is told is
# the answer to a report: a signal alone ends none that is not good.
STUBBORN = """
import os, signal, sys, time
from report import report, result
kind = os.environ["HPARAM_KIND"]
if kind != "good":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
loss = 0.1 if kind == "good" else 9.0
for step in range(1, 10_000):
    if report(step, loss=loss) and kind != "deaf":
        sys.exit(0)
    if kind == "good" and step == 3:
        break
    time.sleep(0.2)
result(loss=loss)
"""


@pytest.fixture
def team(tenant: Tenant) -> Tenant:
    """A tenant whose pods can mount the programs."""
    files = {path.name: path.read_text() for path in EXAMPLES.glob("*.py")}
    body = {"metadata": {"name": "code"}, "data": {**files, "stubborn.py": STUBBORN}}
    assert tenant.admin.create(f"/api/v1/namespaces/{tenant.name}/configmaps", body).ok
    return tenant


def program(name: str, arguments: list[str]) -> Json:
    """A pod template that runs one of the programs."""
    container = {
        "name": "main",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["/opt/venv/bin/python", f"/code/{name}", *arguments],
        "env": [{"name": "OMP_NUM_THREADS", "value": "1"}],
        "volumeMounts": [{"name": "code", "mountPath": "/code"}],
    }
    volumes = [{"name": "code", "configMap": {"name": "code"}}]
    return {"spec": {"containers": [container], "volumes": volumes}}


def submit(
    tenant: Tenant, example: str, name: str, *, algorithm: str = "", completions: int | None = None
) -> None:
    """An example as it stands, with programs and image of this tier."""
    spec = yaml.safe_load((EXAMPLES / example).read_text())["spec"]
    spec["template"] = program("train.py", spec.pop("args"))
    del spec["image"]
    spec["isolation"] = "framework"  # numpy has no use for what holds caps
    spec["parallelism"] = 8
    if algorithm:
        spec["sweep"]["algorithm"] = algorithm
    if completions is not None:
        spec["completions"] = completions
    tenant.submit(name, **spec)


def values(tenant: Tenant, job: str) -> dict[int, float]:
    """The objective of each trial that succeeded, as far as they are stored."""
    outcomes = rows(tenant, job).values()
    allowed = (TrialState.SUCCEEDED, TrialState.PRUNED)
    assert {o.state for o in outcomes} <= set(allowed), outcomes
    return {o.trial: o.value for o in outcomes if o.value is not None}


def stored(tenant: Tenant, job: str, trials: int) -> dict[int, float]:
    """``values`` once all trials are stored."""
    status = tenant.wait_phase(job, "Succeeded")
    counts = status["sweep"]["counts"]
    assert counts["succeeded"] + counts.get("pruned", 0) == trials, counts
    wanted = counts["succeeded"]
    return until(
        lambda: len(found := values(tenant, job)) >= wanted and found,
        f"the results of {job} are stored",
    )


def given(tenant: Tenant, job: str) -> dict[int, Json]:
    """The parameters of each trial."""
    notes = [pod["metadata"]["annotations"] for pod in tenant.pods(job)]
    return {int(each[TRIAL]): json.loads(each[HPARAMS]) for each in notes}


def worst_quarter(grid: dict[int, float]) -> float:
    """The best objective in the worst quarter of the grid."""
    assert len(grid) == 12
    return sorted(grid.values())[-3]


def test_random_and_halton_beat_the_worst_quarter_of_the_grid_and_can_be_repeated(
    team: Tenant, names: NameServer
) -> None:
    submit(team, "grid.yaml", "grid")
    submit(team, "random.yaml", "random", completions=TRIALS)
    submit(team, "random.yaml", "halton", algorithm="halton", completions=TRIALS)
    line = worst_quarter(stored(team, "grid", 12))
    assert min(stored(team, "random", TRIALS).values()) < line
    assert min(stored(team, "halton", TRIALS).values()) < line
    assert NAME in names.asked, "trials report by the chart's address"

    submit(team, "grid.yaml", "grid-again", completions=4)
    submit(team, "random.yaml", "random-again", completions=4)
    submit(team, "random.yaml", "halton-again", algorithm="halton", completions=4)
    for job in ("grid", "random", "halton"):
        after = stored(team, f"{job}-again", 4)
        first, again = given(team, job), given(team, f"{job}-again")
        assert again == {trial: first[trial] for trial in range(4)}
        before = values(team, job)
        both = before.keys() & after.keys()
        assert both
        for trial in both:
            assert after[trial] == pytest.approx(before[trial], rel=1e-6)


@dataclass(slots=True)
class Stopped:
    """What became of the trials of ``mixed``; pods of those that are ended are soon gone.

    Attributes:
        told: those that were told to stop.
        phases: the last one that each was seen in.
        given: how many seconds those were given that had to go.
    """

    told: set[int] = field(default_factory=set)
    phases: dict[int, str] = field(default_factory=dict)
    given: dict[int, int] = field(default_factory=dict)

    def note(self, pods: Pods) -> None:
        """Look at all pods; told by a watch."""
        for pod in pods.values():
            meta, status = pod["metadata"], pod["status"]
            notes = meta.get("annotations", {})
            if meta["labels"][LABEL_JOB] != "mixed" or TRIAL not in notes:  # it has no place yet
                continue
            trial = int(notes[TRIAL])
            self.phases[trial] = status.get("phase", "")
            if CONDITION_PRUNED in {each["type"] for each in status.get("conditions", ())}:
                self.told.add(trial)
            if meta.get("deletionTimestamp"):
                self.given.setdefault(trial, meta["deletionGracePeriodSeconds"])


def test_a_hopeless_trial_stops_or_is_ended_and_others_use_its_gpu(
    operated: Running, team: Tenant, names: NameServer
) -> None:
    grace = 3
    kinds = ["good", "good", "listens", "deaf"]
    stopped = Stopped()
    with PodWatch(operated, team.name, stopped.note):
        team.submit(
            "mixed",
            gpu=0.5,
            parallelism=4,
            isolation="framework",
            template=program("stubborn.py", []),
            sweep={
                "algorithm": "list",
                "objective": {"metric": "loss"},
                "trials": [{"kind": kind} for kind in kinds],
                "earlyStopping": {"type": "median", "minTrials": 2, "graceSeconds": grace},
            },
        )
        team.wait_placed("mixed", 4)
        waiting = program("stubborn.py", [])
        waiting["spec"]["containers"][0]["command"] = ["sleep", "600"]
        waiting["spec"]["terminationGracePeriodSeconds"] = 1
        team.submit("next", gpu=0.5, parallelism=4, completions=4, template=waiting)
        until(lambda: stopped.told == {2, 3}, lambda: f"both are told; {stopped}")
        # Three have the GPUs of those that ended by themselves; one waits for the deaf one's.
        until(lambda: 3 in stopped.given, lambda: f"the deaf one is ended; {stopped}")
        team.wait_placed("next", 4)
        team.remove("next")
        status = team.wait_phase("mixed", "Succeeded")
    assert stopped.phases[2] == "Succeeded", "it listened, and ended by itself"
    assert stopped.given[3] == GOODBYE_SECONDS, "others do not wait until its own grace is over"
    counts = status["sweep"]["counts"]
    assert (counts["succeeded"], counts["pruned"]) == (2, 2)
    assert sum(counts.values()) == 4, counts
    team.wait_event("mixed", "TrialEnded")


def test_reports_go_to_the_leader_alone_also_when_its_container_starts_again(
    operated: Running, admin: Caller
) -> None:
    def addresses() -> set[str]:
        return set(endpoints(admin))

    def address_of(pod: str) -> str:
        path = f"/api/v1/namespaces/{install.RELEASE}/pods/{pod}"
        return str(admin.get(path).body["status"].get("podIP"))

    first = wait_leader(operated)
    until(lambda: addresses() == {address_of(first)}, lambda: f"the leader; {addresses()}")
    second = succeeded(operated, first)
    until(lambda: addresses() == {address_of(second)}, lambda: f"the new one; {addresses()}")

    def labelled() -> list[str]:
        selector = f"--selector={LABEL_LEADER}=true"
        answer = operated.kubectl("get", "pods", "-n", install.RELEASE, selector, "-o", "name")
        return answer.stdout.split()

    # It takes its label off when it starts again, before it is ready and would be led to.
    until(lambda: labelled() == [f"pod/{second}"], lambda: f"one label; {labelled()}")
    where = (
        f"deployment/{install.RELEASE}",
        "-n",
        install.RELEASE,
        TIMEOUT,
    )
    operated.kubectl("rollout", "status", *where)
    assert addresses() == {address_of(second)}


def succeeded(operated: Running, first: str) -> str:
    """End the leader's container until the other replica leads; who that is.

    The Lease is free at once, and the container that starts again may be the first to see that.
    The kubelet lets it wait longer each time.
    """
    while True:
        before = holder(operated)
        where = ("-n", install.RELEASE, first)  # with it ends the shell that told it to
        operated.kubectl("exec", *where, "--", "sh", "-c", "kill 1", check=False)
        until(lambda ended=before: holder(operated) not in ("", ended), "somebody leads anew")
        now: str = wait_leader(operated)
        if now != first:
            return now


@pytest.mark.parametrize("gpu", [1, 2])
def test_hpo1_ends_with_four_successes_in_the_folder_that_its_trials_share(
    operated: Running, tenant: Tenant, tmp_path: Path, gpu: int
) -> None:
    spec = yaml.safe_load((ROOT / "examples" / "hpo1.yaml").read_text())["spec"]
    pod = spec["template"]["spec"]
    pod["volumes"][0]["hostPath"]["path"] = str(tmp_path)
    command = pod["containers"][0]["command"]
    command[-1] = command[-1].replace("quickstart 10", f"{UNTIL_TOLD} && quickstart 0")
    with PodWatch(operated, tenant.name) as watch:
        tenant.submit("hpo1", **(spec | {"gpu": gpu}))
        status = end_in_turn(operated, tenant, "hpo1", at_once=2 // gpu, container="trial")
    assert status["pods"]["succeeded"] == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"trial-{i}" for i in range(4)]
    assert watch.peak.placements == 4, "no trial was run twice"
    assert watch.peak.pods == 2 // gpu  # the node has two GPUs
    assert watch.peak.gpu_milli == 2000


def test_tpe_beats_the_worst_quarter_of_the_grid(
    operated: Running, team: Tenant, names: NameServer
) -> None:
    submit(team, "tpe.yaml", "tpe", completions=12)
    message = team.wait_reason("tpe", "Invalid")
    assert "set the chart's value sweeps.tpe" in message
    submit(team, "grid.yaml", "grid")  # runs while the operator's image changes

    install_options(operated)
    line = worst_quarter(stored(team, "grid", 12))
    status = team.wait_phase("tpe", "Succeeded")
    assert status["sweep"]["best"]["value"] < line

    script = "id -u; python -c 'import optuna' && touch /opt/venv/file"
    done = operated.kubectl(
        "exec", "-n", install.RELEASE, wait_leader(operated), "--", "sh", "-c", script, check=False
    )
    assert done.stdout == "65532\n"
    assert "Read-only file system" in done.stderr, "where Optuna was imported, too"
