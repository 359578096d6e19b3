"""A small world, and what a planner sees of it."""

from typing import Any

from tests.unit.state.builders import make_gpujob, make_job, make_node, make_project

from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.world import World


def make_world(*pods: Pod) -> World:
    """Node a with two GPUs, project team-a, GPUJob job with its Job, and these pods."""
    world = World()
    world.node_changed(make_node("a"))
    world.project_changed(make_project())
    world.gpujob_changed(make_gpujob())
    world.job_changed(make_job())
    for pod in pods:
        world.pod_changed(pod)
    return world


def free(world: World) -> list[int]:
    return list(world.snapshot().free_milli)


def waiting(world: World) -> dict[str, list[str]]:
    return {str(job.key): [pod.name for pod in job.pods] for job in world.waiting_jobs()}


def facts(world: World) -> dict[str, Any]:
    """All that a plan depends on."""
    cluster = world.snapshot()
    return {
        "nodes": cluster.nodes,
        "devices": (cluster.dev_id, cluster.free_milli, cluster.free_mib),
        "rest": (cluster.free_cpu_milli, cluster.free_memory_bytes, cluster.free_pods),
        "held": cluster.allocated_milli,
        "projects": world.planner_projects(),
        "jobs": sorted(world.waiting_jobs(), key=lambda job: job.key),
    }
