"""How large a spec may be that is read: counted in its JSON, before anything is built of it.

An API server takes objects of 1.5 MB and more; as Python objects the emptiest of them are thirty
times as large. A pod template of 256 KiB has room for the longest script that one argument may be.
"""

import re

MOST_BYTES = 256 << 10
MOST_ELEMENTS = 20_000  # fields and entries of lists
ELEMENT_BYTES = 200  # of memory, beside its text

_TEXTS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
_MARKS = (b",", b"[", b"{")


def elements(text: bytes) -> int:
    """At most how many fields and entries JSON has; exact about whether they are too many."""
    most = _marks(text)
    return most if most <= MOST_ELEMENTS else _marks(_TEXTS.sub(b"", text))


def weight(text: bytes) -> int:
    """Bytes of memory that is taken by what a text says, about."""
    return len(text) + ELEMENT_BYTES * elements(text)


def too_large(text: bytes) -> str:
    """Why a spec is not read, by its JSON; empty = it is."""
    if len(text) > MOST_BYTES:
        return (
            f"spec: has {len(text)} bytes; at most {MOST_BYTES} are read: keep long scripts and "
            "data in a ConfigMap, a volume or the image"
        )
    if (count := elements(text)) > MOST_ELEMENTS:
        return (
            f"spec: has {count} fields and entries of lists; at most {MOST_ELEMENTS} are read: "
            "keep data in a ConfigMap, a volume or the image"
        )
    return ""


def _marks(text: bytes) -> int:
    return sum(map(text.count, _MARKS))
