"""Sweeps on a real control plane: every trial once, with its own values, whoever is killed."""

import itertools
import json

from tests.api.pod_watch import Pods, PodWatch
from tests.api.site import Site, Team
from tests.api.tenant import Json, runs, template, until
from tests.api.trials import (
    RANDOM,
    end,
    fail_when_suspended,
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

from gpu_scheduler.api.names import HPARAMS

LR, BATCH = [0.001, 0.01, 0.1], [32, 64, 128, 256]
GRID: Json = {
    "algorithm": "grid",
    "parameters": {"lr": {"values": LR}, "batch": {"values": BATCH}},
}
# itertools.product over the parameters in the order of their names.
PRODUCT = [{"batch": b, "lr": lr} for b, lr in itertools.product(BATCH, LR)]


def test_a_grid_has_twelve_distinct_trials_in_the_order_of_the_product(
    site: Site, team: Team
) -> None:
    tenant = team(quota=8)
    with PodWatch(site.running, tenant.name) as watch:
        tenant.submit("grid", gpu=0.5, parallelism=4, sweep=GRID, template=says({"loss": 1}))
        status = tenant.wait_phase("grid", "Succeeded")
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
    tenant.wait_phase("grid", "Succeeded")
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
    assert tenant.patch("grid", completions=13, parallelism=6).ok
    until(
        lambda: sweep_status(tenant, "grid")["counts"]["succeeded"] == 12,
        lambda: f"the grid has twelve: {json.dumps(tenant.status('grid'))}",
        60,
    )
    accepted = tenant.wait_phase("grid", "Succeeded")["conditions"][0]
    assert (accepted["type"], accepted["status"]) == ("Accepted", "True")
    assert "but the grid has 12 trials" in accepted["message"]


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
        pod = until(lambda t=trial: running_trials(tenant, "rest").get(t), "it runs")
        end(tenant, pod, json.dumps({"loss": 3 - trial}))
    status = tenant.wait_phase("rest", "Succeeded")
    assert status["sweep"]["counts"]["failed"] == 0
    assert [t["trial"] for t in status["sweep"]["top"]] == [3, 2, 1, 0]


def test_a_code_in_answer_to_the_signal_of_a_suspension_fails_nothing(
    site: Site, team: Team
) -> None:
    tenant = team(quota=8)
    search = RANDOM | {"failFastExitCodes": [42]}
    spec = {"gpu": 0.5, "completions": 2, "parallelism": 1, "retries": 0, "sweep": search}
    tenant.submit("quick", template=template(), **spec)
    pod = wait_running(tenant, "quick", 0)[0]
    fail_when_suspended(tenant, "quick", pod, 42)
    assert tenant.patch("quick", suspend=False).ok
    again = wait_running(tenant, "quick", 0)[0]
    assert not tenant.batch_job("quick-s0")["status"].get("failedIndexes")
    end(tenant, again, '{"loss": 1}')
    end(tenant, wait_running(tenant, "quick", 1)[1], '{"loss": 2}')
    assert tenant.wait_phase("quick", "Succeeded")["sweep"]["counts"]["succeeded"] == 2


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
            until(lambda n=least: len(seen) >= n, "trials go on")
            site.replica.kill()
            until(lambda: not running_trials(tenant, "killed"), "all end while nobody leads")
            site.restart()
        tenant.wait_phase("killed", "Succeeded")
    assert watch.peak.pods <= 6
    assert wrong == [] and seen.keys() == set(range(40))
    assert sweep_status(tenant, "killed")["counts"]["succeeded"] == 40
    assert len(tenant.pods("killed")) == 40, "no trial ran twice"
    assert until(lambda: len(rows(tenant, "killed")) == 40, "all rows are stored")


def test_preemption_consumes_no_retry_and_changes_no_value(site: Site, team: Team) -> None:
    borrower, owner = team(quota=0), team(quota=8)
    spec: Json = {"gpu": 1, "parallelism": 8, "completions": 8, "retries": 0, "sweep": RANDOM}
    borrower.submit("guest", template=template(), **spec)
    wait_running(borrower, "guest", *range(8))
    before = given(borrower.pods("guest"))
    owner.submit("own", gpu=1)
    owner.wait_placed("own")
    until(lambda: len(running_trials(borrower, "guest")) == 7, "one gave way")
    owner.finish("own")
    wait_running(borrower, "guest", *range(8))
    assert given(borrower.pods("guest")) == before
    for trial, pod in running_trials(borrower, "guest").items():
        end(borrower, pod, json.dumps({"loss": trial}))
    status = borrower.wait_phase("guest", "Succeeded")
    assert status["sweep"]["counts"]["succeeded"] == 8
    assert borrower.batch_job("guest-s0")["status"].get("failed", 0) == 0


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
        until(lambda: len(seen) >= 7, "trials go on")
        site.replica.kill()
        site.restart()
        status = tenant.wait_phase("learns", "Succeeded")
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
    until(lambda: rows(tenant, "more", 0).keys() == {0, 1}, "so is the first")
