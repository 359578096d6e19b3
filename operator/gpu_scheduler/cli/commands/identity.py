"""``kubectl gpu whoami`` and ``config project``: who one is for the cluster, and where."""

import click

from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.api.unstructured import part
from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.cli.lazy import CommandGroup
from gpu_scheduler.cli.shown import print_value, say
from gpu_scheduler.cli.where import ClusterOptions, of_cluster, of_whole_cluster

_VERSION = "authentication.k8s.io/v1"


@click.command("whoami")
@click.option("--output", "-o", type=click.Choice(["json", "yaml"]), help="For programs.")
@of_cluster
def whoami(where: ClusterOptions, output: str | None) -> None:
    """User and groups as the API server sees them, the namespace, and the project it belongs to."""
    with where.cluster() as cluster:
        review = {"apiVersion": _VERSION, "kind": "SelfSubjectReview"}
        answer = cluster.client.create(f"/apis/{_VERSION}/selfsubjectreviews", review)
        info = part(answer, "status", "userInfo")
        groups, project = [str(each) for each in info.get("groups") or ()], _project_of(cluster)
    user, namespace = str(info.get("username", "")), cluster.namespace
    if output is not None:
        said = {"user": user, "groups": groups, "namespace": namespace, "project": project}
        return print_value(said, output)
    say(f"User       {user}")
    say(f"Groups     {', '.join(groups) or '-'}")
    say(f"Namespace  {namespace}")
    say(f"Project    {'- (you may not read GPUProjects)' if project is None else project or '-'}")
    return None


def _project_of(cluster: ClusterAccess) -> str | None:
    """The project that pays for the namespace; empty: none does, None: it may not be read."""
    from gpu_scheduler.cli.project.names import listed
    from gpu_scheduler.kube import errors
    from gpu_scheduler.kube.paths import of_group

    try:
        there = list(cluster.client.items(of_group(GROUP, VERSION, "gpuprojects")))
    except errors.Forbidden:
        return None
    have_it = [body["metadata"] for body in there if cluster.namespace in listed(body)]
    ages = [(str(meta.get("creationTimestamp", "")), str(meta["name"])) for meta in have_it]
    return min(ages)[1] if ages else ""


@click.group("config", cls=CommandGroup, no_args_is_help=True)
def config() -> None:
    """Which project commands are about, as the kubeconfig has it."""


@config.command("project")
@click.argument("name")
@click.option("--namespace", "-n", metavar="NAME", help="Of a project that has several.")
@of_whole_cluster
def project(where: ClusterOptions, name: str, namespace: str | None) -> None:
    """Make a project's namespace that of the kubeconfig's context, for kubectl as well."""
    from gpu_scheduler.cli.one_pod.kubectl import hand_over
    from gpu_scheduler.cli.project.names import namespace_of

    with where.cluster() as cluster:
        found = namespace_of(cluster, name, namespace)
    context = [where.context] if where.context else ["--current"]
    hand_over(where, ["config", "set-context", *context, f"--namespace={found}"])
