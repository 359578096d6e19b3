"""Pods in Kubernetes' protobuf, in which a request holds several times what it holds in JSON.

Only the fields that attacks fill; their numbers are those of k8s.io/api/core/v1/generated.proto.
"""

from collections.abc import Iterable, Mapping

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def field(number: int, content: bytes | str) -> bytes:
    """One field of a message, a string or a message itself."""
    data = content.encode() if isinstance(content, str) else content
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def pairs(number: int, entries: Mapping[str, str]) -> bytes:
    """A map of texts."""
    return b"".join(field(number, field(1, k) + field(2, v)) for k, v in entries.items())


def env_from(config_map: str, prefix: str) -> bytes:
    """An entry of a container's ``envFrom``: a field of the container."""
    return field(19, field(1, prefix) + field(2, field(1, field(1, config_map))))


def limits(amounts: Mapping[str, str]) -> bytes:
    """Limits of a container, which are its requests as well."""
    entries = b"".join(
        field(1, field(1, resource) + field(2, field(1, amount)))
        for resource, amount in amounts.items()
    )
    return field(8, entries)


def env(name: str, value: str = "") -> bytes:
    """An entry of a container's ``env``."""
    return field(7, field(1, name) + (field(2, value) if value else b""))


def container(name: str, *fields: bytes) -> bytes:
    """A container with one image."""
    return field(1, name) + field(2, "example/x:1") + b"".join(fields)


def pod(
    name: str,
    namespace: str,
    containers: Iterable[bytes],
    *,
    node: str = "",
    runtime_class: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> bytes:
    """The body of a request that creates a pod."""
    meta = field(1, name) + field(3, namespace)
    meta += pairs(11, labels or {}) + pairs(12, annotations or {})
    spec = b"".join(field(2, each) for each in containers)
    spec += field(10, node) if node else b""
    spec += field(29, runtime_class) if runtime_class else b""
    kind = field(1, "v1") + field(2, "Pod")
    return _MAGIC + field(1, kind) + field(2, field(1, meta) + field(2, spec))
