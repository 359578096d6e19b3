"""How often the advice is right, kind by kind, as a table.

Of work that nothing should be said of, silence has to last: it is judged every five minutes of its
life. Of other work the headline at the end counts.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.unit.usage.advice.kinds import KINDS, MARKED, Draws, Ranges, Trace, WorkKind

from gpu_scheduler.usage.advice.rules import advise

SILENCE = "silence"
EVERY = 30  # looks: five minutes


@dataclass
class Confusion:
    """Headlines by kind, and which seeds came out wrong."""

    said: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    wrong: list[tuple[str, int, str]] = field(default_factory=list)
    traces: Counter[bool] = field(default_factory=Counter)
    false_alarms: int = 0
    unsaid: int = 0

    @property
    def right(self) -> float:
        """Share of all traces."""
        return 1 - len(self.wrong) / self.traces.total()

    @property
    def silent(self) -> float:
        """Share of the traces of which nothing should be said."""
        return 1 - self.false_alarms / self.traces[True]

    def __str__(self) -> str:
        lines = [
            f"{kind:30} {', '.join(f'{rule} {count}' for rule, count in said.most_common())}"
            for kind, said in self.said.items()
        ]
        lines += [f"wrong: {kind}, seed {seed}: {rule}" for kind, seed, rule in self.wrong]
        return "\n".join(
            [
                *lines,
                f"right {self.right:.1%}; silent where that is right {self.silent:.1%}; "
                f"unsaid {self.unsaid / self.traces.total():.1%}",
            ]
        )


def confusion(seeds: Iterable[int], ranges: Ranges = MARKED) -> Confusion:
    """Of every kind with each of these seeds."""
    table, numbers = Confusion(), list(seeds)
    for kind in KINDS:
        for seed in numbers:
            rng = Draws(f"{kind.name} {seed}")
            rng.ranges = ranges
            said = headline(kind, kind.draw(rng))
            table.said[kind.name][said] += 1
            table.traces[not kind.right] += 1
            if said not in (kind.right or {SILENCE}):
                table.wrong.append((kind.name, seed, said))
                table.false_alarms += not kind.right
                table.unsaid += said == SILENCE
    return table


def headline(kind: WorkKind, trace: Trace) -> str:
    """At the end; of work that should get none, the first that it ever gets."""
    moments = [len(trace.looks)]
    if not kind.right:
        moments = [*range(EVERY, len(trace.looks), EVERY), *moments]
    for looks in moments:
        found = advise(trace.work(looks))
        if found:
            return str(found[0].rule)
    return SILENCE
