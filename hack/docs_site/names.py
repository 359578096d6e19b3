"""The names that people look for: each must be the title of a section, for search to lead to it.

Printed for `make docs-look`, which types them into the search.
"""

import json

from gpu_scheduler.agent import settings as agent
from gpu_scheduler.runtime.common import settings as operator
from reference import crds, metrics, reasons, settings, values


def searched() -> list[str]:
    """Reasons of states, fields of our kinds, values of the chart, settings and metrics."""
    kinds = [(crds.schema_of(crd), crd["spec"]["names"]["singular"]) for crd in crds.kinds()]
    families = (*metrics.of_operator(), *metrics.of_agent())
    found = [
        *reasons.words(),
        *(path for schema, kind in kinds for path, *_ in crds.fields(schema, kind)),
        *(value.path for value in values.values() if not value.is_section),
        *(name for name, *_ in settings.variables(operator.OperatorSettings, operator.PREFIX)),
        *(name for name, *_ in settings.variables(agent.AgentSettings, agent.PREFIX)),
        *(metrics.heading(family) for family in families),
    ]
    return list(dict.fromkeys(map(str, found)))


if __name__ == "__main__":
    print(json.dumps(searched()))
