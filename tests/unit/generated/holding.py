"""What is held in memory: bytes that can be reached from parts of the operator, and its caches."""

import functools
import gc
import sys
import types
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

_NOT_FOLLOWED = (
    type,
    types.ModuleType,
    types.FrameType,
    types.CodeType,
    types.BuiltinFunctionType,
    weakref.ref,
    msgspec.json.Decoder,
    msgspec.json.Encoder,
)
_CACHE = type(functools.lru_cache(lambda: None))


def held_bytes(roots: Iterable[object], without: Iterable[object] = ()) -> int:
    """Bytes of all objects that can be reached from some, and from the caches of the process.

    ``without``: what is not counted, nor what only it holds. Frames of tasks are not looked into.
    """
    seen = {id(each) for each in without}
    left: list[object] = [*roots, *caches(), *_globals()]
    total = 0
    while left:
        each = left.pop()
        if id(each) in seen or isinstance(each, _NOT_FOLLOWED):
            continue
        seen.add(id(each))
        total += sys.getsizeof(each)
        left += _below(each)
    return total


def caches() -> list[Any]:
    """Those of ``functools`` in modules and classes of ours, and in what decorators made of them.

    They are looked for by name: what an operator has frozen, the collector does not list.
    """
    return [cache for each in _named() for cache in _in(each)]


def _named() -> Iterator[object]:
    for name, module in tuple(sys.modules.items()):
        if name.startswith("gpu_scheduler"):
            for value in tuple(vars(module).values()):
                yield value
                if isinstance(value, type):
                    yield from tuple(vars(value).values())


def _in(each: object) -> Iterator[object]:
    if isinstance(each, _CACHE):
        yield each
    for cell in getattr(each, "__closure__", None) or ():
        if isinstance(cell.cell_contents, _CACHE):
            yield cell.cell_contents


def _below(each: object) -> list[object]:
    if isinstance(each, msgspec.Struct):  # the collector knows nothing of most of them
        return [getattr(each, field) for field in each.__struct_fields__]
    if isinstance(each, types.FunctionType):
        return list(each.__closure__ or ())
    return gc.get_referents(each)


def _globals() -> Iterator[object]:
    """What modules of ours keep by themselves."""
    return (each for each in _named() if not callable(each))
