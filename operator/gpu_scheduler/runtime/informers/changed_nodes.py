"""Nodes of which something is other than it was when their agents were told last."""

import asyncio


class ChangedNodes:
    """Names of nodes, each once; empty: all nodes."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}
        self.some = asyncio.Event()

    def add(self, node: str) -> None:
        """Something of a node is other than it was; empty: of all nodes."""
        self._names[node] = None
        self.some.set()

    def take(self) -> tuple[str, ...]:
        """All of them."""
        taken = tuple(self._names)
        self._names.clear()
        self.some.clear()
        return taken
