"""``submit --attach``: until the first pod has started, and then its output, by kubectl.

Whoever interrupts it leaves the job alone.
"""

from collections.abc import Callable, Mapping
from time import sleep
from typing import Any

import click

from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.cli.ending import Failed
from gpu_scheduler.cli.finding import gpujob_path, pods_of_job
from gpu_scheduler.cli.one_pod.choosing import has_started
from gpu_scheduler.cli.one_pod.kubectl import hand_over
from gpu_scheduler.cli.shown import note
from gpu_scheduler.cli.where import ClusterOptions
from gpu_scheduler.kube import errors

_INTERRUPTED = 130
_POLL_SECONDS = 1.0


def attach(where: ClusterOptions, namespace: str, name: str) -> None:
    """Follow the job's first pod; does not come back once it has started.

    Raises:
        Failed: the job has ended or is gone before a pod of it has started.
    """
    try:
        with where.cluster() as cluster:
            pod = first_pod(ClusterAccess(cluster.client, namespace), name, say=note)
    except KeyboardInterrupt:
        note(f"{name} goes on: kubectl gpu logs {name} -n {namespace} -f")
        raise click.exceptions.Exit(_INTERRUPTED) from None
    hand_over(where, ["logs", "-f", f"pod/{pod}", "-n", namespace])


def first_pod(
    cluster: ClusterAccess,
    name: str,
    *,
    say: Callable[[str], None],
    wait: Callable[[float], None] = sleep,
) -> str:
    """The name of the first pod that has started; until then each new reason is said.

    Raises:
        Failed: the job has ended or is gone before.
    """
    said = ""
    while True:
        job = _job(cluster, name)
        started = [pod for pod in pods_of_job(cluster, name) if has_started(pod)]
        if started:
            return str(started[0]["metadata"]["name"])
        status = job.get("status") or {}
        phase, reason = status.get("phase"), status.get("reason")
        told = ": ".join(filter(None, (reason or phase, status.get("message"))))
        if phase in ("Succeeded", "Failed"):
            raise Failed(f"{name} has ended ({told or phase}), and there is no pod to follow")
        if told and told != said:
            said = told
            say(f"{name} waits: {told}" if phase != "Running" else f"{name}: {told}")
        wait(_POLL_SECONDS)


def _job(cluster: ClusterAccess, name: str) -> Mapping[str, Any]:
    try:
        return cluster.client.get(gpujob_path(cluster.namespace, name))
    except errors.NotFound:
        raise Failed(f"{name} is gone: somebody has deleted it") from None
