"""``kubectl gpu submit``: flags, and where the job goes. What they mean: ``cli.submission.job``."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.cli.commands.completion import complete_job
from gpu_scheduler.cli.ending import Failed
from gpu_scheduler.cli.shown import say
from gpu_scheduler.cli.submission.dashes import BEHIND, PastedCommand
from gpu_scheduler.cli.submission.runai import SAME, refused_options
from gpu_scheduler.cli.where import ClusterOptions, of_cluster

if TYPE_CHECKING:
    from gpu_scheduler.cli.submission.job import SubmitOptions

F = TypeVar("F", bound=Callable[..., Any])

_PULL = {"always": "Always", "ifnotpresent": "IfNotPresent", "never": "Never"}

_OPTIONS = (
    click.option("--name", "name_flag", metavar="NAME", help="The same as NAME.", hidden=True),
    click.option("--image", "-i", metavar="IMAGE", help="Image of the container."),
    click.option(
        "--gpu",
        "-g",
        metavar="N",
        help="GPUs of each pod: a share of one (0.5), or whole ones (2).",
    ),
    click.option(
        "--gpu-memory",
        metavar="8Gi",
        help="Device memory on one GPU, instead of --gpu.",
    ),
    click.option(
        "--gpu-devices",
        type=int,
        metavar="N",
        help="That share or memory on each of so many GPUs of a node.",
    ),
    click.option("--gpu-devices-request", type=int, hidden=True),
    click.option("--gpu-request-type", type=click.Choice(["portion", "memory"]), hidden=True),
    click.option("--gpu-models", metavar="A100,H100", help="Any of these models."),
    click.option("--shape", metavar="NAME", help="A shape of a GPUClass, instead of --gpu."),
    click.option("--interactive", is_flag=True, help="Goes first, and is kept inside the quota."),
    click.option("--preemptible", is_flag=True, hidden=True),
    click.option("--priority", type=int, metavar="0..100", help="Higher goes first. Default 50."),
    click.option("--parallelism", type=int, metavar="N", help="Pods at once, at most. Default 1."),
    click.option("--completions", type=int, metavar="N", help="Pods in all, or trials."),
    click.option(
        "--retries",
        type=int,
        metavar="N",
        help="How often each pod may fail. Default 3.",
    ),
    click.option("--time-limit", metavar="2h", help="A pod that runs longer has failed."),
    click.option(
        "--ttl-after-finish",
        "ttl",
        metavar="1d",
        help="Delete the job so long after its end.",
    ),
    click.option(
        "--param",
        "parameters",
        multiple=True,
        metavar="NAME=V,V",
        help="A sweep: one pod for each combination of the values.",
    ),
    click.option(
        "--volume",
        "-v",
        "volumes",
        multiple=True,
        metavar="SRC:DST[:ro]",
        help="A folder of the node, or a claim, at DST.",
    ),
    click.option(
        "--pvc",
        "claims",
        multiple=True,
        metavar="CLAIM:DST[:ro]",
        help="A PersistentVolumeClaim at DST.",
    ),
    click.option(
        "--env",
        "-e",
        multiple=True,
        metavar="K=V",
        help="An environment variable.",
    ),
    click.option("--working-dir", metavar="DIR", help="Where the program starts."),
    click.option(
        "--image-pull-policy",
        "pull_policy",
        type=click.Choice(list(_PULL), case_sensitive=False),
        help="When to pull the image.",
    ),
    click.option("--cpu", metavar="4", help="CPUs of each pod."),
    click.option("--memory", metavar="16Gi", help="Memory of each pod."),
    click.option("--cpu-limit", metavar="8", help="Most CPUs."),
    click.option("--memory-limit", metavar="32Gi", help="Most memory."),
    click.option("--large-shm", is_flag=True, help="/dev/shm in memory, for data loaders."),
    click.option("--host-ipc", is_flag=True, help="Share the node's IPC namespace."),
    click.option("--host-network", is_flag=True, help="Share the node's network."),
    click.option("--run-as-uid", "user", type=click.IntRange(0, 2**31 - 1), metavar="UID"),
    click.option("--run-as-gid", "group", type=click.IntRange(0, 2**31 - 1), metavar="GID"),
    click.option("--run-as-user", is_flag=True, help="With your own user and group numbers."),
    click.option("--label", "-l", "labels", multiple=True, metavar="K=V", help="Of the GPUJob."),
    click.option("--annotation", "annotations", multiple=True, metavar="K=V", help="The same."),
    click.option("--job-dir", metavar="DIR", help="Passed on: --job-dir DIR, and $JOB_DIR."),
    click.option(
        "--command",
        "is_command",
        is_flag=True,
        help="What follows -- is the program, not its arguments alone.",
    ),
    click.option(
        "--filename",
        "-f",
        "file",
        type=click.Path(),
        metavar="FILE",
        help="A GPUJob, - is standard input; flags beat it.",
    ),
    click.option(
        "--from",
        "source",
        metavar="JOB",
        shell_complete=complete_job,
        help="A GPUJob of the namespace, running or ended, as a beginning; flags beat it.",
    ),
    click.option("--attach", is_flag=True, help="Wait for the first pod and follow its output."),
    click.option(
        "--dry-run",
        is_flag=False,
        flag_value="client",
        default="none",
        type=click.Choice(["none", "client", "server"]),
        help="client: send nothing; server: judge and keep nothing.",
    ),
    click.option("--output", "-o", type=click.Choice(["yaml", "json", "name"])),
)


def _options(command: F) -> F:
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


@click.command("submit", cls=PastedCommand, other_names=SAME)
@click.argument("name", required=False, metavar="NAME")
@click.argument("more", nargs=-1, metavar="[-- ARGUMENTS]")
@_options
@refused_options
@of_cluster
def command(
    where: ClusterOptions,
    file: str | None,
    source: str | None,
    dry_run: str,
    output: str | None,
    **flags: Any,
) -> None:
    """Create a GPUJob, or print it. What follows -- is the program's, whatever it looks like.

    \b
    kubectl gpu submit train -i trainer:1 -g 0.5 -- --epochs 10
    kubectl gpu submit lr -i trainer:1 -g 0.25 --param lr=0.1,0.01 --parallelism 2
    kubectl gpu submit big -f job.yaml -g 2 --dry-run=client -o yaml
    kubectl gpu submit train-2 --from train -g 0.4
    """  # noqa: D301 - click takes a backspace for: leave these lines as they are
    from gpu_scheduler.cli.submission.job import job_of

    if flags["more"]:
        raise ValueError(
            f"{flags['more'][0]!r} is one name too many; what the program gets stands behind --"
        )
    attach = flags.pop("attach")
    if attach and dry_run != "none":
        raise ValueError("--attach follows a pod, and with --dry-run there will be none")
    behind = click.get_current_context().meta.get(BEHIND)
    options = _submit_options(flags, where.namespace, behind)
    if source is not None:
        body = _from(where, source, file, options)
    else:
        body = job_of(options, None if file is None else _read(file))
    if dry_run == "client":
        if where.project is not None and not where.namespace:
            raise ValueError(
                "--project is looked up in the cluster, which --dry-run=client does not ask: "
                "say -n NAMESPACE as well"
            )
        _print(body, output, "created (dry run)")
        return
    with where.cluster(body["metadata"].get("namespace")) as cluster:
        namespace = cluster.namespace
        made = _create(cluster, namespace, body, dry_run=dry_run == "server")
    _print(made, output, "created (server dry run)" if dry_run == "server" else "created")
    if attach:
        from gpu_scheduler.cli.submission.attach import attach as follow

        follow(where, namespace, str(made["metadata"]["name"]))


def _submit_options(
    flags: Mapping[str, Any], namespace: str | None, behind: Any
) -> "SubmitOptions":
    import os

    from gpu_scheduler.cli.submission.flag_values import claim, volume
    from gpu_scheduler.cli.submission.job import SubmitOptions

    said = dict(flags)
    name, flag = said.pop("name"), said.pop("name_flag")
    if name and flag and name != flag:
        raise ValueError(f"is the job called {name} or {flag}? NAME and --name differ")
    if said.pop("preemptible") and said["interactive"]:
        raise ValueError(
            "--preemptible: an interactive job is kept inside its quota; leave out --interactive "
            "for one that others may preempt"
        )
    devices, kind = said.pop("gpu_devices_request"), said.pop("gpu_request_type")
    if kind == "memory" and said["gpu"] is not None:
        raise ValueError("--gpu-request-type memory goes with --gpu-memory-request")
    if devices is not None:
        if said["gpu"] is None and said["gpu_memory"] is None:
            said["gpu"] = str(devices)
        elif devices != 1 and said["gpu_devices"] is None:
            said["gpu_devices"] = devices
    if said.pop("run_as_user"):
        mine = {"user": os.getuid(), "group": os.getgid()}
        said.update({part: number for part, number in mine.items() if said[part] is None})
    said["mounts"] = [*map(volume, said.pop("volumes")), *map(claim, said.pop("claims"))]
    policy = said["pull_policy"]
    said["pull_policy"] = None if policy is None else _PULL[policy.lower()]
    del said["more"]
    return SubmitOptions(
        name=name or flag or "", namespace=namespace or "", arguments=behind, **said
    )


def _from(
    where: ClusterOptions, source: str, file: str | None, options: "SubmitOptions"
) -> dict[str, Any]:
    """A job of the cluster as the flags change it; which fields that are goes to stderr.

    Raises:
        ValueError: there is a file as well, or the new one is to have the same name.
        Failed: there is no such job.
    """
    from gpu_scheduler.cli.finding import get, gpujob_path
    from gpu_scheduler.cli.job_names import job_name
    from gpu_scheduler.cli.shown import note
    from gpu_scheduler.cli.submission.copied import copied, what_changed
    from gpu_scheduler.cli.submission.job import job_of

    name, kind = job_name(source)
    if kind:
        raise ValueError(f"--from {source}: a GPUJob is copied, and this is none")
    if file is not None:
        raise ValueError("--from and -f both say what to begin with; say one of them")
    if name == options.name:
        raise ValueError(
            f"--from {name}: the new job needs another NAME; kubectl gpu retry {name} runs the "
            "same one once more"
        )
    with where.cluster() as cluster:
        job = get(cluster, gpujob_path(cluster.namespace, name))
        if job is None:
            raise Failed(
                f"there is no GPUJob called {name} in namespace {cluster.namespace}, and of a "
                "deleted one no spec is kept; kubectl gpu list shows what there is"
            )
    body = job_of(options, copied(job))
    note(what_changed(job, body))
    return body


def _read(file: str) -> dict[str, Any]:
    """The GPUJob of a file; - is standard input."""
    import sys
    from pathlib import Path

    from gpu_scheduler.api.names import GROUP
    from gpu_scheduler.sweeps.commands.manifest import documents

    source = "standard input" if file == "-" else file
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise ValueError(f"{source}: {error}") from None
    found = [each for each in documents(text, source) if each is not None]
    if len(found) != 1:
        raise ValueError(f"{source} has {len(found)} documents; one GPUJob is submitted at a time")
    body = found[0]
    if not isinstance(body, dict) or not isinstance(body.get("metadata") or {}, dict):
        raise ValueError(f"{source} is no object of Kubernetes")
    kind, version = body.get("kind"), str(body.get("apiVersion", ""))
    if kind != "GPUJob" or version.partition("/")[0] != GROUP:
        raise ValueError(
            f"{source} has a {kind} of {version or 'no version'}, not a GPUJob of {GROUP}; "
            f"kubectl apply -f {file} makes other kinds"
        )
    return body


def _create(
    cluster: ClusterAccess, namespace: str, body: dict[str, Any], *, dry_run: bool
) -> dict[str, Any]:
    from gpu_scheduler.cli.finding import gpujob_path
    from gpu_scheduler.cli.job_names import checked
    from gpu_scheduler.kube import errors

    name = body["metadata"]["name"]
    body = {**body, "metadata": {**body["metadata"], "namespace": namespace}}
    path = gpujob_path(checked(namespace, "a namespace"))
    try:
        return cluster.client.create(path, body, dry_run=dry_run, strict=True)
    except errors.Conflict as error:
        if error.reason != "AlreadyExists":
            raise
        raise Failed(
            f"there is a GPUJob called {name} in namespace {namespace} already; another name, or "
            f"kubectl gpu delete {name} -n {namespace}, or kubectl gpu retry {name} -n {namespace}"
        ) from None


def _print(body: Mapping[str, Any], output: str | None, done: str) -> None:
    from gpu_scheduler.cli.shown import name_of, print_value

    if output in ("yaml", "json"):
        meta = {k: v for k, v in body["metadata"].items() if k != "managedFields"}
        print_value({**body, "metadata": meta}, output)
    elif output == "name":
        say(name_of(body))
    else:
        say(f"{name_of(body)} {done}")
