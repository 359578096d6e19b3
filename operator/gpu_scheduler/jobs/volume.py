"""The cap and the devices of a container as files, which follow later changes of the annotations.

One downward-API volume per GPU container, mounted as a folder (a subPath would freeze it). A
shell without the environment still finds the cap here.
"""

import posixpath
from collections.abc import Mapping
from typing import Any

from gpu_scheduler.api.names import (
    FILE_CONTEXT,
    FILE_DEVICES,
    FILE_MEMORY_LIMIT,
    MOUNT_PATH,
    context_mib_annotation,
    devices_annotation,
    files_volume,
    memory_mib_annotation,
)


def downward_volume(container: int) -> dict[str, Any]:
    """The volume with the files of this container."""
    items = [
        _file(FILE_DEVICES, devices_annotation(container)),
        _file(FILE_MEMORY_LIMIT, memory_mib_annotation(container)),
        _file(FILE_CONTEXT, context_mib_annotation(container)),
    ]
    return {"name": files_volume(container), "downwardAPI": {"items": items}}


def mount(container: int) -> dict[str, Any]:
    """Where the container finds its files."""
    return {"name": files_volume(container), "mountPath": MOUNT_PATH, "readOnly": True}


def mounted_at(mount: Mapping[str, Any]) -> str | None:
    """Where a mount of a template ends up; None: it has no path, and the dry run says so."""
    path = mount.get("mountPath")
    return placed_at(path) if isinstance(path, str) else None


def placed_at(path: str) -> str:
    """A path in a container; the kubelet takes one that is not absolute as one below ``/``."""
    return posixpath.normpath(f"/{path.lstrip('/')}")


def _file(path: str, annotation: str) -> dict[str, Any]:
    return {"path": path, "fieldRef": {"fieldPath": f"metadata.annotations['{annotation}']"}}
