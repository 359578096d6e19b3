"""What is held in memory: bytes that can be reached from parts of the operator, and its caches."""

import functools
import gc
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from gpu_scheduler.core.bounded import Bounded

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
    """Those of ``functools`` and the bounded ones, of our own modules."""
    return [
        each
        for each in gc.get_objects()
        if isinstance(each, Bounded)
        or (isinstance(each, _CACHE) and str(each.__module__).startswith("gpu_scheduler"))
    ]


def _below(each: object) -> list[object]:
    if isinstance(each, msgspec.Struct):  # the collector knows nothing of most of them
        return [getattr(each, field) for field in each.__struct_fields__]
    if isinstance(each, types.FunctionType):
        return list(each.__closure__ or ())
    return gc.get_referents(each)


def _globals() -> Iterator[object]:
    """What modules of ours keep by themselves."""
    for name, module in tuple(sys.modules.items()):
        if name.startswith("gpu_scheduler"):
            for value in tuple(vars(module).values()):
                if not isinstance(value, type | types.ModuleType | types.FunctionType | Callable):
                    yield value
