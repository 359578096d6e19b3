"""``kubectl gpu suspend``, ``resume``, ``retry`` and ``delete``."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import click

from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.cli.commands.completion import complete_job
from gpu_scheduler.cli.ending import Failed
from gpu_scheduler.cli.job_names import job_name
from gpu_scheduler.cli.options import gathered
from gpu_scheduler.cli.shown import note, say
from gpu_scheduler.cli.where import ClusterOptions, of_cluster

_KIND = "gpujob.gpu-scheduler.io"

_words = click.argument("words", nargs=-1, metavar="JOB...", shell_complete=complete_job)
_output = click.option("--output", "-o", type=click.Choice(["name"]), help="Names alone.")


@click.command("suspend")
@_words
@_output
@of_cluster
def suspend(where: ClusterOptions, words: Sequence[str], output: str | None) -> None:
    """Stop jobs and give their GPUs back; they keep their place in the cluster's memory.

    Pods are ended, and nothing is charged for it. kubectl gpu resume lets a job go on.
    """
    _suspend(where, words, output, wanted=True)


@click.command("resume")
@_words
@_output
@of_cluster
def resume(where: ClusterOptions, words: Sequence[str], output: str | None) -> None:
    """Let suspended jobs go on."""
    _suspend(where, words, output, wanted=False)


@click.command("retry")
@click.argument("word", metavar="JOB", shell_complete=complete_job)
@click.option("--yes", "-y", is_flag=True, help="Of a sweep: drop its results.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=120,
    show_default=True,
    help="Seconds until what it ran must be gone.",
)
@_output
@of_cluster
def retry(where: ClusterOptions, word: str, yes: bool, timeout: float, output: str | None) -> None:
    """Run a job that has ended once more: it is deleted and made again with the same spec.

    Labels and annotations stay, its status and Events do not; a sweep loses its results.
    """
    from gpu_scheduler.cli.again import run_again

    (name,) = _names([word], "retry")
    with where.cluster() as cluster:
        run_again(cluster, name, drop_results=yes, seconds=timeout, say=note)
    _done(name, "created", output)


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Which jobs are deleted, and what is waited for; names as of the options."""

    words: Sequence[str]
    all_jobs: bool
    selector: str | None
    wait: bool
    ignore_not_found: bool

    def check(self) -> None:
        """Refuse what may mean other jobs than somebody wants to lose.

        Raises:
            ValueError: not exactly one way to say which, or an empty selector.
        """
        if sum((bool(self.words), self.all_jobs, self.selector is not None)) != 1:
            raise ValueError("say which: JOB..., --all, or -l LABELS, and one of them alone")
        if self.selector is not None and not self.selector.strip():
            raise ValueError("-l is empty and would mean all jobs; for these write --all")


@click.command("delete")
@_words
@click.option("--all", "all_jobs", is_flag=True, help="All GPUJobs of the namespace.")
@click.option("--selector", "-l", metavar="LABELS", help="Those that have these labels.")
@click.option("--wait/--no-wait", default=True, help="Until they are gone. Default: --wait.")
@click.option("--ignore-not-found", is_flag=True, help="What is not there is no error.")
@_output
@of_cluster
@gathered("which", DeleteOptions)
def delete(where: ClusterOptions, which: DeleteOptions, output: str | None) -> None:
    """Delete GPUJobs and what they run."""
    from gpu_scheduler.cli.finding import gpujob_path
    from gpu_scheduler.kube import errors

    which.check()
    names = _names(which.words, "delete")
    with where.cluster() as cluster:
        if not which.words:
            found = cluster.client.items(gpujob_path(cluster.namespace), which.selector or "")
            names = [str(each["metadata"]["name"]) for each in found]
            if not names:
                note(f"No jobs in namespace {cluster.namespace}.")

        def one(name: str) -> bool:
            try:
                cluster.client.delete(gpujob_path(cluster.namespace, name))
            except errors.NotFound:
                if which.ignore_not_found or not which.words:
                    return False
                raise
            return True

        def then(gone: Sequence[str]) -> None:
            from gpu_scheduler.cli.again import wait_until_gone

            if which.wait:
                wait_until_gone(cluster, gone)

        _each(cluster, names, one, "deleted", output, then)


