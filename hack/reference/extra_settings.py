"""The chart's files/settings.yaml: settings that are left to ``extraEnv``, with what they may be.

By it a release with another one, or with a value that ends the start, is refused in words
(templates/_values.tpl).
"""

import re
from collections.abc import Mapping
from typing import Any

import yaml

from gpu_scheduler.agent import settings as agent
from gpu_scheduler.runtime.common import settings as operator
from reference.chart_environment import sources
from reference.settings import variables

_HEAD = """# Generated (make reference): settings of operator and agent that no value of the chart
# sets, with what each may be. templates/_values.tpl checks extraEnv by it.
"""
_KINDS: Mapping[str, tuple[str, str]] = {
    "number": (r"^-?[0-9]+([.][0-9]+)?(e[-+]?[0-9]+)?$", "a number"),
    "integer": (r"^-?[0-9]+$", "a whole number"),
    "boolean": (r"^(true|false|1|0|yes|no|on|off)$", "true or false"),
}


def file() -> str:
    """The file as it should be."""
    found = {
        "operator": _of(operator.OperatorSettings, operator.PREFIX, "deployment.yaml"),
        "agent": _of(agent.AgentSettings, agent.PREFIX, "agent-daemonset.yaml"),
    }
    return _HEAD + yaml.safe_dump(found, sort_keys=True, width=100)


def _of(model: Any, prefix: str, template: str) -> dict[str, dict[str, str]]:
    by_chart = sources(template)
    return {
        name: _kind(schema) for name, _, schema in variables(model, prefix) if name not in by_chart
    }


def _kind(schema: Mapping[str, Any]) -> dict[str, str]:
    if "enum" in schema:
        values = [str(each) for each in schema["enum"]]
        pattern, words = f"^({'|'.join(map(re.escape, values))})$", " or ".join(values)
    else:
        pattern, words = _KINDS.get(str(schema.get("type")), ("", "text"))
    return {"pattern": pattern, "words": words}
