"""How often the advice is right, kind by kind and by what its cause costs, as a table.

Of work that nothing should be said of, silence has to last: it is judged every five minutes of its
life. Of other work the headline at the end counts.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.unit.usage.advice.kinds import KINDS, MARKED, Draws, Ranges, Trace, WorkKind

from gpu_scheduler.usage.advice.rules import advise

SILENCE = "silence"
BUT_VAGUE = " without its cause"
STRENGTHS = {0.2: "below 20 %", 0.4: "20 to 40 %", 0.6: "40 to 60 %", 1.01: "60 % and more"}
"""Of its time that the cause costs, up to which."""
OUTCOMES = "right", "another", SILENCE
EVERY = 30  # looks: five minutes


@dataclass
class Confusion:
    """Headlines by kind, and which seeds came out wrong."""

    said: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    wrong: list[tuple[str, int, str]] = field(default_factory=list)
    traces: Counter[bool] = field(default_factory=Counter)
    by_strength: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
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
        lines.append("of work whose cause costs time, by how much of it:")
        for strength in STRENGTHS.values():
            told = self.by_strength[strength]
            counts = ", ".join(f"{outcome} {told[outcome]}" for outcome in OUTCOMES)
            lines.append(f"  {strength:14} {told.total():5}: {counts}")
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
            trace = kind.draw(rng)
            said = headline(kind, trace)
            if trace.cost is not None:
                table.by_strength[strength(trace.cost)][outcome(kind, said)] += 1
            table.said[kind.name][said] += 1
            table.traces[not kind.right] += 1
            if said not in (kind.right or {SILENCE}):
                table.wrong.append((kind.name, seed, said))
                table.false_alarms += not kind.right
                table.unsaid += said == SILENCE
    return table


def strength(cost: float) -> str:
    """In the words of the table."""
    return next(name for bound, name in STRENGTHS.items() if cost < bound)


def outcome(kind: WorkKind, said: str) -> str:
    """Of work that something should be said of."""
    return "right" if said in kind.right else SILENCE if said == SILENCE else "another"


def headline(kind: WorkKind, trace: Trace) -> str:
    """At the end; of work that should get none, the first that it ever gets."""
    moments = [len(trace.looks)]
    if not kind.right:
        moments = [*range(EVERY, len(trace.looks), EVERY), *moments]
    for looks in moments:
        found = advise(trace.work(looks))
        if found:
            vague = kind.names not in found[0].message
            return f"{found[0].rule}{BUT_VAGUE if vague else ''}"
    return SILENCE
