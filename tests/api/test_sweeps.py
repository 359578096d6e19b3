"""Sweeps on a real control plane: every trial once, with its own values, whoever is killed."""

import itertools
import json
from collections.abc import Iterator

import pytest
from tests.api.pod_watch import Pods, PodWatch
from tests.api.replica import CALM_LEASE
from tests.api.site import Site, Team, site_with, team_on
from tests.api.tenant import Json, Tenant, runs, template, until

from gpu_scheduler.api.names import HPARAMS, RESULTS_KEY, TRIAL, results_name
from gpu_scheduler.core.sweeps.outcome import Outcome
from gpu_scheduler.core.sweeps.rows import decode

SETTINGS = {**CALM_LEASE, "results_seconds": "0.5"}
LR, BATCH = [0.001, 0.01, 0.1], [32, 64, 128, 256]
GRID: Json = {
    "algorithm": "grid",
    "parameters": {"lr": {"values": LR}, "batch": {"values": BATCH}},
}
# itertools.product over the parameters in the order of their names.
PRODUCT = [{"batch": b, "lr": lr} for b, lr in itertools.product(BATCH, LR)]
LOSS: Json = {"metric": "loss", "goal": "minimize"}
RANDOM: Json = {
    "algorithm": "random",
    "seed": 7,
    "objective": LOSS,
    "parameters": {"lr": {"logUniform": [1e-5, 0.1]}},
}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with site_with("sweeps", SETTINGS) as made:
        yield made


@pytest.fixture
def team(site: Site) -> Iterator[Team]:
    with team_on(site) as make:
        yield make


def says(result: str | Json, seconds: int = 1, **more: str) -> Json:
    """A template whose pods say this when they end."""
    text = result if isinstance(result, str) else json.dumps(result)
    return template(runs(seconds, termination_message=text, **more))


def given(pods: list[Json]) -> dict[int, Json]:
    """The parameters of each trial; an error when two pods of one trial had different ones."""
    found: dict[int, Json] = {}
    for pod in pods:
        notes = pod["metadata"].get("annotations", {})
        if TRIAL in notes:
            values = json.loads(notes[HPARAMS])
            assert found.setdefault(int(notes[TRIAL]), values) == values, pod["metadata"]["name"]
    return found


def rows(tenant: Tenant, job: str, segment: int = 0) -> dict[int, Outcome]:
    """What is stored of a segment."""
    path = f"/api/v1/namespaces/{tenant.name}/configmaps/{results_name(job, segment)}"
    answer = tenant.admin.get(path)
    if not answer.ok:
        return {}
    return {o.trial: o for o in decode(answer.body["data"][RESULTS_KEY])[1]}


def sweep_status(tenant: Tenant, job: str) -> Json:
    found: Json = tenant.status(job).get("sweep", {})
    return found


def end(tenant: Tenant, pod: Json, result: str, exit_code: int = 0, reason: str = "") -> None:
    """End a pod that runs for ever, as a kubelet would."""
    name = pod["metadata"]["name"]
    terminated = {
        "exitCode": exit_code,
        "message": result,
        "reason": reason or ("Error" if exit_code else "Completed"),
    }
    status = {
        "phase": "Failed" if exit_code else "Succeeded",
        "containerStatuses": [
            {
                "name": "main",
                "image": "x",
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"terminated": terminated},
            }
        ],
    }
    path = f"/api/v1/namespaces/{tenant.name}/pods/{name}/status"
    assert tenant.admin.patch(path, {"status": status}).ok


def running_trials(tenant: Tenant, job: str) -> dict[int, Json]:
    """Pods that run, by trial."""
    return {
        int(pod["metadata"]["annotations"][TRIAL]): pod
        for pod in tenant.pods(job)
        if pod["status"].get("phase") == "Running"
        and TRIAL in pod["metadata"].get("annotations", {})
        and not pod["metadata"].get("deletionTimestamp")
    }


def wait_running(tenant: Tenant, job: str, *trials: int) -> dict[int, Json]:
    return until(
        lambda: (r := running_trials(tenant, job)).keys() == set(trials) and r,
        lambda: f"{trials} of {job} run: {json.dumps(tenant.status(job))}",
        60,
    )


