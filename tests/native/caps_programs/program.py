"""A program: steps, one after the other; the operations of a step run at once.

Written as JSON, a step a line, so that a failure can be kept and played again.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Op:
    """One thing that a process does.

    Attributes:
        what: its name, see ``model.RULES``.
        actor: the process, by the number that it got when it was made.
        thread: of the process; 0 is its first.
        made: number of what it makes: memory, a pool, a process; 0: nothing.
        of: number of what it is done to; 0: nothing.
        kib: how much memory.
    """

    what: str
    actor: int = 0
    thread: int = 0
    made: int = 0
    of: int = 0
    kib: int = 0

    def __str__(self) -> str:
        said = [f"{key} {value}" for key, value in asdict(self).items() if value and key != "what"]
        return f"{self.what}({', '.join(said)})"


Step = tuple[Op, ...]
Program = tuple[Step, ...]


def written(program: Program) -> str:
    """As text."""
    return "".join(
        json.dumps([{k: v for k, v in asdict(op).items() if v} for op in step]) + "\n"
        for step in program
    )


def read(lines: Iterable[str]) -> Program:
    """From text."""
    return tuple(tuple(Op(**op) for op in json.loads(line)) for line in lines if line.strip())
