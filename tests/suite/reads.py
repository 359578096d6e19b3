"""Which files of the repository the code that runs here opens, and which module opened them.

An audit hook sees each ``open``, also those at import. A digest that is said to cover all that a
test reads is held against it: see unchanged.py.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.suite.imports import ROOT

_LISTINGS = ("os.listdir", "os.scandir")
_PROCESSES = ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.fork")
_CODE = tuple(f"{ROOT / top}/" for top in ("operator", "hack", "tools", "tests"))
_SUITE = f"{Path(__file__).parent}/"
# What these read decides nothing: the lines of a traceback, and the constants of whatever modules
# are loaded, of which hypothesis makes some of its examples.
_DECIDE_NOTHING = ("linecache", "hypothesis.internal.constants_ast")


@dataclass(frozen=True, slots=True)
class Read:
    """A module of ours that opened or listed something of ours, or started a process.

    ``what`` is relative to the root; None is a process, of which nobody sees what it reads.
    """

    module: Path
    what: Path | None


_seen: dict[Read, None] = {}
_watching = False


def seen() -> list[Read]:
    """All of them since the process began to watch, the first ones first."""
    return list(_seen)


@contextmanager
def processes_forgotten() -> Iterator[None]:
    """What is started within is not held against anybody: a test that runs each time starts it."""
    before = _seen.copy()
    try:
        yield
    finally:
        for read in _seen.keys() - before.keys():
            if read.what is None:
                del _seen[read]


def watch() -> None:
    """Begin to see; there is no end, as Python's audit hooks have none."""
    global _watching
    if not _watching:
        _watching = True
        sys.addaudithook(_look)


def _look(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" or (event in _LISTINGS and not _is_import()):
        if (what := _of_ours(arguments[0])) and (module := _by_whom()):
            _seen[Read(module, what)] = None
    elif event in _PROCESSES and (module := _by_whom()):
        _seen[Read(module, None)] = None


def _is_import() -> bool:
    """Whether a folder is listed to find a module, of which the digest knows by its name.

    Or an installed package, which is none of ours.
    """
    module = str(sys._getframe(2).f_globals.get("__name__"))
    return module.startswith(("_frozen_importlib", "importlib."))


def _of_ours(opened: object) -> Path | None:
    """The file or folder, relative to the root; of byte code its source."""
    if not isinstance(opened, str | Path):
        return None
    path = Path(opened)
    if not path.is_absolute():
        path = Path.cwd() / path
    if not path.is_relative_to(ROOT):
        return None
    if path.parent.name == "__pycache__":  # pytest has names of its own for what it rewrote
        path = path.parent.parent / f"{path.name.partition('.')[0]}.py"
    found = path.relative_to(ROOT)
    # Neither the environment nor what tools keep between runs is part of the sources.
    return None if not found.parts or found.parts[0].startswith(".") else found


def _by_whom() -> Path | None:
    """The innermost file of ours on the stack, but for these here and for what decides nothing."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if frame.f_globals.get("__name__") in _DECIDE_NOTHING:
            return None
        if name.startswith(_CODE):
            return None if name.startswith(_SUITE) else Path(name).relative_to(ROOT)
        frame = frame.f_back  # type: ignore[assignment]
    return None
