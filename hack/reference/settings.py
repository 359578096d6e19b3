"""docs/reference/settings.md: the environment variables of operator and agent.

Out of the models that read them, and which values of the chart set them.
"""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gpu_scheduler.agent import settings as agent
from gpu_scheduler.runtime.common import settings as operator
from reference.chart_environment import Source, sources
from reference.json_schema import limits, type_of
from reference.markdown import Undescribed, code, entry

_HEAD = """# Settings

Generated from the models that read them (`make reference`): environment variables of operator and
agent. The chart sets most of them by [its values](values.md); the rest can be set with `extraEnv`
and `agent.extraEnv`. One with the prefix that is not listed here ends the start, and so does a
value that cannot be used.
"""


def page() -> str:
    """The page as it should be."""
    parts = [_HEAD]
    for title, model, prefix, template in (
        ("Operator", operator.OperatorSettings, operator.PREFIX, "deployment.yaml"),
        ("Agent", agent.AgentSettings, agent.PREFIX, "agent-daemonset.yaml"),
    ):
        by_name, extra = sources(template), f"{'agent.' if title == 'Agent' else ''}extraEnv"
        parts.append(f"## {title}\n")
        for name, field, schema in variables(model, prefix):
            if not field.description:
                raise Undescribed(f"{name} has no description; write it at the field of its model")
            facts = [type_of(schema), _default(field), *limits(schema)]
            note = _set_by(by_name.get(name), extra)
            parts.append(entry(3, name, facts, field.description, [note]))
    return "\n".join(parts)


def variables(
    model: type[BaseModel], prefix: str
) -> Iterator[tuple[str, FieldInfo, dict[str, Any]]]:
    """Name, field and JSON schema of each variable."""
    schema = model.model_json_schema()["properties"]
    for name, field in model.model_fields.items():
        yield f"{prefix}{name}".upper(), field, schema[name]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "default: the host's name"  # what both loaders put there
    value = field.default
    if isinstance(value, tuple):
        value = ",".join(map(str, value))
    if isinstance(value, bool):
        value = str(value).lower()
    if isinstance(value, float):
        value = f"{value:g}"
    return f"default {code(value)}" if value != "" else "default: empty"


def _set_by(source: Source | None, extra: str) -> str:
    if source is None:
        return f"The chart leaves it at its default; set it with {_link(extra)}."
    asked = ", ".join(_link(each) for each in source.only_with if each != "agent.enabled")
    only = f", only with {asked}" if asked else ""
    if source.values:
        return f"Set by {', '.join(map(_link, source.values))}{only}."
    of = "" if source.fixed.isdigit() else "the pod's "
    return f"The chart sets it to {of}{code(source.fixed)}{only}."


def _link(value: str) -> str:
    return f"[{value}](values.md#{value.replace('.', '').lower()})"
