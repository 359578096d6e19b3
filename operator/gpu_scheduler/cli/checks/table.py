"""All checks, in the order in which an installation is put right; the help is made from this.

A check is a function from ``CheckInputs`` to findings, imported when it runs.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpu_scheduler.cli.lazy import Place

if TYPE_CHECKING:
    from gpu_scheduler.cli.checks.facts import Check, CheckInputs


def _check(module: str, function: str, help: str) -> Place:
    return Place(f"gpu_scheduler.cli.checks.{module}", help, name=function)


CHECKS = {
    "CRDs": _check("installation", "crds", "There, served, and those of this program."),
    "operator": _check("installation", "operator", "Its Deployment is there and ready."),
    "leader": _check("installation", "leader", "Somebody leads: without, nothing is placed."),
    "node labels": _check("on_nodes", "labels", "Nodes with GPUs have what agents start by."),
    "agent": _check("on_nodes", "agent", "One runs on each node with a GPU."),
    "reports": _check("on_nodes", "reports", "Each agent has reported healthy GPUs, and goes on."),
    "RuntimeClass": _check("on_nodes", "runtime_class", "Those that the chart names are there."),
    "admission policies": _check("policies", "validating", "Others cannot write allocations."),
    "any-pod policy": _check("policies", "mutating", "Pods that ask by a label are made ours."),
    "pods that pick GPUs": _check("picking", "picking", "None does outside exempt namespaces."),
    "projects": _check("budgets", "projects", "There is one, and each can be used."),
    "ResourceQuotas": _check("budgets", "quotas", "None counts GPUs that jobs do not request."),
    "versions": _check("installation", "versions", "Program, operator, agent and CRDs agree."),
}


def findings(facts: "CheckInputs") -> "list[Check]":
    """Of all checks."""
    return [finding for check in CHECKS.values() for finding in check.load()(facts)]


def complete(found: "Sequence[Check]") -> bool:
    """Whether nothing is missing."""
    return all(finding.state.value != "MISSING" for finding in found)
