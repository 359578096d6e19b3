"""Programs by seed: what they use is mostly there, as if every call of theirs had succeeded."""

import random

from tests.native.caps_programs.model import MIB, Model
from tests.native.caps_programs.program import Op, Program, Step

STEPS = 30
MOST_ACTORS, THREADS = 4, 3
AT_ONCE = 0.15  # of the steps have several operations
WEIGHTS = {
    "spawn": 3,
    "fork": 2,
    "exec": 0.3,
    "exit": 1,
    "kill": 2,
    "reopen": 0.5,
    "retain": 6,
    "reset": 1,
    "context": 2,
    "destroy_context": 2,
    "alloc": 10,
    "alloc_in": 3,
    "managed": 3,
    "pitch": 2,
    "async": 4,
    "pool": 3,
    "alloc_from": 5,
    "trim": 2,
    "destroy_pool": 2,
    "free": 9,
    "array": 3,
    "destroy_array": 3,
    "graph": 3,
    "launch": 4,
    "free_graph": 3,
    "destroy_graph": 2,
    "trim_graphs": 2,
    "module": 3,
    "unload": 2,
    "vmm": 3,
    "exportable": 5,
    "map": 4,
    "unmap": 3,
    "keep": 2,
    "release": 4,
    "export": 5,
    "close": 3,
    "import": 7,
    "open": 3,
    "close_ipc": 2,
    "sync": 2,
    "info": 3,
}
SIZED = (
    "alloc",
    "alloc_in",
    "managed",
    "pitch",
    "async",
    "alloc_from",
    "array",
    "graph",
    "vmm",
    "exportable",
)
MAKES = (*SIZED, "context", "pool", "module", "open")
BEGINS = ("spawn", "fork")


class Generator:
    """Makes one program."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._model = Model(exports_stay=True)
        self._next = 0

    def program(self) -> Program:
        """Of about ``STEPS`` steps; it begins with a process that has a context."""
        first = self._spawn()
        steps: list[Step] = [(first,), (Op("retain", first.made),)]
        for step in steps:
            self._model.did(step[0])
        while len(steps) < STEPS:
            if step := self._step():
                steps.append(step)
        return tuple(steps)

    def _step(self) -> Step:
        many = self._chance.randint(2, 4) if self._chance.random() < AT_ONCE else 1
        found: list[Op] = []
        for _ in range(many):
            op = self._op()
            if op is None:
                continue
            if all(self._apart(each, op) for each in found):
                found.append(op)
        for op in found:
            if self._model.allows(op):
                self._model.did(op)
        return tuple(found)

    def _apart(self, first: Op, op: Op) -> bool:
        """Whether what comes of two does not depend on which is done first.

        But a process may be killed in whatever it does.
        """
        if op.of and op.of in (first.of, first.made):
            return False
        for one, other in ((first, op), (op, first)):
            if other.what in OF_OTHERS and self._model.things[other.of].home == one.actor:
                return False
        if first.actor != op.actor:
            return True
        ends = first.what in ENDS or (op.what in ENDS and op.what != "kill")
        return not ends and first.thread != op.thread

    def _spawn(self) -> Op:
        self._next += 1
        return Op("spawn", 0, made=self._next)

    def _op(self) -> Op | None:
        what = self._chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        living = list(self._model.processes)
        if what in BEGINS and len(living) >= MOST_ACTORS:
            return None
        if what == "spawn" or not living:
            return self._spawn()
        actor = self._chance.choice(living)
        candidates = [Op(what, actor)]
        if what in OF:
            candidates = [Op(what, actor, of=number) for number in self._model.things if number > 0]
        made = 0
        if what in MAKES or what == "fork":
            self._next += 1
            made = self._next
        thread = 0 if what in ALONE else self._chance.randrange(THREADS)
        kib = self._kib() if what in SIZED else self._chance.choice([0, 65536])
        self._chance.shuffle(candidates)
        for each in candidates:
            if what == "import":
                kib = self._model.things[each.of].size >> 10
            op = Op(what, actor, thread, made, each.of, kib)
            if self._model.allows(op):
                return op
        return None

    def _kib(self) -> int:
        kind = self._chance.random()
        if kind < 0.2:
            return self._chance.randint(1, 1023)
        if kind < 0.85:
            return self._chance.randint(1, 96) * MIB >> 10
        return self._chance.randint(96, 512) * MIB >> 10


ENDS = ("kill", "exit", "exec", "reopen", "reset", "fork")
OF_OTHERS = ("import", "open")
ALONE = (*ENDS, "spawn", "retain", "context", "destroy_context")
OF = (
    "destroy_context",
    "alloc_in",
    "alloc_from",
    "trim",
    "destroy_pool",
    "free",
    "destroy_array",
    "launch",
    "free_graph",
    "destroy_graph",
    "unload",
    "map",
    "unmap",
    "keep",
    "release",
    "export",
    "close",
    "import",
    "open",
    "close_ipc",
)
"""What is done to something."""


def program(seed: int) -> Program:
    """The program of a seed."""
    return Generator(seed).program()
