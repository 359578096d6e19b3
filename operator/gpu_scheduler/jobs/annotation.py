"""The annotations that place a pod, checked before they are sent.

``pods/binding`` skips the validation of annotations: a bad key would be stored, and the API server
would then refuse most later updates of that pod. So keys and sizes are checked here, on both paths
alike.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from gpu_scheduler.api import allocation
from gpu_scheduler.api.names import LABEL_FIRST_RANK, RANK
from gpu_scheduler.api.numbers import number
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.jobs.env import INDEX_ANNOTATION
from gpu_scheduler.jobs.write import NotPlaceableError
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.limits.bounded import quoted, remembered

MAX_TOTAL_BYTES = 256 << 10  # all keys and values of one object together
MAX_NAME_CHARS = 63
MAX_PREFIX_CHARS = 253

_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_PREFIX = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")


def placement(
    pod: Pod,
    node: str,
    devices: Iterable[DeviceAllocation],
    more: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """What the one write that places ``pod`` sets; ``more``: beside the allocation.

    Raises:
        NotPlaceableError: a key is malformed, or the pod's annotations would exceed 256 KiB.
    """
    added = {**allocation.annotations(node, devices), **_rank(pod), **more}
    check({**pod.metadata.annotations, **added}, added)
    return added


def _rank(pod: Pod) -> dict[str, str]:
    """The pod's rank, where its job tells ranks: its role's first one and its own index."""
    first = number(pod.metadata.labels.get(LABEL_FIRST_RANK, ""))
    index = number(pod.metadata.annotations.get(INDEX_ANNOTATION, ""))
    return {} if first is None or index is None else {RANK: str(first + index)}


def check(total: Mapping[str, str], added: Iterable[str]) -> None:
    """Check the keys in ``added`` and the size of ``total``.

    Raises:
        NotPlaceableError: see ``placement``.
    """
    for key in added:
        if not well_formed(key):
            raise NotPlaceableError(f"metadata.annotations: {quoted(key)} is not a valid key")
    size = sum(len(k.encode()) + len(v.encode()) for k, v in total.items())
    if size > MAX_TOTAL_BYTES:
        raise NotPlaceableError(
            f"metadata.annotations: {size} bytes with the placement, at most {MAX_TOTAL_BYTES} "
            "fit; shorten the annotations in spec.template"
        )


@remembered(1024, chars=512)  # the same few keys on every pod
def well_formed(key: str) -> bool:
    """Whether the API server would accept this annotation key on an update."""
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= MAX_PREFIX_CHARS and _PREFIX.fullmatch(prefix.lower())):
        return False
    return len(name) <= MAX_NAME_CHARS and _NAME.fullmatch(name) is not None
