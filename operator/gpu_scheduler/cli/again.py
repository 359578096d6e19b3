"""A job once more: deleted, and made again with the same spec when all that it ran is gone.

A Job never runs again once it has ended, so neither does a GPUJob. The API server is asked first
whether it would take the new one; if it is refused after all, it is printed, so that nothing is
lost.
"""

from collections.abc import Callable, Iterable
from copy import deepcopy
from time import monotonic, sleep
from typing import Any

from gpu_scheduler.api.names import LABEL_JOB
from gpu_scheduler.api.unstructured import Body
from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.cli.ending import Failed
from gpu_scheduler.cli.finding import get, gpujob_path, no_job
from gpu_scheduler.kube import errors, paths

_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_POLL_SECONDS = 0.2
_MOST_SECONDS = 600.0


def run_again(
    cluster: ClusterAccess,
    name: str,
    *,
    drop_results: bool,
    seconds: float,
    say: Callable[[str], None],
) -> None:
    """Delete and make again a job that has ended.

    Args:
        cluster: where it is.
        name: of the GPUJob.
        drop_results: of a sweep: its results may go.
        seconds: until what it ran must be gone.
        say: told what is done, before it is.

    Raises:
        Failed: it has not ended, or it would be refused, or what it ran does not go.
        errors.ApiError: it may not be read or deleted.
    """
    path = gpujob_path(cluster.namespace, name)
    job = get(cluster, path)
    if job is None:
        raise no_job(cluster, name)
    _check(name, job, drop_results=drop_results)
    new = fresh(job)
    _would_be_taken(cluster, name, new)
    say(f"{name} is deleted and made again; its Events and its pods' logs go")
    cluster.client.delete(path)
    try:
        _until(lambda: _left(cluster, name), name, seconds)
        cluster.client.create(gpujob_path(cluster.namespace), new)
    except (Failed, errors.ApiError) as error:
        raise Failed(f"{name} was deleted and not made again: {error}{_kept(new)}") from None
    except KeyboardInterrupt:
        raise Failed(f"{name} was deleted and not made again{_kept(new)}") from None


def wait_until_gone(cluster: ClusterAccess, names: Iterable[str]) -> None:
    """Until these GPUJobs are gone.

    Raises:
        Failed: one does not go.
    """
    for name in names:
        _until(lambda name=name: _job_left(cluster, name), name, _MOST_SECONDS)  # type: ignore[misc]


def fresh(job: Body) -> dict[str, Any]:
    """The same job as somebody would write it: without what the API server has put in."""
    meta = job["metadata"]
    kept = {
        k: deepcopy(meta[k])
        for k in ("name", "namespace", "labels", "ownerReferences")
        if k in meta
    }
    notes = {k: v for k, v in (meta.get("annotations") or {}).items() if k != _APPLIED}
    if notes:
        kept["annotations"] = notes
    spec = {k: v for k, v in deepcopy(job.get("spec") or {}).items() if k != "suspend"}
    return {"apiVersion": job["apiVersion"], "kind": job["kind"], "metadata": kept, "spec": spec}


def _check(name: str, job: Body, *, drop_results: bool) -> None:
    status = job.get("status") or {}
    phase = str(status.get("phase") or "Pending")
    if phase not in ("Succeeded", "Failed"):
        resume = f"; kubectl gpu resume {name} lets it go on" if phase == "Suspended" else ""
        raise Failed(f"{name} is {phase}; retry is for jobs that have ended{resume}")
    if (job.get("spec") or {}).get("sweep") and not drop_results:
        raise Failed(
            f"{name} is a sweep, and its results go with it: keep them with kubectl gpu sweep "
            f"trials {name} -o csv, then say --yes; more trials need no retry, raise "
            "spec.completions for them"
        )


def _would_be_taken(cluster: ClusterAccess, name: str, new: dict[str, Any]) -> None:
    """Ask for a creation that can fail for one reason alone: the old one is still there."""
    try:
        cluster.client.create(gpujob_path(cluster.namespace), new, dry_run=True)
    except errors.Conflict:
        return
    except errors.ApiError as error:
        if error.status in (0, 401) or error.status >= 500:
            raise
        raise Failed(
            f"{name} stays as it is: it would not be made again: {error.message}"
        ) from None


def _until(left: Callable[[], str], name: str, seconds: float) -> None:
    deadline = monotonic() + seconds
    while what := left():
        if monotonic() > deadline:
            raise Failed(f"after {seconds:g} s {what} of {name} is still there")
        sleep(_POLL_SECONDS)


def _job_left(cluster: ClusterAccess, name: str) -> str:
    try:
        cluster.client.get(gpujob_path(cluster.namespace, name))
    except errors.NotFound:
        return ""
    return "the GPUJob"


def _left(cluster: ClusterAccess, name: str) -> str:
    if what := _job_left(cluster, name):
        return what
    selector = f"{LABEL_JOB}={name}"
    for what, path in (
        ("a Job", paths.job(cluster.namespace)),
        ("a pod", paths.core("pods", cluster.namespace)),
        ("a ConfigMap", paths.core("configmaps", cluster.namespace)),
    ):
        try:
            found = cluster.client.get(path, labelSelector=selector, limit="1")
        except errors.Forbidden:
            continue  # who may not see them does not wait for them
        if found.get("items"):
            return what
    return ""


def _kept(new: Body) -> str:
    import yaml

    return "; here it is, for kubectl create -f -:\n" + yaml.safe_dump(new, sort_keys=False)
