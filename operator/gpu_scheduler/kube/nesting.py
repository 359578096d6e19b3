"""JSON that is nested deeper than anybody reads, made readable: what is below reads as null.

An API server takes 10,000 levels and our decoders some hundreds. One object of a tenant's must not
keep a list, or a watch, from being read. Linear in the text; used where decoding has failed.
"""

import re

MOST_LEVELS = 300
_TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]')
_OPENS = frozenset(b"[{")
_CLOSES = frozenset(b"]}")


def shallow(text: bytes, most_levels: int = MOST_LEVELS) -> bytes:
    """The text with null in place of each value that begins below ``most_levels``."""
    kept: list[bytes] = []
    level = begin = 0
    for token in _TOKENS.finditer(text):
        mark = text[token.start()]
        if mark in _OPENS:
            level += 1
            if level == most_levels + 1:
                kept.append(text[begin : token.start()])
        elif mark in _CLOSES:
            if level == most_levels + 1:
                kept.append(b"null")
                begin = token.end()
            level -= 1
    kept.append(text[begin:])
    return b"".join(kept)
