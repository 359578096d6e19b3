"""The objects that are measured, and how they go away again.

Every variant runs the same thing: equal pods of one Indexed Job, or of one Deployment, which run
until they are deleted. Stock pods ask for one whole GPU each and for nothing else. Ours get half of
one, and with it the environment and the files that the operator renders, or a policy puts in, which
makes them larger. Clearing away bypasses the rate limits of the controllers, or it would take
longer than the run.
"""

import asyncio
from typing import Any

import orjson
from tests.perf.bound import APP, BoundWatch

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.names import API_VERSION, ASK_GPU, GROUP, VERSION
from gpu_scheduler.jobs.cap import CapImage
from gpu_scheduler.jobs.render import RenderInput, render
from gpu_scheduler.jobs.share import Installation, share
from gpu_scheduler.jobs.write_path import WritePath
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.paths import core, job, of_group, pod

NAMESPACE = "bench"
IMAGE = "bench/pause:1"
CAP_IMAGE = "bench/gpu-scheduler:1"  # nothing is pulled on fake nodes
NULL_SCHEDULER = "bench-null-binder"
_CLEAR_SECONDS = 120.0


def plain_job(name: str, pods: int, *, scheduler: str, whole_gpus: int) -> tuple[str, Any]:
    """Path and body of an Indexed Job; without GPUs its pods ask for nothing."""
    spec = {
        "completionMode": "Indexed",
        "parallelism": pods,
        "completions": pods,
        "backoffLimitPerIndex": 3,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "schedulerName": scheduler,
                "containers": [_container(whole_gpus)],
            }
        },
    }
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
    return job(NAMESPACE), body


def plain_deployment(name: str, pods: int, *, whole_gpus: int) -> tuple[str, Any]:
    """Path and body of a Deployment for the stock scheduler."""
    return _deployment(name, pods, {}, _container(whole_gpus))


def asking_deployment(name: str, pods: int) -> tuple[str, Any]:
    """Path and body of a Deployment whose pods ask for half a GPU, by a label alone."""
    return _deployment(name, pods, {ASK_GPU: "0.5"}, _container(0))


def rendered_deployment(name: str, pods: int) -> tuple[str, Any]:
    """The same as ``kubectl gpu render`` prints it: no policy has to change a pod.

    Raises:
        ValueError: it is not made ours.
    """
    path, body = asking_deployment(name, pods)
    template = body["spec"]["template"]
    given = Installation(CapImage(CAP_IMAGE))
    made = share(template["metadata"], template["spec"], given, controlled=True)
    if made is None or not isinstance(made[0], dict):
        raise ValueError(f"{template} is not made ours: {made}")
    template["metadata"], template["spec"] = made
    return path, body


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
            has_runtime_class=True,
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


def _container(whole_gpus: int) -> dict[str, Any]:
    limits = {"resources": {"limits": {"nvidia.com/gpu": str(whole_gpus)}}} if whole_gpus else {}
    return {"name": "main", "image": IMAGE, **limits}


def _deployment(
    name: str, pods: int, labels: dict[str, str], container: dict[str, Any]
) -> tuple[str, Any]:
    own = {APP: name}
    spec = {
        "replicas": pods,
        "selector": {"matchLabels": own},
        "template": {"metadata": {"labels": own | labels}, "spec": {"containers": [container]}},
    }
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
    return _apps("deployments"), body


def _apps(plural: str, name: str = "") -> str:
    return of_group("apps", "v1", plural, NAMESPACE, name)


async def clear(client: Client, watch: BoundWatch, names: list[str]) -> None:
    """Delete what has these names with all pods of the namespace, and wait until they are gone."""
    for name in names:
        for path in (
            of_group(GROUP, VERSION, "gpujobs", NAMESPACE, name),
            job(NAMESPACE, name),
            _apps("deployments", name),
        ):
            try:
                await client.delete(path, propagation="Background")
            except errors.NotFound:
                continue
    # Or their controller would make pods anew until the garbage collector comes to it.
    await _delete_all(client, _apps("replicasets"), propagationPolicy="Background")
    listed = await client.get(core("pods", NAMESPACE))
    held = (p["metadata"] for p in listed["items"] if p["metadata"].get("finalizers"))
    await asyncio.gather(*(_release(client, meta["name"]) for meta in held))
    await _delete_all(client, core("pods", NAMESPACE), gracePeriodSeconds=0)
    await watch.until_none(_CLEAR_SECONDS)


async def _delete_all(client: Client, path: str, **options: object) -> None:
    body = orjson.dumps({"apiVersion": "v1", "kind": "DeleteOptions", **options})
    await client.request("DELETE", path, body=body, timeout_seconds=_CLEAR_SECONDS)


async def _release(client: Client, name: str) -> None:
    """Take the finalizer off by which the Job controller counts a pod's end."""
    try:
        await client.merge_patch(
            pod(NAMESPACE, name), {"metadata": {"finalizers": None}}, timeout_seconds=_CLEAR_SECONDS
        )
    except errors.NotFound:
        return
