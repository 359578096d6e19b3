"""docs/reference/metrics.md: what operator and agent expose, asked of their collectors.

The operator's is asked with an operator that has nothing, so every family is there and empty.
"""

import asyncio
from collections.abc import Iterable
from typing import cast
from unittest.mock import AsyncMock, MagicMock

from prometheus_client.core import Metric

from gpu_scheduler.agent.metrics import AgentMetrics as OfAgent
from gpu_scheduler.kube.client import Client
from gpu_scheduler.runtime.common.pending import Pending
from gpu_scheduler.runtime.operator import Operator
from gpu_scheduler.usage.figures import ClusterUse
from gpu_scheduler.web.metrics import OperatorMetrics as OfOperator
from reference.markdown import Undescribed, code, entry

_HEAD = """# Metrics

Generated from what operator and agents expose (`make reference`), at `/metrics` of their ports
for health and metrics ([service.port](values.md#serviceport)). Units are seconds, bytes and
ratios of 0 to 1. Figures of the cluster come from the replica that leads.
"""
_SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
_Labels = tuple[str, ...]


def page() -> str:
    """The page as it should be."""
    parts = [_HEAD]
    for title, families in (("Operator", of_operator()), ("Agent", of_agent())):
        parts.append(f"## {title}\n")
        for family in families:
            if not family.documentation:
                raise Undescribed(f"{family.name} has no help; write it where it is made")
            parts.append(_entry(family, title))
    return "\n".join(parts)


def of_operator() -> list[Metric]:
    """The families of an operator that leads."""
    metrics = OfOperator(cast(Client, MagicMock()))
    metrics.operator = cast(Operator, MagicMock())
    metrics.operator.common.clock.now.return_value = 0.0  # type: ignore[attr-defined]
    metrics.dashboard = MagicMock()
    metrics.operator.common.pending = AsyncMock(return_value=Pending())  # type: ignore[misc]
    metrics.use = AsyncMock(return_value=ClusterUse())
    asyncio.run(metrics.look())
    return _sorted(metrics.registry.collect())


def of_agent() -> list[Metric]:
    """The families of an agent."""
    return _sorted(OfAgent("node").registry.collect())


def names(family: Metric) -> list[str]:
    """What its series are called."""
    return [f"{family.name}{each}" for each in _SUFFIXES.get(family.type, ("",))]


def heading(family: Metric) -> str:
    """What its entry is called; what operator and agent each have stands there twice."""
    return names(family)[0] if family.type == "counter" else family.name


def _sorted(families: Iterable[Metric]) -> list[Metric]:
    return sorted(families, key=lambda family: family.name)


def _entry(family: Metric, title: str) -> str:
    labels = ", ".join(map(code, _labels(family)))
    series, name = names(family), heading(family)
    shown = "" if series == [name] else f"series {', '.join(map(code, series))}"
    facts = [family.type, f"labels {labels}" if labels else "no labels", shown]
    level_name = name if title == "Operator" or name not in _both() else f"{name} of the agent"
    return entry(3, level_name, facts, family.documentation)


def _both() -> set[str]:
    """What operator and agent each have, so that every heading is there once."""
    one, other = ({n for f in each for n in names(f)} for each in (of_operator(), of_agent()))
    return one & other


def _labels(family: Metric) -> _Labels:
    declared: _Labels = getattr(family, "_labelnames", ())
    return tuple(declared)
