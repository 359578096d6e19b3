"""By which rules the operator of a cluster plans, as far as its Deployment shows them.

They are in the container's environment, as the chart writes it. Whoever may not read that, or has
installed the operator in another way, gets the defaults.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpu_scheduler.core.model.preemption_policy import FAIR, PreemptionPolicy
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.core.plan_input import RESERVE_AFTER_SECONDS
from gpu_scheduler.environment import SettingsError
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.command_client import CommandClient
from gpu_scheduler.runtime.common import settings

OPERATOR_NAMESPACE = "gpu-scheduler"
_PATH = f"/apis/apps/v1/namespaces/{OPERATOR_NAMESPACE}/deployments"
_SELECTOR = "app.kubernetes.io/name=gpu-scheduler"


@dataclass(frozen=True, slots=True)
class OperatorRules:
    """What of an operator's settings decides about plans."""

    preemption_policy: PreemptionPolicy = FAIR
    packing: Packing = Packing.FRAGMENTATION
    consolidation: bool = False
    reserve_after_seconds: float = RESERVE_AFTER_SECONDS


DEFAULT = OperatorRules()


def rules_of(client: CommandClient) -> OperatorRules:
    """The rules of a cluster's operator; the defaults where they cannot be read."""
    try:
        found = next(iter(client.items(_PATH, _SELECTOR)), None)
    except errors.ApiError:
        return DEFAULT
    return DEFAULT if found is None else from_deployment(found)


def from_deployment(body: Mapping[str, Any]) -> OperatorRules:
    """The rules of an operator, out of its Deployment."""
    try:
        said = settings.load(dict(_environment(body)))
    except SettingsError:  # of another version
        return DEFAULT
    return OperatorRules(
        said.preemption_policy,
        Packing(said.packing),
        said.consolidation,
        said.reservation_after_seconds,
    )


_ASKED = (
    *("PREEMPTION", "GUARANTEE_SECONDS", "PATIENCE_SECONDS", "MIN_RUNTIME_SECONDS"),
    *("SHARE_WINDOW_SECONDS", "PACKING", "CONSOLIDATION", "RESERVATION_AFTER_SECONDS"),
)


def _environment(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    template = (body.get("spec") or {}).get("template") or {}
    for container in (template.get("spec") or {}).get("containers") or ():
        for each in container.get("env") or ():
            name, value = each.get("name"), each.get("value")
            if isinstance(value, str) and name in {settings.PREFIX + key for key in _ASKED}:
                yield name, value
