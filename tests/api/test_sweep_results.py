"""What trials come to, on a real control plane: results, failures, and the end of the sweep."""

import json

from tests.api.site import Site, Team
from tests.api.tenant import Json, template, until
from tests.api.trials import (
    LOSS,
    RANDOM,
    end,
    given,
    rows,
    running_trials,
    says,
    sweep_status,
    wait_running,
)
from tests.api.trials import (
    SETTINGS as SETTINGS,  # of the fixture `site`
)

from gpu_scheduler.api.names import results_name


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
    status = tenant.wait_phase("bad", "Failed")
    said = "2 trials failed, maxFailedTrials is 1; such as ResultMissing (1): "
    assert status["message"].startswith(said)
    until(lambda: not running_trials(tenant, "bad"), "nothing runs on")
    site.replica.kill()
    site.restart()
    tenant.submit("later", gpu=0.5)
    tenant.wait_phase("later", "Running")  # so what the next leader says of the other is said
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


def test_a_log_that_cannot_be_read_is_a_missing_result_with_the_reason(team: Team) -> None:
    tenant = team(quota=8)
    logs = RANDOM | {"resultFrom": {"logRegex": "loss=([0-9.]+)"}}
    tenant.submit("logs", gpu=0.5, completions=1, sweep=logs, template=says("loss=1"))
    status = tenant.wait_phase("logs", "Failed")  # nodes that are played have no logs
    (error,) = status["sweep"]["errors"]
    assert error["state"] == "ResultMissing" and "log" in error["message"], error
    said = f"none of 1 trials succeeded; most often ResultMissing (1): {error['message']}"
    assert status["message"] == said


def test_a_finished_sweep_is_deleted_when_its_time_is_over_with_all_that_it_owns(
    site: Site, team: Team
) -> None:
    tenant = team(quota=8)
    spec: Json = {"gpu": 0.5, "completions": 1, "sweep": RANDOM}
    tenant.submit("brief", template=says({"loss": 1}), **spec)
    tenant.wait_phase("brief", "Succeeded")
    assert until(lambda: rows(tenant, "brief"), "its rows are stored")
    # Only now, for it might go before the test has seen that.
    assert tenant.patch("brief", ttlSecondsAfterFinished=2).ok
    until(lambda: tenant.job("brief")["kind"] == "Status", "the GPUJob is gone")
    path = f"/api/v1/namespaces/{tenant.name}/configmaps/{results_name('brief', 0)}"
    until(lambda: tenant.admin.get(path).status == 404, "its results are gone")
    until(lambda: not tenant.pods(), "its pods are gone")
