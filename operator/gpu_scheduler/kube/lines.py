"""Splits a stream of chunks into lines, whatever the size of either.

A watch is one JSON document per line; a line may span many chunks and a chunk hold thousands of
lines. Pieces of an unfinished line are kept apart and joined once, so a huge line costs linear
time.
"""


class LineSplitter:
    """Feed it chunks, it gives back the lines that they complete."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """Lines completed by ``chunk``, without their newline; empty lines are dropped."""
        end = chunk.rfind(b"\n")
        if end < 0:
            self._pieces.append(chunk)
            return []
        lines = chunk[:end].split(b"\n")
        if self._pieces:
            self._pieces.append(lines[0])
            lines[0] = b"".join(self._pieces)
        rest = chunk[end + 1 :]
        self._pieces = [rest] if rest else []
        return [line for line in lines if line]
