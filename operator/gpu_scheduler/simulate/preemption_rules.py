"""The rules that a play can be played by, by name."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from gpu_scheduler.core.model.preemption_policy import FAIR, STRICT, PreemptionPolicy

RULES: Mapping[str, PreemptionPolicy] = {
    "fair": FAIR,
    "strict": STRICT,
    # Whoever loses least goes, as soon as anything is owed; only what a fair share takes has run
    # for five minutes.
    "at-once": PreemptionPolicy(0.0, 0.0, 300.0, 1.0),
    "never": PreemptionPolicy(inf, inf, inf, inf),
}


def policies_of(names: Sequence[str], changed: Mapping[str, Any]) -> dict[str, PreemptionPolicy]:
    """The rules by name; ``changed``: seconds that are given for ``fair``, None = as by default.

    Raises:
        ValueError: there are no such rules, or their seconds are given without them.
    """
    found = {}
    for name in names:
        if name not in RULES:
            raise ValueError(f"--preemption {name}: one of {', '.join(RULES)}")
        found[name] = RULES[name]
    given = {name: value for name, value in changed.items() if value is not None}
    if given and "fair" not in found:
        option = next(iter(given)).replace("_", "-")
        raise ValueError(f"--{option}: is for --preemption fair")
    if given:
        found["fair"] = replace(found["fair"], **given)
    return found