def _suspend(
    where: ClusterOptions, words: Sequence[str], output: str | None, *, wanted: bool
) -> None:
    from gpu_scheduler.cli.finding import gpujob_path

    if not words:
        raise ValueError("which job? JOB is missing")
    names = _names(words, "suspend" if wanted else "resume")
    done = "suspended" if wanted else "resumed"
    with where.cluster() as cluster:

        def one(name: str) -> bool:
            path = gpujob_path(cluster.namespace, name)
            job = cluster.client.get(path)
            phase = (job.get("status") or {}).get("phase")
            if phase in ("Succeeded", "Failed"):
                more = "" if wanted else f"; kubectl gpu retry {name} runs it once more"
                raise Failed(f"{name} has ended ({phase}) and cannot be {done}{more}")
            if bool((job.get("spec") or {}).get("suspend")) is wanted:
                state = "is suspended already" if wanted else "is not suspended"
                note(f"{_KIND}/{name} {state}")
                return False
            cluster.client.merge_patch(path, {"spec": {"suspend": wanted}})
            return True

        _each(cluster, names, one, done, output)


def _each(
    cluster: ClusterAccess,
    names: Iterable[str],
    one: Callable[[str], bool],
    done: str,
    output: str | None,
    then: Callable[[Sequence[str]], None] = lambda names: None,
) -> None:
    """Do it to each, whatever becomes of the others; ``then``, of those to which it was done.

    Raises:
        Failed: it could not be done to some.
    """
    from gpu_scheduler.cli.finding import no_job
    from gpu_scheduler.kube import errors

    did, wrong = list[str](), list[str]()
    for name in names:
        try:
            if one(name):
                did.append(name)
                _done(name, done, output)
        except errors.NotFound as error:
            if not error.details.name:
                raise
            wrong.append(str(no_job(cluster, name)))
        except Failed as error:
            wrong.append(str(error))
    then(did)
    if wrong:
        raise Failed("\n".join(wrong))


def _names(words: Sequence[str], verb: str) -> list[str]:
    names = list[str]()
    for word in words:
        name, kind = job_name(word)
        if kind:
            raise ValueError(f"{word} is no GPUJob; {_instead(verb, kind, name)}")
        names.append(name)
    return list(dict.fromkeys(names))


def _instead(verb: str, kind: str, name: str) -> str:
    """The command of kubectl that does it to something else."""
    word, scaled = (
        f"{kind}/{name}",
        kind.rstrip("s") in ("deploy", "deployment", "sts", "statefulset", "rs", "replicaset"),
    )
    if verb == "delete":
        return f"kubectl delete {word}"
    if verb == "retry":
        return (
            f"kubectl rollout restart {word}"
            if scaled
            else f"kubectl delete {word}, and make it again"
        )
    stops = verb == "suspend"
    if kind.rstrip("s") in ("job", "cronjob", "cj"):
        patch = f'{{"spec":{{"suspend":{str(stops).lower()}}}}}'
        return f"kubectl patch {word} --type=merge -p '{patch}'"
    if scaled:
        return f"kubectl scale {word} --replicas={'0' if stops else 'N'}"
    if kind.rstrip("s") in ("pod", "po"):
        return (
            f"a pod cannot be {'suspended' if stops else 'resumed'}; kubectl delete {word} ends it"
        )
    return f"kubectl scale {word} --replicas={'0' if stops else 'N'}, if it can be scaled"


def _done(name: str, done: str, output: str | None) -> None:
    say(f"{_KIND}/{name}" if output == "name" else f"{_KIND}/{name} {done}")
