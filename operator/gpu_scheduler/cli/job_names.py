"""Names of jobs on the command line: whether one can be a name, and how the tab key completes them.

A name becomes a part of a path of the API server, where an empty one would mean all objects: so
every command checks before it asks.
"""

import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_KINDS = ("gpujob", "gpujobs", "gpujob.gpu-scheduler.io", "gpujobs.gpu-scheduler.io", "gj")
PATIENCE_SECONDS = 2.0  # of somebody who has pressed the tab key


def checked(name: str, what: str = "a name") -> str:
    """The name itself.

    Raises:
        ValueError: nothing in a cluster can be called so.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot be {what}: lower case letters, digits, '-' and '.', and a letter or "
            "digit at both ends"
        )
    return name


def checked_word(word: str) -> str:
    """NAME or KIND/NAME, as it was.

    Raises:
        ValueError: it is neither.
    """
    kind, slash, name = word.rpartition("/")
    if slash and not re.fullmatch(r"[A-Za-z][-A-Za-z0-9.]*", kind):
        raise ValueError(f"{word!r}: NAME, or KIND/NAME such as deploy/server")
    checked(name)
    return word


def job_name(word: str) -> tuple[str, str]:
    """The name of a GPUJob, and an empty text; or the name of something else, and its kind."""
    kind, _, name = checked_word(word).rpartition("/")
    return name, "" if not kind or kind.lower() in _KINDS else kind.lower()


def complete(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """GPUJobs of the namespace that begin so; nothing where the cluster cannot be asked."""
    from threading import Thread

    from click.shell_completion import CompletionItem

    found: list[tuple[str, str]] = []

    def ask() -> None:
        import contextlib

        with contextlib.suppress(BaseException):
            found.extend(_jobs(context))

    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(PATIENCE_SECONDS)
    said = context.params.get(parameter.name or "") or ()
    given = {said} if isinstance(said, str) else set(said)
    return [
        CompletionItem(name, help=help or None)
        for name, help in found
        if name.startswith(incomplete) and name not in given
    ]


def _jobs(context: click.Context) -> list[tuple[str, str]]:
    from gpu_scheduler.cli.finding import gpujob_path
    from gpu_scheduler.cli.where import ClusterOptions

    said = context.params
    where = ClusterOptions(said.get("namespace"), said.get("context"), said.get("kubeconfig"))
    with where.cluster() as cluster:
        items = cluster.client.get(gpujob_path(cluster.namespace), limit="500").get("items") or ()
    return [
        (str(each["metadata"]["name"]), str((each.get("status") or {}).get("phase") or ""))
        for each in items
    ]
