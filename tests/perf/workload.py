"""The objects that are measured, and how they go away again.

Every variant runs the same thing: one Indexed Job of equal pods, which run until they are deleted.
Stock pods ask for one whole GPU each and for nothing else. Ours get half of one, and with it the
environment and the files that the operator renders, which makes them larger. Clearing away
bypasses the rate limits of the controllers, or it would take longer than the run.
"""

import asyncio
from typing import Any

from tests.perf.bound import BoundWatch

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.names import API_VERSION, GROUP, VERSION
from gpu_scheduler.jobs.render import RenderInput, render
from gpu_scheduler.jobs.write_path import WritePath
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.paths import core, job, of_group, pod

NAMESPACE = "bench"
IMAGE = "bench/pause:1"
NULL_SCHEDULER = "bench-null-binder"
_CLEAR_SECONDS = 120.0


def plain_job(name: str, pods: int, *, scheduler: str, whole_gpus: int) -> tuple[str, Any]:
    """Path and body of an Indexed Job; without GPUs its pods ask for nothing."""
    container: dict[str, Any] = {"name": "main", "image": IMAGE}
    if whole_gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(whole_gpus)}}
    spec = {
        "completionMode": "Indexed",
        "parallelism": pods,
        "completions": pods,
        "backoffLimitPerIndex": 3,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "schedulerName": scheduler,
                "containers": [container],
            }
        },
    }
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
    return job(NAMESPACE), body


def rendered_job(name: str, pods: int, *, scheduler: str) -> tuple[str, Any]:
    """Path and body of the Job that the operator would make of ``gpu_job``, for another binder."""
    spec = GPUJobSpec.model_validate(gpu_job(name, pods)[1]["spec"])
    body = render(
        RenderInput(
            name=name,
            namespace=NAMESPACE,
            uid="none",
            spec=spec,
            project=NAMESPACE,
            path=WritePath.BIND,
            has_runtime_class=False,
            has_priority_class=True,
        )
    )
    del body["metadata"]["ownerReferences"]
    body["spec"]["template"]["spec"]["schedulerName"] = scheduler
    return job(NAMESPACE), body


def gpu_job(name: str, pods: int, gpu: str = "0.5") -> tuple[str, Any]:
    """Path and body of a GPUJob."""
    body = {
        "apiVersion": API_VERSION,
        "kind": "GPUJob",
        "metadata": {"name": name},
        "spec": {"image": IMAGE, "gpu": float(gpu), "parallelism": pods},
    }
    return of_group(GROUP, VERSION, "gpujobs", NAMESPACE), body


async def clear(client: Client, watch: BoundWatch, names: list[str]) -> None:
    """Delete jobs of these names with all pods of the namespace, and wait until they are gone."""
    for name in names:
        for path in (of_group(GROUP, VERSION, "gpujobs", NAMESPACE, name), job(NAMESPACE, name)):
            try:
                await client.delete(path, propagation="Background")
            except errors.NotFound:
                continue
    listed = await client.get(core("pods", NAMESPACE))
    await asyncio.gather(*(_release(client, p["metadata"]["name"]) for p in listed["items"]))
    now = b'{"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}'
    pods = core("pods", NAMESPACE)
    await client.request("DELETE", pods, body=now, timeout_seconds=_CLEAR_SECONDS)
    await watch.until_none(_CLEAR_SECONDS)


async def _release(client: Client, name: str) -> None:
    """Take the finalizer off by which the Job controller counts a pod's end."""
    try:
        await client.merge_patch(
            pod(NAMESPACE, name), {"metadata": {"finalizers": None}}, timeout_seconds=_CLEAR_SECONDS
        )
    except errors.NotFound:
        return
