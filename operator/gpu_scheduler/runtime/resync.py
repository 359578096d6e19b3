"""Our own objects listed as a whole, as a watch that lost its place can miss a deletion.

Called before the first plan, and each time kopf's watches begin anew.
"""

from collections.abc import AsyncIterator, Callable

from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.api.unstructured import Body
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.listing import Part, parts
from gpu_scheduler.kube.listing import body as json_of
from gpu_scheduler.kube.paths import of_group
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.custom_resources import (
    GPUCLASSES,
    GPUJOBS,
    GPUNODES,
    GPUPROJECTS,
    CustomResources,
    Name,
    name_of,
)


async def resync(client: Client, custom_resources: CustomResources) -> None:
    """List all our objects, take them in, forget those that are gone, and look at every GPUJob.

    Raises:
        ApiError: a list could not be read; nothing was forgotten then.
    """
    known = custom_resources.known()
    takes = {
        GPUCLASSES: custom_resources.gpuclass,
        GPUPROJECTS: custom_resources.project,
        GPUNODES: custom_resources.node,
        GPUJOBS: custom_resources.gpujob,
    }
    seen, versions = set[tuple[Name, str]](), dict[str, str]()
    for kind, take in takes.items():
        path = of_group(GROUP, VERSION, kind)
        async for part in _listed(client, path):
            for body in map(json_of, part.objects):
                seen.add((name_of(kind, body), body["metadata"]["uid"]))
                _take_in(take, body)
            for body in map(json_of, part.gone):
                name, uid = name_of(kind, body), body["metadata"]["uid"]
                seen.discard((name, uid))
                custom_resources.gone(name, uid)
            versions[path] = part.version
    for name, uid in known - seen:
        custom_resources.gone(name, uid)
    custom_resources.listed.made(versions)
    custom_resources.look_at_all()


def _take_in(take: Callable[[Body], None], body: Body) -> None:
    try:
        take(body)
    except Exception:  # what was known of it stays; all others are taken in
        meta = body.get("metadata") or {}
        place = f"{meta.get('namespace') or ''}/{meta.get('name')}".lstrip("/")
        unexpected("intake", f"{take.__name__} {place}")


async def _listed(client: Client, path: str) -> AsyncIterator[Part]:
    """All objects of a kind, in parts: thousands of them in one go would stop all others."""
    try:
        async for part in parts(client, path):
            yield part
    except errors.NotFound:
        if not path.endswith(GPUCLASSES):
            raise
        # They are optional, and so is their CRD.
