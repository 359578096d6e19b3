"""Completion: for a shell, of names of jobs, and what kubectl itself asks for a plugin.

kubectl completes plugins by a program ``kubectl_complete-gpu``: it gets the words behind ``kubectl
gpu``, the last of which is not finished, and prints candidates and a line ``:NUMBER`` that says
what else the shell may do (Cobra's ShellCompDirective).
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_PROGRAMS = {"kubectl-gpu": "_KUBECTL_GPU_COMPLETE", "gpu-scheduler": "_GPU_SCHEDULER_COMPLETE"}
PATIENCE_SECONDS = 2.0  # of somebody who has pressed the tab key
_FILES, _NO_FILES, _FOLDERS = 0, 4, 16  # ShellCompDirectiveDefault, …NoFileComp, …FilterDirs


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.option(
    "--program",
    type=click.Choice(list(_PROGRAMS)),
    help="What is completed. Default: the program that is called.",
)
@click.pass_context
def command(context: click.Context, shell: str, program: str | None) -> None:
    """Completion for a shell; kubectl gpu itself is completed by kubectl's own.

    \b
    source <(kubectl gpu completion bash)
    kubectl gpu completion zsh > "${fpath[1]}/_kubectl-gpu"
    kubectl gpu completion fish > ~/.config/fish/completions/kubectl-gpu.fish
    """  # noqa: D301 - click takes a backspace for: leave these lines as they are
    from click.shell_completion import get_completion_class

    root = context.find_root()
    called = "gpu-scheduler" if root.info_name == "gpu-scheduler" else "kubectl-gpu"
    name = program or called
    found = get_completion_class(shell)
    assert found is not None, "one of the shells above"
    made = found(root.command, {}, name, _PROGRAMS[name])
    click.echo(made.source_template % made.source_vars())


def candidates(app: click.Command, words: Sequence[str]) -> Iterator[str]:
    """The lines that kubectl gets.

    Args:
        app: the program.
        words: behind ``kubectl gpu``; the last one is what stands at the cursor.
    """
    from click.shell_completion import ShellComplete

    *before, last = words or [""]
    completion = ShellComplete(app, {}, "kubectl gpu", "_KUBECTL_GPU_COMPLETE")
    directive = _NO_FILES
    for item in completion.get_completions(list(before), last):
        if item.type in ("file", "dir"):
            directive = _FILES if item.type == "file" else _FOLDERS
        else:
            help = " ".join((item.help or "").split())
            yield f"{item.value}\t{help}" if help else str(item.value)
    yield f":{directive}"


def complete_job(
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
