"""``kubectl gpu logs``, ``exec``, ``bash``, ``port-forward``: choose the pod; kubectl does it."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpu_scheduler.cli.commands.completion import complete_job
from gpu_scheduler.cli.job_names import checked_word
from gpu_scheduler.cli.options import gathered
from gpu_scheduler.cli.shown import say
from gpu_scheduler.cli.where import ClusterOptions, of_cluster

if TYPE_CHECKING:
    from gpu_scheduler.cli.one_pod.choosing import Wanted

F = TypeVar("F", bound=Callable[..., Any])

_SHELL = "command -v bash >/dev/null 2>&1 && exec bash || exec sh"
_NUMBER = click.IntRange(0, 2**31 - 1)


_LOG_FLAGS = {"follow": "-f", "timestamps": "--timestamps", "previous": "--previous"}


@dataclass(frozen=True, slots=True)
class PodOptions:
    """Which container of which pod; names as of the options."""

    word: str
    trial: int | None
    role: str | None
    index: int | None
    container: str | None


def _pod_options(command: F) -> F:
    command = gathered("pod", PodOptions)(command)
    for add in (
        click.option("--container", "-c", metavar="NAME", help="Else the one with the GPU."),
        click.option("--index", type=_NUMBER, metavar="N", help="Number of the pod."),
        click.option("--role", metavar="NAME", help="Of a job with roles."),
        click.option("--trial", type=_NUMBER, metavar="N", help="Of a sweep."),
        click.argument("word", metavar="JOB|POD|KIND/NAME", shell_complete=complete_job),
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
    where: ClusterOptions, pod: PodOptions, tail: int | None, since: str | None, **flags: bool
) -> None:
    """What a job's pod has printed; of a pod that has ended as long as it is there."""
    more = [flag for name, flag in _LOG_FLAGS.items() if flags[name]]
    more += [f"--tail={tail}"] if tail is not None else []
    more += [f"--since={since}"] if since is not None else []
    _on_pod(where, pod, "logs", more, ended=True)


@click.command("exec")
@_pod_options
@click.option("--stdin", "-i", is_flag=True, help="Pass standard input on.")
@click.option("--tty", "-t", is_flag=True, help="Give it a terminal.")
@click.argument("program", nargs=-1, required=True, metavar="-- PROGRAM [ARGUMENTS]")
@of_cluster
def exec_(
    where: ClusterOptions, pod: PodOptions, stdin: bool, tty: bool, program: tuple[str, ...]
) -> None:
    """Run a program in a job's pod."""
    more = [flag for flag, on in (("-i", stdin), ("-t", tty)) if on]
    _on_pod(where, pod, "exec", more, behind=["--", *program])


@click.command("bash")
@_pod_options
@of_cluster
def bash(where: ClusterOptions, pod: PodOptions) -> None:
    """A shell in a job's pod: bash, or sh where the image has no bash."""
    more = ["-i", "-t"] if sys.stdin.isatty() else ["-i"]
    _on_pod(where, pod, "exec", more, behind=["--", "sh", "-c", _SHELL])


@click.command("attach")
@_pod_options
@of_cluster
def attach(where: ClusterOptions, pod: PodOptions) -> None:
    """The terminal of the program that a job's pod runs; its output alone: kubectl gpu logs -f."""
    more = ["-i", "-t"] if sys.stdin.isatty() else ["-i"]
    _on_pod(where, pod, "attach", more)


@click.command("port-forward")
@_pod_options
@click.argument("ports", nargs=-1, metavar="[HERE:]THERE...")
@click.option("--port", "named", multiple=True, hidden=True)
@click.option("--address", metavar="ADDRESS", help="Of this machine. Default: localhost.")
@of_cluster
def port_forward(
    where: ClusterOptions,
    pod: PodOptions,
    ports: tuple[str, ...],
    named: tuple[str, ...],
    address: str | None,
) -> None:
    """A port of a job's pod on this machine, for a notebook or a dashboard."""
    if not (ports or named):
        raise ValueError("which port? kubectl gpu port-forward JOB 8888, or 9000:8888")
    if pod.container is not None:
        raise ValueError("--container: the containers of a pod have their ports in common")
    more = [f"--address={address}"] if address is not None else []
    _on_pod(where, pod, "port-forward", more, behind=[*ports, *named])


def _on_pod(
    where: ClusterOptions,
    pod: PodOptions,
    verb: str,
    more: Sequence[str],
    *,
    behind: Sequence[str] = (),
    ended: bool = False,
) -> None:
    from gpu_scheduler.cli.one_pod.choosing import Wanted
    from gpu_scheduler.cli.one_pod.kubectl import hand_over

    wanted = Wanted(pod.trial, pod.role, pod.index, ended=ended)
    namespace, name = _pod(where, checked_word(pod.word), wanted)
    of = [f"--container={pod.container}"] if pod.container is not None else []
    hand_over(where, [verb, f"pod/{name}", f"--namespace={namespace}", *of, *more, *behind])


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