def test_a_grid_has_twelve_distinct_trials_in_the_order_of_the_product(
    site: Site, team: Team
) -> None:
    tenant = team(quota=8)
    with PodWatch(site.running, tenant.name) as watch:
        tenant.submit("grid", gpu=0.5, parallelism=4, sweep=GRID, template=says({"loss": 1}))
        status = tenant.wait_phase("grid", "Succeeded", 60)
        assert watch.peak.pods <= 4
    assert given(tenant.pods("grid")) == dict(enumerate(PRODUCT))
    assert len({json.dumps(p) for p in PRODUCT}) == 12
    assert status["sweep"]["trials"] == 12 and status["sweep"]["counts"]["succeeded"] == 12
    assert status["podSummary"] == "0/12/12"
    assert until(lambda: len(rows(tenant, "grid")) == 12, "all rows are stored")


def test_a_retried_trial_has_the_values_that_it_had(site: Site, team: Team) -> None:
    tenant = team(quota=8)
    tenant.submit("again", gpu=0.5, completions=1, sweep=RANDOM, retries=2, template=template())
    pod = wait_running(tenant, "again", 0)[0]
    first = given([pod])[0]
    end(tenant, pod, "", exit_code=137, reason="OOMKilled")
    second = until(
        lambda: [
            p
            for p in running_trials(tenant, "again").values()
            if p["metadata"]["uid"] != pod["metadata"]["uid"]
        ],
        "the trial is tried again",
        60,
    )[0]
    assert given([second])[0] == first
    assert sweep_status(tenant, "again")["counts"]["failed"] == 0
    end(tenant, second, '{"loss": 0.25}')
    status = tenant.wait_phase("again", "Succeeded")
    assert status["sweep"]["best"]["value"] == 0.25
    assert status["sweep"]["best"]["parameters"] == {"lr": repr(first["lr"])}


def test_completions_of_a_grid_are_its_first_trials_and_can_be_raised(
    site: Site, team: Team
) -> None:
    tenant = team(quota=8)
    spec = {"gpu": 0.5, "parallelism": 2, "sweep": GRID, "template": says({"loss": 1})}
    tenant.submit("grid", completions=4, **spec)
    tenant.wait_phase("grid", "Succeeded", 60)
    assert given(tenant.pods("grid")) == dict(enumerate(PRODUCT[:4]))
    assert tenant.patch("grid", completions=6).ok
    until(
        lambda: sweep_status(tenant, "grid")["counts"]["succeeded"] == 6,
        lambda: f"six have ended: {json.dumps(tenant.status('grid'))}",
        60,
    )
    assert tenant.wait_phase("grid", "Succeeded")["podSummary"] == "0/6/6"
    assert given(tenant.pods("grid")) == dict(enumerate(PRODUCT[:6]))
    assert len(tenant.pods("grid")) == 6, "no trial ran twice"
    assert not tenant.patch("grid", completions=5).ok


def test_suspend_and_resume_go_on_with_the_same_trials(site: Site, team: Team) -> None:
    tenant = team(quota=8)
    tenant.submit("rest", gpu=0.5, parallelism=2, completions=4, sweep=RANDOM, template=template())
    first = wait_running(tenant, "rest", 0, 1)
    before = given(list(first.values()))
    end(tenant, first[0], '{"loss": 3}')
    wait_running(tenant, "rest", 1, 2)
    before |= given(tenant.pods("rest"))
    assert tenant.patch("rest", suspend=True).ok
    tenant.wait_phase("rest", "Suspended")
    until(lambda: not running_trials(tenant, "rest"), "nothing runs")
    assert tenant.patch("rest", suspend=False).ok
    wait_running(tenant, "rest", 1, 2)
    assert given(tenant.pods("rest")).items() <= before.items()
    for trial in (1, 2, 3):
        pod = until(lambda t=trial: running_trials(tenant, "rest").get(t), "it runs", 60)
        end(tenant, pod, json.dumps({"loss": 3 - trial}))
    status = tenant.wait_phase("rest", "Succeeded")
    assert status["sweep"]["counts"]["failed"] == 0
    assert [t["trial"] for t in status["sweep"]["top"]] == [3, 2, 1, 0]


