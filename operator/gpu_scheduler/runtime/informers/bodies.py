"""Our objects as they come, cut down to what is read of them before anything is built of them.

kopf keeps what it was told of for seconds, and a list has thousands: so what nobody reads
(annotations, who manages which field, labels but for those that Jobs inherit, and all of them where
they are too many) goes at once, and a spec that is too large (``api.size``) is
never there as more than its JSON. In its place stands why. Used for lists and for watches alike.
"""

import msgspec
import orjson

from gpu_scheduler.api.size import too_large
from gpu_scheduler.api.unstructured import Body, text
from gpu_scheduler.jobs.marks import inherited

TOO_LARGE = "tooLarge"
"""Beside spec and status: why the spec is not there. The API server keeps no such field of ours."""

MOST_FINALIZERS = 32
_OF_ADMINISTRATORS = frozenset({"GPUProject", "GPUClass", "GPUNode"})
SHORT_BYTES = 4096  # of finalizers before they are counted, and of labels that Jobs inherit
_KEPT = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "finalizers",
)


class _Object(msgspec.Struct, rename="camel", omit_defaults=True):
    metadata: dict[str, msgspec.Raw]
    api_version: str = ""
    kind: str = ""
    spec: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    status: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    too_large: str = ""


_NOTHING = msgspec.Raw(b"")
_READ = msgspec.json.Decoder(_Object)
_WRITE = msgspec.json.Encoder()


def cut(raw: msgspec.Raw) -> bytes:
    """The JSON of an object of ours, of which little is left where it is too large.

    Raises:
        DecodeError, UnicodeDecodeError: it makes no sense.
    """
    try:
        found = _READ.decode(raw)
    except msgspec.ValidationError:
        return bytes(raw)  # no API server hands such a one out: whoever reads it says what is odd
    meta = found.metadata
    found.metadata = {key: meta[key] for key in _KEPT if key in meta}
    if len(bytes(kept := meta.get("finalizers", msgspec.Raw(b"")))) > SHORT_BYTES:
        few = msgspec.json.decode(kept)[:MOST_FINALIZERS]
        found.metadata["finalizers"] = msgspec.Raw(_WRITE.encode(few))
    if 2 < len(bytes(said := meta.get("labels", _NOTHING))) <= SHORT_BYTES:
        if labels := inherited(msgspec.json.decode(said)):
            found.metadata["labels"] = msgspec.Raw(_WRITE.encode(labels))
    if isinstance(found.spec, msgspec.Raw) and found.kind not in _OF_ADMINISTRATORS:
        if why := too_large(bytes(found.spec)):
            found.spec = msgspec.UNSET
            found.too_large = why
    return _WRITE.encode(found)


def body(raw: msgspec.Raw) -> Body:
    """An object of ours. Raises what ``cut`` does."""
    found: Body = orjson.loads(cut(raw))
    return found


def said_of_size(body: Body) -> str:
    """Why the spec of an object is not there; empty = it is there, or never was."""
    return text(body, TOO_LARGE)
