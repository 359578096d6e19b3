"""Reads a sweep and its results from a cluster; writes nothing."""

from gpu_scheduler.api.names import GROUP, LABEL_JOB, RESULTS_KEY, VERSION
from gpu_scheduler.kube import paths
from gpu_scheduler.kube.command_client import CommandClient
from gpu_scheduler.sweeps.commands.manifest import parse
from gpu_scheduler.sweeps.commands.record import NoResultsError, SweepOutcomes, record

_PAGE = 20  # ConfigMaps per answer: one may have a megabyte


def fetch(client: CommandClient, namespace: str, name: str) -> SweepOutcomes:
    """A sweep and what came of its trials so far.

    Raises:
        errors.ApiError: there is no such GPUJob, or it may not be read.
        ManifestError: the GPUJob has no sweep.
        NoResultsError: it has no results yet.
    """
    job = client.get(paths.of_group(GROUP, VERSION, "gpujobs", namespace, name))
    sweep = parse(job, f"{namespace}/{name}")
    path = paths.core("configmaps", namespace)
    found = client.items(path, f"{LABEL_JOB}={name}", page=_PAGE)
    kept = (item.get("data") or {} for item in found)
    texts = [data[RESULTS_KEY] for data in kept if RESULTS_KEY in data]
    if not texts:
        counts = ((job.get("status") or {}).get("sweep") or {}).get("counts") or {}
        told = [f"{count} {state}" for state, count in counts.items() if count]
        now = f" ({', '.join(told)})" if told else ""
        raise NoResultsError(
            f"{namespace}/{name} has no results yet{now}; what its trials write so far: "
            f"kubectl gpu logs {name} --trial 0 -n {namespace}"
        )
    return record(sweep, texts)