def test_killing_the_operator_amid_a_sweep_changes_no_assignment(site: Site, team: Team) -> None:
    tenant = team(quota=8)
    seen: dict[int, Json] = {}
    wrong: list[str] = []

    def check(pods: Pods) -> None:
        for trial, values in given(list(pods.values())).items():
            if seen.setdefault(trial, values) != values:
                wrong.append(f"{trial}: {seen[trial]} and {values}")

    with PodWatch(site.running, tenant.name, check) as watch:
        spec = {"gpu": 0.5, "parallelism": 6, "completions": 40, "sweep": RANDOM}
        tenant.submit("killed", template=says({"loss": 1}), **spec)
        for least in (4, 12, 20, 28):
            until(lambda n=least: len(seen) >= n, "trials go on", 60)
            site.replica.kill()
            until(lambda: not running_trials(tenant, "killed"), "all end while nobody leads", 30)
            site.restart()
        tenant.wait_phase("killed", "Succeeded", 60)
        assert watch.peak.pods <= 6
    assert wrong == [] and seen.keys() == set(range(40))
    assert sweep_status(tenant, "killed")["counts"]["succeeded"] == 40
    assert len(tenant.pods("killed")) == 40, "no trial ran twice"
    assert until(lambda: len(rows(tenant, "killed")) == 40, "all rows are stored")


def test_a_pod_that_went_while_nobody_led_is_told_from_one_that_can_be_read(
    site: Site, team: Team
) -> None:
    tenant = team(quota=8)
    tenant.submit("lost", gpu=0.5, parallelism=2, completions=2, sweep=RANDOM, template=template())
    pods = wait_running(tenant, "lost", 0, 1)
    site.replica.kill()
    for trial in (0, 1):
        end(tenant, pods[trial], json.dumps({"loss": trial}))
    until(
        lambda: tenant.batch_job("lost-s0")["status"].get("succeeded") == 2, "the Job counts both"
    )
    path = f"/api/v1/namespaces/{tenant.name}/pods/{pods[0]['metadata']['name']}"
    assert tenant.admin.send("DELETE", path).ok
    until(lambda: tenant.admin.get(path).status == 404, "the pod of trial 0 is gone")
    site.restart()
    status = tenant.wait_phase("lost", "Succeeded")
    assert status["sweep"]["best"]["trial"] == 1 and status["sweep"]["best"]["value"] == 1.0
    (error,) = status["sweep"]["errors"]
    assert error == {
        "trial": 0,
        "state": "ResultMissing",
        "message": "its pod was deleted before its result was read",
    }


def test_preemption_consumes_no_retry_and_changes_no_value(site: Site, team: Team) -> None:
    borrower, owner = team(quota=0), team(quota=8)
    spec: Json = {"gpu": 1, "parallelism": 8, "completions": 8, "retries": 0, "sweep": RANDOM}
    borrower.submit("guest", template=template(), **spec)
    wait_running(borrower, "guest", *range(8))
    before = given(borrower.pods("guest"))
    owner.submit("own", gpu=1, template=template(runs(3)))
    owner.wait_placed("own")
    until(lambda: len(running_trials(borrower, "guest")) == 7, "one gave way")
    owner.wait_phase("own", "Succeeded")
    wait_running(borrower, "guest", *range(8))
    assert given(borrower.pods("guest")) == before
    for trial, pod in running_trials(borrower, "guest").items():
        end(borrower, pod, json.dumps({"loss": trial}))
    status = borrower.wait_phase("guest", "Succeeded")
    assert status["sweep"]["counts"]["succeeded"] == 8
    assert borrower.batch_job("guest-s0")["status"].get("failed", 0) == 0


def test_a_target_that_is_reached_starts_no_further_trial_and_lets_running_ones_finish(
    site: Site, team: Team
) -> None:
    tenant = team(quota=8)
    goal = RANDOM | {"objective": LOSS | {"target": 0.02}}
    tenant.submit("goal", gpu=0.5, parallelism=3, completions=50, sweep=goal, template=template())
    pods = wait_running(tenant, "goal", 0, 1, 2)
    end(tenant, pods[1], '{"loss": 0.01}')
    message = tenant.wait_reason("goal", "TargetReached")
    assert message == "trial 1 reached the target with 0.01"
    assert running_trials(tenant, "goal").keys() == {0, 2}
    assert tenant.status("goal")["phase"] == "Running"
    end(tenant, pods[0], '{"loss": 0.5}')
    end(tenant, pods[2], '{"loss": 0.005}')
    status = tenant.wait_phase("goal", "Succeeded")
    assert status["sweep"]["targetReached"] and status["sweep"]["best"]["trial"] == 2
    until(lambda: tenant.batch_job("goal-s0")["spec"]["suspend"], "its Job makes no more pods")
    assert given(tenant.pods("goal")).keys() == {0, 1, 2}


