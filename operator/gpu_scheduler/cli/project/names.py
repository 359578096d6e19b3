"""``-p PROJECT``: which namespaces a project has."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.cli.ending import Failed
from gpu_scheduler.cli.job_names import checked
from gpu_scheduler.kube import paths

if TYPE_CHECKING:
    from gpu_scheduler.cli.where import ClusterAccess

project_option = click.option("--project", "-p", metavar="PROJECT", help="A GPUProject.")


def namespaces_of(cluster: "ClusterAccess", project: str) -> list[str]:
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


def listed(project: Mapping[str, Any]) -> list[str]:
    """The namespaces in the spec of a GPUProject."""
    names = (project.get("spec") or {}).get("namespaces") or ()
    return [str(name) for name in names]
