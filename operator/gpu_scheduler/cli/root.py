"""The program, and the one table of its commands: help, completion and reference are made of it."""

import click

from gpu_scheduler.cli.habits import translated
from gpu_scheduler.cli.lazy import LazyGroup, Place

_WORK, _LOOK, _TRY, _KEEP, SERVE = (
    "Work",
    "Look",
    "Ask the planner; nothing is changed",
    "Own a cluster",
    "Run by the chart",
)


def _place(name: str, help: str, section: str, command: str = "command") -> Place:
    return Place(f"gpu_scheduler.cli.commands.{name}", help, section, command)


COMMANDS = {
    "submit": _place("submit", "Create a GPUJob, or print it.", _WORK),
    "suspend": _place("changes", "Stop a job, and keep it.", _WORK, "suspend"),
    "resume": _place("changes", "Let a suspended job go on.", _WORK, "resume"),
    "retry": _place("changes", "Run a job that has ended once more.", _WORK, "retry"),
    "delete": _place("changes", "Delete jobs and what they run.", _WORK, "delete"),
    "logs": _place("pods", "What a job's pod has printed.", _WORK, "logs"),
    "exec": _place("pods", "Run a program in a job's pod.", _WORK, "exec_"),
    "bash": _place("pods", "A shell in a job's pod.", _WORK, "bash"),
    "attach": _place("pods", "The terminal of a job's program.", _WORK, "attach"),
    "port-forward": _place("pods", "A port of a job's pod on this machine.", _WORK, "port_forward"),
    "sweep": _place("sweep", "Look at hyperparameter searches.", _WORK),
    "list": _place("listing", "Jobs and pods that use GPUs or wait for some.", _LOOK),
    "why": _place("why", "Why something waits, and when it may start.", _LOOK),
    "describe": _place("describe", "All about one job.", _LOOK),
    "top": _place("top", "Who holds the GPUs and uses them: by device, node, job, project.", _LOOK),
    "report": _place("report", "What a job asked for, held and used.", _LOOK),
    "advise": _place("series", "What jobs could do better, with the command.", _LOOK, "advise"),
    "dashboard": _place("dashboard", "All of it in a browser, live.", _LOOK),
    "projects": _place("projects", "Quotas, and what of them is in use.", _LOOK, "projects"),
    "fit": _place("fit", "How many pods of a size would start now, and where.", _TRY),
    "simulate": _place("simulate", "What if: on this cluster.", _TRY),
    "render": _place("render", "Make pods that ask for a share of a GPU ours.", _TRY),
    "check": _place("check", "What the installation lacks, and what mends it.", _KEEP),
    "project": _place("projects", "Create a project, or show all about one.", _KEEP, "project"),
    "whoami": _place("identity", "Who the cluster takes you for.", _KEEP, "whoami"),
    "config": _place("identity", "Which project commands are about.", _KEEP, "config"),
    "idle": _place("series", "GPUs that are held and not used.", _KEEP, "idle"),
    "usage": _place("series", "Accounts of GPU-hours, which come later.", _KEEP, "usage"),
    "dump": _place("dump", "What the planner knows, as a file.", _KEEP),
    "version": _place("version", "Print the version.", _KEEP),
    "completion": _place("completion", "Completion for a shell.", _KEEP),
    "operator": _place("operator", "Run a replica of the operator.", SERVE),
    "agent": _place("agent", "Run this node's agent.", SERVE),
}


@click.group(
    "gpu-scheduler",
    cls=LazyGroup,
    places=COMMANDS,
    translated=translated,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
def app() -> None:
    """Shares of GPUs on Kubernetes: submit work, and ask why it waits and who holds the GPUs."""