def test_more_failed_trials_than_allowed_fail_the_sweep_and_end_what_runs(
    site: Site, team: Team
) -> None:
    tenant = team(quota=8)
    few = RANDOM | {"maxFailedTrials": 1}
    spec: Json = {"gpu": 0.5, "parallelism": 3, "completions": 50, "retries": 0, "sweep": few}
    tenant.submit("bad", template=template(), **spec)
    pods = wait_running(tenant, "bad", 0, 1, 2)
    end(tenant, pods[0], "out of luck", exit_code=3)
    until(
        lambda: sweep_status(tenant, "bad").get("counts", {}).get("failed") == 1, "one has failed"
    )
    assert tenant.status("bad")["phase"] == "Running"
    (error,) = sweep_status(tenant, "bad")["errors"]
    assert error["message"] == "container main ended with exit code 3: out of luck"
    end(tenant, pods[1], "no result")
    status = tenant.wait_phase("bad", "Failed", 60)
    assert status["message"] == "2 trials failed, maxFailedTrials is 1"
    until(lambda: not running_trials(tenant, "bad"), "nothing runs on")
    site.replica.kill()
    site.restart()
    assert tenant.wait_phase("bad", "Failed")["message"] == status["message"]


def test_an_exit_code_that_no_trial_can_survive_fails_the_sweep_at_once(
    site: Site, team: Team
) -> None:
    tenant = team(quota=8)
    fast = RANDOM | {"failFastExitCodes": [42]}
    spec: Json = {"gpu": 0.5, "parallelism": 2, "completions": 9, "retries": 3, "sweep": fast}
    tenant.submit("fatal", template=template(), **spec)
    pods = wait_running(tenant, "fatal", 0, 1)
    end(tenant, pods[1], "", exit_code=42)
    status = tenant.wait_phase("fatal", "Failed")
    assert status["message"] == "trial 1 ended with exit code 42 (failFastExitCodes)"
    until(lambda: not running_trials(tenant, "fatal"), "nothing runs on")


MESSAGES: list[tuple[str, str, str]] = [
    ('{"loss": 1, "pad": "' + "x" * 4075 + '"}', "ResultMissing", "4,097 bytes; 4,096 fit"),
    ("", "ResultMissing", "ended without writing to $GPUJOB_RESULT_FILE"),
    ("\x00\x01\ufffd\x7f{[", "ResultMissing", "has no line that is a JSON object"),
    ('{"loss": NaN}', "ObjectiveNotFinite", "loss is nan"),
    ('{"loss": -Infinity}', "ObjectiveNotFinite", "loss is -inf"),
    ('{"loss": 9}\n{"loss": 5}\n', "Succeeded", ""),
    ('{"loss": "small"}', "ResultMissing", "loss is a string, not a number"),
    ('{"accuracy": 0.9}', "ResultMissing", "has no loss; it has accuracy"),
]


def test_every_bad_message_has_its_state_and_a_sentence(site: Site, team: Team) -> None:
    assert len(MESSAGES[0][0]) == 4097
    tenant = team(quota=8)
    count = len(MESSAGES)
    spec: Json = {"gpu": 0.5, "parallelism": count, "completions": count, "sweep": RANDOM}
    tenant.submit("words", template=template(), **spec)
    pods = wait_running(tenant, "words", *range(count))
    for trial, (message, _, _) in enumerate(MESSAGES):
        end(tenant, pods[trial], message)
    status = tenant.wait_phase("words", "Succeeded")
    stored = until(lambda: len(r := rows(tenant, "words")) == count and r, "all rows are stored")
    for trial, (_, state, sentence) in enumerate(MESSAGES):
        assert stored[trial].state == state, stored[trial]
        assert sentence in stored[trial].message, stored[trial]
    assert stored[5].value == 5
    assert status["sweep"]["counts"] == {
        "running": 0,
        "succeeded": 1,
        "pruned": 0,
        "failed": 0,
        "resultMissing": 5,
        "objectiveNotFinite": 2,
    }
    assert [e["trial"] for e in status["sweep"]["errors"]] == [7, 6, 4, 3, 2]


