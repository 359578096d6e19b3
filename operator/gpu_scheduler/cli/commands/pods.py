"""``kubectl gpu logs``, ``exec``, ``bash``, ``port-forward``: choose the pod; kubectl does it."""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpu_scheduler.cli.job_names import checked_word, complete
from gpu_scheduler.cli.shown import say
from gpu_scheduler.cli.where import ClusterOptions, of_cluster

if TYPE_CHECKING:
    from gpu_scheduler.cli.one_pod.choosing import Wanted

F = TypeVar("F", bound=Callable[..., Any])

_SHELL = "command -v bash >/dev/null 2>&1 && exec bash || exec sh"
_NUMBER = click.IntRange(0, 2**31 - 1)


def _pod_options(command: F) -> F:
    for add in (
        click.option("--container", "-c", metavar="NAME", help="Else the one with the GPU."),
        click.option("--index", type=_NUMBER, metavar="N", help="Number of the pod."),
        click.option("--role", metavar="NAME", help="Of a job with roles."),
        click.option("--trial", type=_NUMBER, metavar="N", help="Of a sweep."),
        click.argument("word", metavar="JOB|POD|KIND/NAME", shell_complete=complete),
    ):
        command = add(command)
    return command


@click.command("logs")
@_pod_options
@click.option("--follow", "-f", is_flag=True, help="Go on until it ends.")
@click.option("--tail", type=click.IntRange(-1), metavar="N", help="The last lines alone.")
@click.option("--since", metavar="5m", help="What is newer alone.")
@click.option("--timestamps", is_flag=True, help="When each line was printed.")
@click.option("--previous", is_flag=True, help="Of the container before the last restart.")
@of_cluster
def logs(
    where: ClusterOptions,
    word: str,
    follow: bool,
    tail: int | None,
    since: str | None,
    timestamps: bool,
    previous: bool,
    container: str | None,
    **chosen: Any,
) -> None:
    """What a job's pod has printed; of a pod that has ended as long as it is there."""
    said = {"-f": follow, "--timestamps": timestamps, "--previous": previous}
    more = [flag for flag, on in said.items() if on]
    more += [f"--tail={tail}"] if tail is not None else []
    more += [f"--since={since}"] if since is not None else []
    _on_pod(where, word, chosen, "logs", container, more, ended=True)


@click.command("exec")
@_pod_options
@click.option("--stdin", "-i", is_flag=True, help="Pass standard input on.")
@click.option("--tty", "-t", is_flag=True, help="Give it a terminal.")
@click.argument("program", nargs=-1, required=True, metavar="-- PROGRAM [ARGUMENTS]")
@of_cluster
def exec_(
    where: ClusterOptions,
    word: str,
    stdin: bool,
    tty: bool,
    program: tuple[str, ...],
    container: str | None,
    **chosen: Any,
) -> None:
    """Run a program in a job's pod."""
    more = [flag for flag, on in (("-i", stdin), ("-t", tty)) if on]
    _on_pod(where, word, chosen, "exec", container, more, behind=["--", *program])


@click.command("bash")
@_pod_options
@of_cluster
def bash(where: ClusterOptions, word: str, container: str | None, **chosen: Any) -> None:
    """A shell in a job's pod: bash, or sh where the image has no bash."""
    more = ["-i", "-t"] if sys.stdin.isatty() else ["-i"]
    _on_pod(where, word, chosen, "exec", container, more, behind=["--", "sh", "-c", _SHELL])


@click.command("port-forward")
@_pod_options
@click.argument("ports", nargs=-1, required=True, metavar="[HERE:]THERE...")
@click.option("--address", metavar="ADDRESS", help="Of this machine. Default: localhost.")
@of_cluster
def port_forward(
    where: ClusterOptions,
    word: str,
    ports: tuple[str, ...],
    address: str | None,
    container: str | None,
    **chosen: Any,
) -> None:
    """A port of a job's pod on this machine, for a notebook or a dashboard."""
    if container is not None:
        raise ValueError("--container: the containers of a pod have their ports in common")
    more = [f"--address={address}"] if address is not None else []
    _on_pod(where, word, chosen, "port-forward", None, more, behind=ports)


def _on_pod(
    where: ClusterOptions,
    word: str,
    chosen: dict[str, Any],
    verb: str,
    container: str | None,
    more: Sequence[str],
    *,
    behind: Sequence[str] = (),
    ended: bool = False,
) -> None:
    from gpu_scheduler.cli.one_pod.choosing import Wanted
    from gpu_scheduler.cli.one_pod.kubectl import hand_over

    namespace, pod = _pod(where, checked_word(word), Wanted(**chosen, ended=ended))
    of = [f"--container={container}"] if container is not None else []
    hand_over(where, [verb, f"pod/{pod}", f"--namespace={namespace}", *of, *more, *behind])


def _pod(where: ClusterOptions, word: str, wanted: "Wanted") -> tuple[str, str]:
    """Namespace and name of the pod that is meant; says which, where several would do."""
    from gpu_scheduler.cli.finding import find
    from gpu_scheduler.cli.one_pod.choosing import choose
    from gpu_scheduler.cli.one_pod.no_pod import why_none

    with where.cluster() as cluster:
        found = find(cluster, word)
        pod, fit = choose(found.pods, wanted)
        if pod is None:
            raise why_none(cluster, found, wanted)
    name = str(pod["metadata"]["name"])
    if len(fit) > 1 and not str(wanted):
        has = f"{word} has {len(fit)} pods, this is {name}"
        say(f"{has}; {_others(fit)} names another", err=True)
    return found.namespace, name


def _others(pods: Sequence[Any]) -> str:
    from gpu_scheduler.cli.one_pod.choosing import index_of, role_of, trial_of

    if any(trial_of(pod) is not None for pod in pods):
        return "--trial N"
    if any(role_of(pod) for pod in pods):
        return "--role NAME --index N"
    return "--index N" if any(index_of(pod) is not None for pod in pods) else "a pod's name"
