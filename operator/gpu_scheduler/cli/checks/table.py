"""The table of all checks, in the order in which an installation is put right."""

from collections.abc import Callable, Sequence

from gpu_scheduler.cli.checks import budgets, installation, on_nodes, picking, policies
from gpu_scheduler.cli.checks.facts import CheckInputs, CheckState, Finding

CHECKS: Sequence[Callable[[CheckInputs], list[Finding]]] = (
    installation.crds,
    installation.operator,
    installation.leader,
    on_nodes.labels,
    on_nodes.agent,
    on_nodes.reports,
    on_nodes.runtime_class,
    policies.validating,
    policies.mutating,
    picking.picking,
    budgets.projects,
    budgets.quotas,
    installation.versions,
)


def findings(facts: CheckInputs) -> list[Finding]:
    """All of them."""
    return [finding for check in CHECKS for finding in check(facts)]


def complete(found: Sequence[Finding]) -> bool:
    """Whether nothing is missing."""
    return all(finding.state is not CheckState.MISSING for finding in found)
