"""Options of ``simulate`` about the planner: packing, and rules of preemption.

What plays traces and workloads (``tests/perf``) takes several of them, to compare.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar

import click

from gpu_scheduler.core.model.preemption_policy import PreemptionPolicy
from gpu_scheduler.core.packing.policy import OFFERED, Packing
from gpu_scheduler.simulate.preemption_rules import RULES, policies_of

F = TypeVar("F", bound=Callable[..., Any])
_SECONDS = {
    "guarantee_seconds": click.FloatRange(0, 86400),
    "patience_seconds": click.FloatRange(0, 86400),
    "min_runtime_seconds": click.FloatRange(0, 604800),
    "share_window_seconds": click.FloatRange(1, 86400),
}


@dataclass(frozen=True, slots=True)
class EvictionOptions:
    """When pods are evicted, as said on the command line.

    Attributes:
        names: of rules, several with commas between.
        seconds: of ``fair`` ones by name; None: as by default.
    """

    names: Sequence[str] = ()
    seconds: Mapping[str, float | None] = field(default_factory=dict)

    def policies(self) -> dict[str, PreemptionPolicy]:
        """The rules by name.

        Raises:
            ValueError: there are no such rules, or seconds are given without ``fair`` ones.
        """
        seconds = dict(self.seconds)
        seconds["window_seconds"] = seconds.pop("share_window_seconds", None)
        return policies_of(listed(self.names), seconds)


def rules_options(*default: str) -> Callable[[F], F]:
    """``--preemption`` and the seconds of fair rules, given as ``rules``; by default these rules.

    With several defaults, several may be given.
    """
    several = len(default) > 1

    def decorate(command: F) -> F:
        @wraps(command)
        def run(preemption: Sequence[str] | str, **given: Any) -> None:
            seconds = {name: given.pop(name) for name in _SECONDS}
            names = [preemption] if isinstance(preemption, str) else preemption
            command(rules=EvictionOptions(names, seconds), **given)

        found: Any = run
        for name, kind in reversed(_SECONDS.items()):
            option = f"--{name.replace('_', '-')}"
            found = click.option(option, type=kind, help="Of fair rules, as in the chart.")(found)
        more = "; several are compared, with commas between." if several else "."
        return click.option(  # type: ignore[no-any-return]
            "--preemption",
            multiple=several,
            default=default if several else default[0],
            show_default=True,
            help=f"{one_of(RULES)}{more}",
        )(found)

    return decorate


def policy_option(*, several: bool = False) -> Callable[[F], F]:
    """``--policy``, given as ``policy``: see ``packings``."""
    more = "; several are compared, with commas between." if several else "."
    return click.option(
        "--policy",
        multiple=several,
        default=OFFERED[:1] if several else OFFERED[0],
        show_default=True,
        help=f"How GPUs are chosen: {one_of(Packing)}{more}",
    )


def packings(names: Sequence[str]) -> list[Packing]:
    """The policies of these names, each once.

    Raises:
        ValueError: there is none of a name.
    """
    for name in listed(names):
        if name not in list(Packing):
            raise ValueError(f"--policy {name}: one of {', '.join(Packing)}")
    return [Packing(name) for name in dict.fromkeys(listed(names))]


def one_of(names: Iterable[str]) -> str:
    """Those of a table, in words: a, b or c."""
    *others, last = names
    return f"{', '.join(others)} or {last}"


def listed(values: Sequence[str]) -> list[str]:
    """Values that were given one by one, or with commas between."""
    return [part.strip() for value in values for part in value.split(",")]
