"""Which pod and which container a process belongs to, from its ``/proc/<pid>/cgroup``.

Pure functions. Both cgroup versions, both drivers (``kubepods/burstable/pod<uid>/<id>`` and
``kubepods-burstable-pod<uid with _>.slice/<runtime>-<id>.scope``), containerd, CRI-O and Docker. A
reader in its own cgroup namespace sees paths that begin with ``/..``: only the last parts are
looked at, and these it sees in full.
"""

import re
from dataclasses import dataclass

_UID = r"[0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32}"
# cgroupfs: pod<uid>; systemd: kubepods[-qos]-pod<uid>.slice. A static pod's uid is a plain digest.
_POD = re.compile(rf"^(?:.*-)?pod({_UID})(?:\.slice)?$")
# cgroupfs: <id> or crio-<id>; systemd: cri-containerd-<id>.scope and the like. containerd with
# systemd names may also write slice:cri-containerd:<id>.
_CONTAINER = re.compile(r"^(?:.*[-:])?([0-9a-f]{64})(?:\.scope)?$")


@dataclass(frozen=True, slots=True)
class Owner:
    """A container, by the kubelet's ids; without ``container_id``: the pod's own group."""

    pod_uid: str
    container_id: str | None


def owner(text: str) -> Owner | None:
    """The container of a process; None when it is in no pod.

    Args:
        text: Content of ``/proc/<pid>/cgroup``.
    """
    # Version 1 has a line per controller. All agree for a pod's process; nested ones (a container
    # that makes cgroups of its own) are longer, but begin alike.
    for line in text.splitlines():
        _, _, path = line.partition(":")[2].partition(":")
        found = _of_path(path)
        if found is not None:
            return found
    return None


def _of_path(path: str) -> Owner | None:
    parts = [part for part in path.split("/") if part]
    for number, part in enumerate(parts):
        pod = _POD.match(part)
        if pod is None:
            continue
        below = parts[number + 1] if number + 1 < len(parts) else ""
        container = _CONTAINER.match(below)
        return Owner(_uid(pod.group(1)), container.group(1) if container else None)
    # containerd with a cgroupfs name for a systemd slice: …-pod<uid>.slice:cri-containerd:<id>
    for part in parts:
        pieces = part.split(":")
        pod = _POD.match(pieces[0]) if len(pieces) == 3 else None
        if pod is not None:
            return Owner(_uid(pod.group(1)), pieces[2])
    # A container in the same pod slice as the reader's: /../<runtime>-<id>.scope; it is the
    # reader's own pod, whose processes concern nobody.
    return None


def _uid(found: str) -> str:
    return found.replace("_", "-")
