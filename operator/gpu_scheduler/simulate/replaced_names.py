"""A dump whose names stand for others, so that it can be shown to strangers.

All text is replaced but a vocabulary (``core.vocabulary``): keys of labels, models of GPUs,
operators. Equal names are replaced alike, and the new ones are in the order of the old ones, since
order decides between what is equal otherwise; so the plan is the same up to the names.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from gpu_scheduler.runtime.dump import Dump, written

T = TypeVar("T")


def replaced(dump: Dump) -> Dump:
    """The same with other names."""
    found = set[str]()

    def note(name: str) -> str:
        found.add(name)
        return name

    _each(dump, Dump, note)
    names, before = {"": ""}, ""
    compared = b"".join(written(dump))
    numbers = b'"operator":"Gt"' in compared or b'"operator":"Lt"' in compared
    for rank, name in enumerate(sorted(found - {""})):
        if numbers and name.isdecimal():  # its value matters, so others go on from it
            names[name], before = name, name
        else:
            names[name] = f"{before}{'-' if numbers else ''}n{rank:0{len(str(len(found)))}}"
    return _each(dump, Dump, names.__getitem__)


def _each(value: T, hint: Any, of: Callable[[str], str]) -> T:
    """A value of a type with ``of`` of all names in it."""
    new: Any = value
    kind: Any = type(value)
    args = [arg for arg in get_args(hint) if arg is not NoneType]
    if len(args) == 1 and NoneType in get_args(hint):
        return _each(value, args[0], of)
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        new = value if get_origin(hint) is Annotated else of(value)
    elif is_dataclass(value) or hasattr(value, "_fields"):
        hints = _hints(kind)
        new = kind(**{name: _each(getattr(value, name), hints[name], of) for name in hints})
    elif isinstance(value, Mapping):
        key, each = args
        new = {_each(k, key, of): _each(v, each, of) for k, v in value.items()}
    elif isinstance(value, Sequence | AbstractSet):
        alike = len(args) == 1 or args[-1] is ...
        hints_of = [args[0]] * len(value) if alike else args
        new = kind(_each(v, h, of) for v, h in zip(value, hints_of, strict=True))
    return new  # type: ignore[no-any-return]


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)
