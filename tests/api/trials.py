"""The trials of a sweep as a test sees and plays them: their values, their ends, what is stored."""

import json
from datetime import UTC, datetime

from tests.api.replica import CALM_LEASE
from tests.api.tenant import Json, Tenant, runs, template, until
from tests.trial_values import TrialValues, see

from gpu_scheduler.api.names import RESULTS_KEY, TRIAL, results_name
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState
from gpu_scheduler.sweeps.core.rows import decode

SETTINGS = {**CALM_LEASE, "results_seconds": "0.5", "guarantee_seconds": "2", "read_logs": "true"}
LOSS: Json = {"metric": "loss", "goal": "minimize"}
RANDOM: Json = {
    "algorithm": "random",
    "seed": 7,
    "objective": LOSS,
    "parameters": {"lr": {"logUniform": [1e-5, 0.1]}},
}


def says(result: str | Json, seconds: int = 1, **more: str) -> Json:
    """A template whose pods say this when they end."""
    text = result if isinstance(result, str) else json.dumps(result)
    return template(runs(seconds, termination_message=text, **more))


def given(pods: list[Json]) -> dict[int, Json]:
    """The parameters of each trial of a job; an error when two pods of one had different ones."""
    values: TrialValues = {}
    see(pods, values)
    return {trial: json.loads(told) for (_, trial), told in values.items()}


def rows(tenant: Tenant, job: str, segment: int = 0) -> dict[int, Outcome]:
    """What is stored of a segment's trials that are over; the last follow the status."""
    path = f"/api/v1/namespaces/{tenant.name}/configmaps/{results_name(job, segment)}"
    answer = tenant.admin.get(path)
    if not answer.ok:
        return {}
    outcomes = decode(answer.body["data"][RESULTS_KEY])[1]
    return {o.trial: o for o in outcomes if o.state is not TrialState.STARTED}


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
        "finishedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
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


def fail_when_suspended(tenant: Tenant, job: str, pod: Json, exit_code: int) -> None:
    """Suspend a job; its one pod answers the signal by failing, and is seen so by its Job.

    Fake nodes end a pod that is deleted without a word; a kubelet reports its exit code first.
    """
    path = f"/api/v1/namespaces/{tenant.name}/pods/{pod['metadata']['name']}"

    def seen() -> Json:
        found: Json = tenant.admin.get(path).body
        return found

    finalizers = [*pod["metadata"]["finalizers"], "test.example/kubelet"]
    assert tenant.admin.patch(path, {"metadata": {"finalizers": finalizers}}).ok
    assert tenant.patch(job, suspend=True).ok
    until(lambda: seen()["metadata"].get("deletionTimestamp"), "it is deleted")
    end(tenant, pod, "", exit_code)
    tracking = "batch.kubernetes.io/job-tracking"
    until(lambda: tracking not in seen()["metadata"]["finalizers"], "its Job has seen its end")
    assert seen()["status"]["phase"] == "Failed"
    assert tenant.admin.patch(path, {"metadata": {"finalizers": None}}).ok


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
