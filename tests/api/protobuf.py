"""Objects as protobuf, as much of them as tests send: it holds more entries in a request than JSON.

Numbers of fields are those of generated.proto in k8s.io/api and k8s.io/apimachinery; the envelope
is https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding.
"""

from collections.abc import Mapping
from typing import Any

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"

# A field's number and what it is: a message by its fields, or one of text, bool, int, quantity,
# map, quantities. The field without a name holds those of a message that JSON has in line.
Fields = Mapping[str, tuple[int, Any]]

_META: Fields = {
    "name": (1, "text"),
    "generateName": (2, "text"),
    "namespace": (3, "text"),
    "labels": (11, "map"),
    "annotations": (12, "map"),
    "ownerReferences": (
        13,
        {
            "apiVersion": (5, "text"),
            "kind": (1, "text"),
            "name": (3, "text"),
            "uid": (4, "text"),
            "controller": (6, "bool"),
        },
    ),
}
_CONTAINER: Fields = {
    "name": (1, "text"),
    "image": (2, "text"),
    "ports": (6, {"containerPort": (3, "int")}),
    "env": (
        7,
        {
            "name": (1, "text"),
            "value": (2, "text"),
            "valueFrom": (3, {"fieldRef": (1, {"fieldPath": (2, "text")})}),
        },
    ),
    "resources": (8, {"limits": (1, "quantities")}),
    "volumeMounts": (9, {"name": (1, "text"), "mountPath": (3, "text")}),
    "envFrom": (
        19,
        {"prefix": (1, "text"), "configMapRef": (2, {"": (1, {"name": (1, "text")})})},
    ),
    "imagePullPolicy": (14, "text"),
    "terminationMessagePath": (13, "text"),
    "terminationMessagePolicy": (20, "text"),
}
POD: Fields = {
    "metadata": (1, _META),
    "spec": (
        2,
        {
            "volumes": (1, {"name": (1, "text"), "": (2, {"emptyDir": (2, {})})}),
            "containers": (2, _CONTAINER),
            "initContainers": (20, _CONTAINER),
            "ephemeralContainers": (34, {"": (1, _CONTAINER)}),
            "automountServiceAccountToken": (21, "bool"),
            "runtimeClassName": (29, "text"),
            "schedulingGates": (38, {"name": (1, "text")}),
        },
    ),
}
BINDING: Fields = {
    "metadata": (1, _META),
    "target": (2, {"kind": (1, "text"), "name": (3, "text")}),
}
OF_KIND = {"Pod": POD, "Binding": BINDING}


def encoded(body: Mapping[str, Any]) -> bytes:
    """An object of apiVersion v1 in its envelope; KeyError for a field that is not known here."""
    kind = str(body["kind"])
    meta = _block(1, b"v1") + _block(2, kind.encode())
    rest = {key: value for key, value in body.items() if key not in {"apiVersion", "kind"}}
    return b"k8s\x00" + _block(1, meta) + _block(2, _message(rest, OF_KIND[kind]))


def _message(value: Mapping[str, Any], fields: Fields) -> bytes:
    found, own = [], {key: each for key, each in value.items() if key in fields}
    for key, each in own.items():
        number, kind = fields[key]
        if kind in ("map", "quantities"):
            of = "text" if kind == "map" else "quantity"
            entries = (_field(1, k, "text") + _field(2, v, of) for k, v in each.items())
            found += [_block(number, entry) for entry in entries]
        else:
            found += [
                _field(number, one, kind) for one in (each if isinstance(each, list) else [each])
            ]
    if rest := {key: each for key, each in value.items() if key not in fields}:
        number, kind = fields[""]
        found.append(_block(number, _message(rest, kind)))
    return b"".join(found)


def _field(number: int, value: Any, kind: Any) -> bytes:
    if kind == "text":
        return _block(number, str(value).encode())
    if kind == "quantity":
        return _block(number, _block(1, str(value).encode()))
    if kind in ("int", "bool"):
        return _varint(number << 3) + _varint(int(value))
    return _block(number, _message(value, kind))


def _block(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    low = bytearray()
    while value > 0x7F:
        low.append(value & 0x7F | 0x80)
        value >>= 7
    low.append(value)
    return bytes(low)
