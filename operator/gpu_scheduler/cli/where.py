"""Which cluster and namespace a command is about, and the way there.

``@of_cluster`` gives a command the options that kubectl has for it, as one value. What is refused
by the API server, or gets no answer, ends as ``Failed``, in words that say what to do.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.cli.ending import Failed, one_line
from gpu_scheduler.cli.job_names import checked

if TYPE_CHECKING:
    from gpu_scheduler.kube.connection import Connection
    from gpu_scheduler.kube.errors import ApiError

F = TypeVar("F", bound=Callable[..., Any])

_NAMESPACE = click.option(
    "--namespace", "-n", metavar="NAME", help="Else that of the kubeconfig's context."
)
_PROJECT = click.option(
    "--project", "-p", "project", metavar="NAME", help="The namespace of this project."
)
operator_namespace_option = click.option(
    "--operator-namespace",
    default="gpu-scheduler",
    show_default=True,
    help="Where the operator runs.",
)


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """What was said on the command line; None: as the kubeconfig says.

    Attributes:
        namespace: of what is asked for.
        project: whose namespace it is.
        context: of the kubeconfig.
        kubeconfig: its file.
    """

    namespace: str | None = None
    context: str | None = None
    kubeconfig: str | None = None
    project: str | None = None

    def connection(self) -> "Connection":
        """The way to the API server.

        Raises:
            ConfigError: there is none.
        """
        import os

        from gpu_scheduler.kube import config

        environ = dict(os.environ)
        if self.kubeconfig:
            environ["KUBECONFIG"] = self.kubeconfig
        return config.load(environ, context=self.context, login=True)

    @contextmanager
    def cluster(
        self, usual: str | None = None, *, all_of_project: bool = False
    ) -> Iterator[ClusterAccess]:
        """The cluster, for as long as it is asked.

        Args:
            usual: the namespace where none is said; None: that of the context.
            all_of_project: the command asks for the namespaces of a project by itself.

        Raises:
            ValueError: no namespace can be called as was said, or the project has several.
            ConfigError: there is no way to it.
            Failed: it refuses, or does not answer.
        """
        from gpu_scheduler.kube.command_client import CommandClient
        from gpu_scheduler.kube.errors import ApiError

        if self.namespace:
            checked(self.namespace, "a namespace")
        connection = self.connection()
        with CommandClient(connection) as client:
            try:
                access = ClusterAccess(client, self.namespace or usual or connection.namespace)
                yield access if all_of_project else self._in_project(access)
            except ApiError as error:
                raise Failed(plainly(connection.server, error)) from None

    def _in_project(self, access: ClusterAccess) -> ClusterAccess:
        if self.project is None:
            return access
        from gpu_scheduler.cli.project.names import namespace_of

        found = namespace_of(access, self.project, self.namespace)
        return replace(access, namespace=found)

    def kubectl(self) -> list[str]:
        """The same for kubectl, but for the namespace."""
        said = {"--context": self.context, "--kubeconfig": self.kubeconfig}
        return [f"{name}={value}" for name, value in said.items() if value]


def _kubeconfig_options(command: F) -> F:
    file = click.option("--kubeconfig", metavar="FILE", help="Instead of $KUBECONFIG.")
    context = click.option(
        "--context", metavar="NAME", help="Of the kubeconfig; else its current one."
    )
    return context(file(command))


def of_cluster(command: F) -> F:
    """A command on a cluster: ``-n``, ``-p``, ``--context``, ``--kubeconfig``, as ``where``.

    What it raises ends it in one line (see ``ending``).
    """

    @wraps(command)
    def run(
        namespace: str | None,
        project: str | None,
        context: str | None,
        kubeconfig: str | None,
        **given: Any,
    ) -> None:
        with one_line():
            command(where=ClusterOptions(namespace, context, kubeconfig, project), **given)

    return _NAMESPACE(_PROJECT(_kubeconfig_options(run)))  # type: ignore[return-value]


def of_whole_cluster(command: F) -> F:
    """The same without ``-n``."""

    @wraps(command)
    def run(context: str | None, kubeconfig: str | None, **given: Any) -> None:
        with one_line():
            command(where=ClusterOptions(None, context, kubeconfig), **given)

    return _kubeconfig_options(run)  # type: ignore[return-value]


def plainly(server: str, error: "ApiError") -> str:
    """What the API server's no means to who typed a command."""
    from gpu_scheduler.kube import errors

    if isinstance(error, errors.Unauthorized):
        return f"{server} does not accept the credentials of the kubeconfig; log in again"
    if isinstance(error, errors.Unavailable):
        return (
            f"{server} does not answer ({error.message}); is the cluster up, and the context the "
            "right one? kubectl config get-contexts"
        )
    if isinstance(error, errors.NotFound) and not error.details.name:
        return (
            f"{server} does not know the scheduler's kinds: its CRDs are not installed there; "
            "helm install gpu-scheduler charts/gpu-scheduler, or another --context"
        )
    return f"{server}: {error.message}" if error.message else f"{server}: {error}"
