"""An object that an agent writes whole and may not read: its GPUNode, its Lease.

All agents share one account, and neither RBAC nor a policy can let each read, or patch, its own
object alone: the answer to a patch that fails shows the object (docs/adr/0035). So it is replaced,
which needs its current version: that of our own last answer, or else the one that the operator
tells. A version that the server has refused is not tried again.
"""

from typing import Any, Protocol

from gpu_scheduler.kube import errors

Obj = dict[str, Any]


class Writer(Protocol):
    """The part of the client that is needed."""

    async def create(
        self, path: str, body: object, type: type[Obj], *, timeout_seconds: float = ...
    ) -> Obj:
        """Make an object."""

    async def replace(
        self,
        path: str,
        body: object,
        type: type[Obj],
        *,
        dry_run: bool = ...,
        timeout_seconds: float = ...,
    ) -> Obj:
        """Replace an object."""


class OwnObject:
    """One object at a time in a collection, under one name."""

    def __init__(self, client: Writer, collection: str, name: str) -> None:
        self._client = client
        self._collection = collection
        self.path = f"{collection}/{name}"
        self.version = ""
        """resourceVersion as far as known; empty: not at all, or there is no object."""
        self._refused = ""

    def offer(self, version: str) -> bool:
        """The operator has seen this version (empty: none); True when somebody else wrote it."""
        if not version or version == self._refused or _number(version) <= _number(self.version):
            return False
        known, self.version = self.version, version
        return bool(known)

    def forget(self) -> None:
        """It is gone: the next write makes it."""
        self._refused = self.version
        self.version = ""

    async def create(self, body: Obj, timeout_seconds: float) -> Obj:
        """Make it.

        Raises:
            Conflict: it is there, and its version is not known.
        """
        try:
            made = await self._client.create(
                self._collection, body, dict, timeout_seconds=timeout_seconds
            )
        except errors.Conflict:
            self._refused = ""  # it is not gone after all
            raise
        self.version = str(made["metadata"]["resourceVersion"])
        return made

    async def replace(
        self, body: Obj, timeout_seconds: float, *, subresource: str = "", dry_run: bool = False
    ) -> Obj:
        """Replace it as it was when its version was learnt.

        Raises:
            Conflict: it has changed since; the version is forgotten.
            NotFound: it is gone; the same.
        """
        path = f"{self.path}/{subresource}" if subresource else self.path
        version = self.version
        whole = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
        try:
            answer = await self._client.replace(
                path, whole, dict, dry_run=dry_run, timeout_seconds=timeout_seconds
            )
        except (errors.Conflict, errors.NotFound):
            if self.version == version:
                self.forget()
            raise
        if not dry_run:
            self.version = str(answer["metadata"]["resourceVersion"])
        return answer


def _number(version: str) -> int:
    return int(version) if version.isascii() and version.isdigit() else 0
