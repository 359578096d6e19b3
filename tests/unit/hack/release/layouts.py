"""Reads an OCI layout as its specification says, and complains where it is not one."""

import hashlib
import json
from typing import Any

from release.packing import unpacked

Blobs = dict[str, bytes]


def opened(archive: bytes) -> tuple[dict[str, Any], Blobs]:
    """The index and the blobs by digest; each blob is what it is called."""
    files = {name: file.data for name, file in unpacked(archive).items()}
    assert json.loads(files.pop("oci-layout")) == {"imageLayoutVersion": "1.0.0"}
    index = json.loads(files.pop("index.json"))
    blobs = {f"sha256:{name.rpartition('/')[2]}": data for name, data in files.items()}
    for digest, data in blobs.items():
        assert digest == "sha256:" + hashlib.sha256(data).hexdigest()
    assert all(name.startswith("blobs/sha256/") for name in files)
    return index, blobs


def followed(entry: dict[str, Any], blobs: Blobs) -> bytes:
    """The blob of a descriptor, which has the right size."""
    data = blobs[entry["digest"]]
    assert entry["size"] == len(data)
    return data


def manifest(entry: dict[str, Any], blobs: Blobs) -> dict[str, Any]:
    """The manifest of a descriptor, all of whose blobs are there."""
    body = dict(json.loads(followed(entry, blobs)))
    assert body["schemaVersion"] == 2 and body["mediaType"] == entry["mediaType"]
    for each in (body["config"], *body["layers"]):
        followed(each, blobs)
    return body
