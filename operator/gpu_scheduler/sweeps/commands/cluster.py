"""Reads a sweep and its results from the cluster that kubectl points at; writes nothing."""

import asyncio

from gpu_scheduler.api.names import GROUP, LABEL_JOB, RESULTS_KEY, VERSION
from gpu_scheduler.kube import config, errors, paths
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.connection import Connection
from gpu_scheduler.kube.listing import list_all
from gpu_scheduler.sweeps.commands.manifest import parse
from gpu_scheduler.sweeps.commands.record import NoResultsError, Record, record

_PAGE = 20  # ConfigMaps per answer: one may have a megabyte


class ClusterError(ValueError):
    """The cluster, or what was looked for there, cannot be read; the message says why."""


def fetch(name: str, namespace: str | None, context: str | None = None) -> Record:
    """A sweep and what came of its trials so far; None: as the kubeconfig says.

    Raises:
        ClusterError: there is no cluster, no such GPUJob, or it may not be read.
        ManifestError: the GPUJob has no sweep.
        NoResultsError: it has no results yet.
    """
    try:
        connection = config.load(context=context, login=True)
    except config.ConfigError as error:
        raise ClusterError(str(error)) from None
    where = namespace or connection.namespace
    try:
        return asyncio.run(_read(connection, name, where))
    except errors.NotFound:
        raise ClusterError(f"there is no GPUJob {name} in namespace {where}") from None
    except errors.ApiError as error:
        raise ClusterError(f"{connection.server}: {error}") from None


async def _read(connection: Connection, name: str, namespace: str) -> Record:
    async with Client(connection, patient=False) as client:
        job = await client.get(paths.of_group(GROUP, VERSION, "gpujobs", namespace, name))
        sweep = parse(job, f"{namespace}/{name}")
        found = await list_all(
            client,
            paths.core("configmaps", namespace),
            page_size=_PAGE,
            selector=f"{LABEL_JOB}={name}",
        )
    kept = (item.get("data") or {} for item in found)
    texts = [data[RESULTS_KEY] for data in kept if RESULTS_KEY in data]
    if not texts:
        raise NoResultsError(f"{namespace}/{name} has no results yet")
    return record(sweep, texts)
