"""A failing program without all that it fails without."""

from collections.abc import Callable

from tests.native.caps_programs.program import Program

Fails = Callable[[Program], bool]
MOST_TRIES = 300


def minimised(program: Program, fails: Fails) -> Program | None:
    """The shortest that was found by leaving out steps, then operations; None: it does not fail."""
    if not fails(program):
        return None
    tries, size = 0, max(1, len(program) // 2)
    while tries < MOST_TRIES:
        at, shorter = 0, False
        while at < len(program) and tries < MOST_TRIES:
            tried = program[:at] + program[at + size :]
            tries += 1
            if tried and fails(tried):
                program, shorter = tried, True
            else:
                at += size
        if size == 1 and not shorter:
            break
        size = max(1, size // 2)
    return _fewer_at_once(program, fails)


def _fewer_at_once(program: Program, fails: Fails) -> Program:
    for at, step in enumerate(program):
        for op in step:
            rest = tuple(each for each in program[at] if each != op)
            tried = (*program[:at], rest, *program[at + 1 :])
            if rest and fails(tried):
                program = tried
    return program
