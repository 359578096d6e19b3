"""``-p PROJECT``: which namespaces a project has."""

from collections.abc import Mapping
from typing import Any

from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.cli.ending import Failed
from gpu_scheduler.cli.job_names import checked
from gpu_scheduler.kube import paths


def namespaces_of(cluster: ClusterAccess, project: str) -> list[str]:
    """The namespaces of a project, as it lists them.

    Raises:
        ValueError: no project can have this name.
        Failed: there is none.
        errors.ApiError: it may not be read.
    """
    from gpu_scheduler.cli.finding import get

    path = paths.of_group(GROUP, VERSION, "gpuprojects", name=checked(project, "a project's name"))
    body = get(cluster, path)
    if body is None:
        raise Failed(
            f"there is no project called {project}; kubectl gpu projects shows which there are"
        )
    found = listed(body)
    if not found:
        raise Failed(f"project {project} has no namespaces; kubectl edit gpuproject {project}")
    return found


def namespace_of(cluster: ClusterAccess, project: str, said: str | None) -> str:
    """The namespace that a project means where one is wanted.

    Args:
        cluster: is asked for it; its namespace is taken where the project has it among others.
        project: its name.
        said: -n.

    Raises:
        ValueError: it has several, and none was said.
        Failed: there is no such project, or it has not the namespace that was said, or none.
        errors.ApiError: it may not be read.
    """
    names = namespaces_of(cluster, project)
    if said and said not in names:
        raise Failed(f"namespace {said} is none of project {project}, which has {', '.join(names)}")
    if cluster.namespace in names:
        return cluster.namespace
    if len(names) > 1:
        raise ValueError(f"project {project} has {', '.join(names)}: say which with -n NAMESPACE")
    return names[0]


def listed(project: Mapping[str, Any]) -> list[str]:
    """The namespaces in the spec of a GPUProject."""
    names = (project.get("spec") or {}).get("namespaces") or ()
    return [str(name) for name in names]
