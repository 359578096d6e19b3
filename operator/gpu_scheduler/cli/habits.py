"""What people type who know kubectl, Run:ai or Kueue, in the words of this program. Pure.

A line that means a command of ours becomes that; one that means what is not done here is answered
with the command that does it. Nothing that is a command of ours changes its meaning.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

Typed = tuple[str, ...]

_JOBS = (
    *("job", "jobs", "gpujob", "gpujobs", "gj"),
    *("workload", "workloads", "wl", "training", "trainings", "workspace", "workspaces"),
)
_KINDS = (
    *("pod", "pods", "po", "deploy", "deployment", "deployments", "sts", "statefulset"),
    *("statefulsets", "rs", "replicaset", "replicasets", "ds", "daemonset", "daemonsets"),
    *("cj", "cronjob", "cronjobs"),
)
_PROJECTS = ("project", "projects", "gpuproject", "gpuprojects")
_QUEUES = ("clusterqueue", "clusterqueues", "cq", "localqueue", "localqueues", "lq")
_FLAVORS = ("resourceflavor", "resourceflavors", "rf", "gpuclass", "gpuclasses")
_NODES = ("node", "nodes", "no")
_GPUS = ("gpu", "gpus")

# Commands that take a job, behind which its kind may stand: describe job X.
_ON_A_JOB = (
    *("describe", "delete", "suspend", "resume", "retry", "logs", "exec", "bash", "attach"),
    *("port-forward", "why", "report", "advise"),
)
_SELECTED = ("--all", "-l", "--selector")  # behind a kind there need be no name: delete jobs --all

_OF_CLUSTERS = {  # options that may stand before the command; whether a value follows
    "-n": True,
    "--namespace": True,
    "-p": True,
    "--project": True,
    "--context": True,
    "--kubeconfig": True,
    "-A": False,
    "--all-namespaces": False,
}
_OF_TWO_WORDS = ("top", "project", "sweep", "config", "agent")


def _each(verbs: Sequence[str], nouns: Sequence[str], ours: Typed) -> dict[Typed, Typed]:
    return {(verb, noun): ours for verb in verbs for noun in nouns}


_SHOW = ("list", "ls", "get")
SAME: Mapping[Typed, Typed] = {
    ("ls",): ("list",),
    ("get",): ("list",),
    ("ps",): ("list",),
    ("jobs",): ("list",),
    ("nodes",): ("top", "nodes"),
    ("gpus",): ("top", "gpus"),
    ("status",): ("describe",),
    ("stop",): ("suspend",),
    ("shell",): ("bash",),
    ("ssh",): ("bash",),
    ("log",): ("logs",),
    ("rm",): ("delete",),
    **_each(_SHOW, (*_JOBS, "pods", "pod", "po"), ("list",)),
    **_each(_SHOW, _NODES, ("top", "nodes")),
    **_each(_SHOW, _GPUS, ("top", "gpus")),
    **_each(_SHOW, (*_PROJECTS, *_QUEUES), ("projects",)),
    **_each(_JOBS, ("list",), ("list",)),
    **{(noun, verb): (verb,) for noun in _JOBS for verb in _ON_A_JOB},
    **_each(_JOBS, ("stop",), ("suspend",)),
    **_each(("training", "workload", "job"), ("submit", "create"), ("submit",)),
    **_each(("workspace",), ("submit", "create"), ("submit", "--interactive")),
    **_each(("top",), ("node", "no"), ("top", "nodes")),
    **_each(("top",), ("job", "pod", "pods", "workload", "workloads"), ("top", "jobs")),
    **_each(("top",), ("gpu",), ("top", "gpus")),
    **_each(("top",), ("project",), ("top", "projects")),
    **_each(("project",), ("list", "ls"), ("projects",)),
    **_each(("project",), ("show", "get"), ("project", "describe")),
    **_each(("project",), ("set",), ("config", "project")),
    **_each(("describe",), (*_PROJECTS, *_QUEUES), ("project", "describe")),
    **_each(("create",), (*_PROJECTS, "clusterqueue", "cq"), ("project", "create")),
    **_each(("node", "nodes"), ("list",), ("top", "nodes")),
}
"""Leading words, and what they are here; the longest goes first."""

_APPLY = "kubectl apply -f FILE, or kubectl gpu submit -f FILE"
_TOGETHER = "pods that start together are roles of a file: kubectl gpu submit NAME -f FILE"
_SERVER = "label the pods of a Deployment: kubectl gpu render -f FILE --gpu 0.5"
_LOGIN = "the login is that of kubectl: kubectl config get-contexts"
_STOP = "kubectl gpu suspend JOB stops and keeps it, kubectl gpu delete JOB removes it"
_PROJECT = "kubectl edit gpuproject NAME"
_NODE = "kubectl describe node NAME; its GPUs: kubectl gpu top gpus"
INSTEAD: Mapping[Typed, str] = {
    ("apply",): _APPLY,
    ("create",): _APPLY,
    ("run",): "kubectl gpu submit NAME -i IMAGE -g 0.5",
    ("replace",): _APPLY,
    ("edit",): "kubectl edit gpujob NAME",
    ("update",): "kubectl edit gpujob NAME",
    ("patch",): "kubectl patch gpujob NAME --type=merge -p JSON",
    ("scale",): 'kubectl patch gpujob NAME --type=merge -p \'{"spec":{"parallelism":N}}\'',
    ("wait",): "kubectl wait gpujob/NAME --for=condition=Complete --timeout=1h",
    ("events",): "kubectl gpu describe JOB shows them; kubectl events --for gpujob/NAME",
    ("cp",): "kubectl cp FILE POD:FILE; the pod's name: kubectl gpu describe JOB",
    ("cancel",): _STOP,
    ("kill",): _STOP,
    ("login",): _LOGIN,
    ("logout",): _LOGIN,
    ("cluster",): _LOGIN,
    ("config", "cluster"): _LOGIN,
    ("config", "view"): "kubectl config view",
    ("describe", "node"): _NODE,
    ("describe", "nodes"): _NODE,
    ("cordon",): "kubectl cordon NODE",
    ("drain",): "kubectl drain NODE --ignore-daemonsets",
    ("delete", "project"): "kubectl delete gpuproject NAME",
    ("delete", "projects"): "kubectl delete gpuproject NAME",
    ("project", "delete"): "kubectl delete gpuproject NAME",
    ("project", "update"): _PROJECT,
    ("project", "edit"): _PROJECT,
    ("queue",): "kubectl gpu list --status Pending, and kubectl gpu why JOB",
    ("quota",): "kubectl gpu projects",
    ("inference",): _SERVER,
    ("submit-inference",): _SERVER,
    **{(f"submit-{kind}",): _TOGETHER for kind in ("mpi", "pytorch", "tf", "xgboost", "dist")},
    **{("training", kind): _TOGETHER for kind in ("mpi", "pytorch", "tf", "xgboost", "jax")},
    **{(verb, noun): "kubectl get gpuclasses" for verb in _SHOW for noun in _FLAVORS},
    ("upgrade",): "install the newer version as you installed this one; kubectl gpu version",
    ("diagnostics",): "kubectl gpu check",
}
"""Leading words of what is not done here, and the command that does it."""


class InsteadError(Exception):
    """What was typed is done by another program, which the message names."""


def translated(typed: Sequence[str]) -> list[str]:
    """The same in our words.

    Raises:
        InsteadError: another command does it.
    """
    options, rest = _before_the_command(typed)
    if not rest:
        return list(typed)
    if rest[0] == "help":
        return [*translated(rest[1:]), "--help"]
    rest = _in_our_words(rest)
    if len(rest) > 2 and rest[0] in _ON_A_JOB:
        rest = _without_its_kind(rest)
    at = 2 if rest[0] in _OF_TWO_WORDS and len(rest) > 1 else 1
    return [*rest[:at], *options, *rest[at:]]


def _in_our_words(rest: list[str]) -> list[str]:
    if rest[0] == "get" and len(rest) > 2 and rest[1] in _JOBS and not rest[2].startswith("-"):
        return ["describe", *rest[2:]]
    for length in (2, 1):
        words = tuple(rest[:length])
        if len(words) < length or (words[0] in _ON_A_JOB and len(rest) < 3):
            continue  # describe project: a job that is called so
        if words in SAME:
            return [*SAME[words], *rest[length:]]
        if words in INSTEAD:
            raise InsteadError(f"{' '.join(words)}: {INSTEAD[words]}")
    return rest


def _without_its_kind(rest: list[str]) -> list[str]:
    """``describe job X`` is ``describe X``, ``logs pod X`` is ``logs pod/X``."""
    verb, kind, name, *more = rest
    if name.startswith("-") and name not in _SELECTED:
        return rest  # it is a job that is called so
    if kind in _JOBS:
        return [verb, name, *more]
    if kind in _KINDS and not name.startswith("-"):
        return [verb, f"{kind}/{name}", *more]
    return rest


def _before_the_command(typed: Sequence[str]) -> tuple[list[str], list[str]]:
    """Options of the cluster that stand before the command, and the rest."""
    at = 0
    while at < len(typed):
        name, equals, _ = typed[at].partition("=")
        if name not in _OF_CLUSTERS:
            break
        at += 2 if _OF_CLUSTERS[name] and not equals else 1
    return list(typed[:at]), list(typed[at:])


def nearest(word: str, known: Sequence[str]) -> str:
    """The command that was meant; empty: none is near."""
    found = get_close_matches(word, known, n=1, cutoff=0.6)
    return found[0] if found else ""
