"""Our own objects listed as a whole: kopf lists nothing, and watches from where these lists ended.

All kinds are listed before the first plan and now and then; one kind whenever kopf's watch of it
begins anew, since a watch that lost its place can miss a deletion, and a kind whose CRD was deleted
and restored has other objects. kopf's own lists would tell of what is there at a third of a
millisecond each, and of what is gone never.
"""

import asyncio
from collections.abc import Callable

from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.api.unstructured import Body
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.listing import parts
from gpu_scheduler.kube.paths import of_group
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.informers.bodies import body as json_of
from gpu_scheduler.runtime.informers.custom_resources import (
    GPUCLASSES,
    GPUJOBS,
    GPUNODES,
    GPUPROJECTS,
    CustomResources,
    Name,
    name_of,
)

KINDS = (GPUCLASSES, GPUPROJECTS, GPUNODES, GPUJOBS)
PATHS = {kind: of_group(GROUP, VERSION, kind) for kind in KINDS}
OPTIONAL = PATHS[GPUCLASSES]
"""Need not exist, nor need its CRD."""

_KIND_OF = {path: kind for kind, path in PATHS.items()}
_ListedNames = set[tuple[Name, str]]  # with uids
_LEAST_SECONDS = 2.0  # between two lists of everything


class OurLists:
    """Lists our kinds and takes them in."""

    def __init__(self, client: Client, custom_resources: CustomResources) -> None:
        """Nothing is listed yet."""
        self._client = client
        self._custom_resources = custom_resources
        self._takes: dict[str, Callable[[Body], None]] = {
            GPUCLASSES: custom_resources.gpuclass,
            GPUPROJECTS: custom_resources.project,
            GPUNODES: custom_resources.node,
            GPUJOBS: custom_resources.gpujob,
        }
        self._made = asyncio.Event()
        self._wanted = asyncio.Event()
        self._versions: dict[str, str] = {}  # of the first lists, each told once

    async def all(self) -> None:
        """List all our objects, forget those that are gone, and look at every GPUJob.

        Raises:
            ApiError: a list could not be read; nothing was forgotten then.
        """
        known, seen, versions = self._custom_resources.known(), _ListedNames(), dict[str, str]()
        for kind, path in PATHS.items():
            try:
                versions[path] = await self._list(path, seen)
            except errors.ApiError as error:
                if not self._made.is_set():  # later on, the watch says what can be seen
                    self._client.watches.lost(path, error)
                if not isinstance(error, errors.NotFound) or path != OPTIONAL:
                    raise
                seen |= {found for found in known if found[0][0] == kind}
        self._forget(known - seen)
        if not self._made.is_set():
            self._versions = versions
            self._made.set()
        self._custom_resources.look_at_all()

    def ask(self) -> None:
        """Ask for all lists soon: there is something in them that was not taken in."""
        self._wanted.set()

    async def due(self, seconds: float) -> None:
        """Return after so many seconds, or soon after they were asked for."""
        least = min(seconds, _LEAST_SECONDS)
        await asyncio.sleep(least)
        try:
            await asyncio.wait_for(self._wanted.wait(), seconds - least)
        except TimeoutError:
            pass
        self._wanted.clear()

    async def version(self, path: str) -> str:
        """The version to watch one of our collections from; it is listed, unless it just was.

        Waits until the first lists are complete. Who asks again has lost its place.

        Raises:
            ApiError: it could not be listed.
        """
        await self._made.wait()
        if version := self._versions.pop(path, ""):
            return version
        kind, seen = _KIND_OF[path], _ListedNames()
        known = {found for found in self._custom_resources.known() if found[0][0] == kind}
        version = await self._list(path, seen)
        self._forget(known - seen)
        if kind == GPUJOBS:
            self._custom_resources.look_at_all()
        return version

    async def _list(self, path: str, seen: _ListedNames) -> str:
        """Take a kind in, in parts: thousands in one go would stop all others."""
        kind, version = _KIND_OF[path], ""
        async for part in parts(self._client, path):
            for body in map(json_of, part.objects):
                seen.add((name_of(kind, body), body["metadata"]["uid"]))
                _take_in(self._takes[kind], body)
            gone = {
                (name_of(kind, each), each["metadata"]["uid"]) for each in map(json_of, part.gone)
            }
            seen -= gone
            self._forget(gone)
            version = part.version
        return version

    def _forget(self, gone: _ListedNames) -> None:
        for name, uid in gone:
            self._custom_resources.gone(name, uid)


def _take_in(take: Callable[[Body], None], body: Body) -> None:
    try:
        take(body)
    except Exception:  # what was known of it stays; all others are taken in
        meta = body.get("metadata") or {}
        place = f"{meta.get('namespace') or ''}/{meta.get('name')}".lstrip("/")
        unexpected("intake", f"{take.__name__} {place}")
