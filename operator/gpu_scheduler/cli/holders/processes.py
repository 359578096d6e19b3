"""Which processes are on the GPUs: asked of the agents, by running a program in each one's pod.

So whoever may do that gets it, who owns the nodes, and nobody else: it names pods of all tenants.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from gpu_scheduler.api.names import COMPONENT_AGENT, LABEL_COMPONENT
from gpu_scheduler.api.unstructured import Body, name_of, text
from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.cli.ending import Failed
from gpu_scheduler.cli.printed_table import PrintedTable
from gpu_scheduler.cli.use.amounts import UNKNOWN, gib
from gpu_scheduler.kube import errors, paths

_ASK = ("python3", "-m", "gpu_scheduler.main", "agent", "processes")
_AT_ONCE = 8
_COLUMNS = ("GPU", "PID", "MEMORY", "NAMESPACE/POD", "CONTAINER", "COMMAND", "UUID|")
NOT_YOURS = (
    "whose processes are on the GPUs is shown to who may run programs in the pods of agents "
    "(create pods/exec in namespace {}), which you may not; your own work: kubectl gpu top jobs"
)
KubectlRunner = Callable[[Sequence[str]], bytes]
"""kubectl with these arguments: what it prints."""


@dataclass(frozen=True, slots=True)
class ProcessesView:
    """What the agents said.

    Attributes:
        rows: a process on a GPU each, with its node.
        missing: sentences about nodes that did not answer.
    """

    rows: Sequence[Body]
    missing: Sequence[str]

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {"processes": list(self.rows), "notShown": list(self.missing)}


def read(cluster: ClusterAccess, namespace: str, run: KubectlRunner) -> ProcessesView:
    """Ask all agents, some at once; ``namespace``: of the operator.

    Raises:
        Failed: there are none, or none may be asked.
        errors.ApiError: the cluster does not answer.
    """
    label = f"{LABEL_COMPONENT}={COMPONENT_AGENT}"
    try:
        pods = list(cluster.client.items(paths.core("pods", namespace), label))
    except errors.Forbidden:
        raise Failed(NOT_YOURS.format(namespace)) from None
    agents = {text(p, "spec", "nodeName"): name_of(p) for p in pods if _runs(p)}
    if not agents:
        raise Failed(f"no agent runs in namespace {namespace}: kubectl gpu check")
    rows: list[Body] = []
    missing: list[str] = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        said = pool.map(lambda agent: _ask(run, namespace, agent), agents.values())
        for node, found in sorted(zip(agents, said, strict=True), key=lambda each: each[0]):
            if isinstance(found, str):
                missing.append(f"{node}: {found}")
            else:
                rows += [{"node": node, **each} for each in found]
    if len(missing) == len(agents) and all("orbidden" in each for each in missing):
        raise Failed(NOT_YOURS.format(namespace))
    return ProcessesView(rows, missing)


def table(view: ProcessesView) -> PrintedTable:
    """A row for each process on a GPU."""
    return PrintedTable(_COLUMNS, [[*_cells(row)] for row in view.rows])


def _runs(pod: Body) -> bool:
    return text(pod, "status", "phase") == "Running"


def _ask(run: KubectlRunner, namespace: str, agent: str) -> list[Body] | str:
    """What one says, or why it does not."""
    where = [f"--namespace={namespace}", f"pod/{agent}", "--container=agent"]
    try:
        found = json.loads(run(["exec", *where, "--", *_ASK]))
    except Failed as error:
        return str(error)
    except ValueError:
        return "its agent says nothing that can be read"
    if not isinstance(found, list):
        return "its agent says nothing that can be read"
    return [each for each in found if isinstance(each, Mapping)]


def _cells(row: Body) -> Iterator[str]:
    memory, pod = row.get("memoryMiB"), text(row, "pod")
    yield f"{row.get('node')}/{row.get('gpu')}"
    yield str(row.get("pid"))
    yield gib(memory if isinstance(memory, int) else None)
    yield f"{text(row, 'namespace')}/{pod}" if pod else UNKNOWN
    yield text(row, "container") or UNKNOWN
    yield text(row, "command") or UNKNOWN
    yield text(row, "uuid")