def test_an_adaptive_search_keeps_the_values_that_it_gave(site: Site, team: Team) -> None:
    """Its results are its values, so what is stored can be compared with what the pods had."""
    tenant = team(quota=8)
    tpe = RANDOM | {"algorithm": "tpe", "objective": {"metric": "lr"}}
    said = {"kwok.x-k8s.io/termination-message-of": HPARAMS}
    pods = template(runs(1) | said)
    seen: dict[int, Json] = {}
    wrong: list[int] = []

    def check(pods: Pods) -> None:
        for trial, values in given(list(pods.values())).items():
            if seen.setdefault(trial, values) != values:
                wrong.append(trial)

    with PodWatch(site.running, tenant.name, check):
        spec: Json = {"gpu": 0.5, "parallelism": 3, "completions": 18, "sweep": tpe}
        tenant.submit("learns", template=pods, **spec)
        until(lambda: len(seen) >= 7, "trials go on", 60)
        site.replica.kill()
        site.restart()
        status = tenant.wait_phase("learns", "Succeeded", 90)
    assert wrong == [] and seen.keys() == set(range(18))
    stored = until(lambda: len(r := rows(tenant, "learns")) == 18 and r, "all rows are stored")
    for trial, values in seen.items():
        assert stored[trial].parameters == (values["lr"],)
        assert stored[trial].value == values["lr"]
    assert len({values["lr"] for values in seen.values()}) == 18
    best = min(seen, key=lambda trial: seen[trial]["lr"])
    assert status["sweep"]["best"] == {
        "trial": best,
        "value": seen[best]["lr"],
        "parameters": {"lr": repr(seen[best]["lr"])},
    }


def test_trials_past_the_first_thousand_have_a_job_and_results_of_their_own(
    site: Site, team: Team
) -> None:
    """Completions raised late make a segment of their own, which opens when one can run."""
    tenant = team(quota=8)
    spec: Json = {"gpu": 0.5, "parallelism": 2, "completions": 2, "sweep": RANDOM}
    tenant.submit("more", template=template(), **spec)
    pods = wait_running(tenant, "more", 0, 1)
    assert tenant.patch("more", completions=5).ok
    end(tenant, pods[0], '{"loss": 4}')
    pods = wait_running(tenant, "more", 1, 2)
    assert tenant.batch_job("more-s1")["spec"]["completions"] == 3
    assert tenant.batch_job("more-s1")["spec"]["parallelism"] == 1, "trial 1 still runs"
    end(tenant, pods[1], '{"loss": 3}')
    pods = wait_running(tenant, "more", 2, 3)
    for trial in (2, 3):
        end(tenant, pods[trial], json.dumps({"loss": 3 - trial}))
    end(tenant, wait_running(tenant, "more", 4)[4], '{"loss": 7}')
    status = tenant.wait_phase("more", "Succeeded")
    assert status["sweep"]["best"]["trial"] == 3
    until(lambda: rows(tenant, "more", 1).keys() == {2, 3, 4}, "the second segment is stored")
    assert rows(tenant, "more", 0).keys() == {0, 1}


def test_a_log_that_cannot_be_read_is_a_missing_result_with_the_reason(team: Team) -> None:
    tenant = team(quota=8)
    logs = RANDOM | {"resultFrom": {"logRegex": "loss=([0-9.]+)"}}
    tenant.submit("logs", gpu=0.5, completions=1, sweep=logs, template=says("loss=1"))
    status = tenant.wait_phase("logs", "Failed", 60)  # nodes that are played have no logs
    (error,) = status["sweep"]["errors"]
    assert error["state"] == "ResultMissing" and "log" in error["message"], error
    assert status["message"] == "none of 1 trials succeeded"


def test_a_finished_sweep_is_deleted_when_its_time_is_over_with_all_that_it_owns(
    site: Site, team: Team
) -> None:
    tenant = team(quota=8)
    spec: Json = {"gpu": 0.5, "completions": 1, "ttlSecondsAfterFinished": 2, "sweep": RANDOM}
    tenant.submit("brief", template=says({"loss": 1}), **spec)
    tenant.wait_phase("brief", "Succeeded")
    assert until(lambda: rows(tenant, "brief"), "its rows are stored")
    until(lambda: tenant.job("brief")["kind"] == "Status", "the GPUJob is gone")
    path = f"/api/v1/namespaces/{tenant.name}/configmaps/{results_name('brief', 0)}"
    until(lambda: tenant.admin.get(path).status == 404, "its results are gone", 60)
    until(lambda: not tenant.pods(), "its pods are gone", 60)
