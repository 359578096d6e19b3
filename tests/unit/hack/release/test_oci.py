"""Layouts are what the OCI's specification calls one."""

import json

from tests.unit.hack.release.layouts import followed, manifest, opened

from release import oci


def layout(words: bytes = b"layer") -> bytes:
    made = oci.Layout()
    layers = [made.add(oci.LAYER, words)]
    parts = [
        made.manifest(made.add(oci.CONFIG, each.encode()), layers, platform={"architecture": each})
        for each in ("amd64", "arm64")
    ]
    return made.packed([made.index(parts, annotations=oci.named("docker.io/x", "1"))], 7)


def test_every_blob_is_there_once_and_reached() -> None:
    index, blobs = opened(layout())
    (entry,) = index["manifests"]
    assert entry["annotations"]["io.containerd.image.name"] == "docker.io/x:1"
    platforms = json.loads(followed(entry, blobs))["manifests"]
    assert [each["platform"]["architecture"] for each in platforms] == ["amd64", "arm64"]
    reached = {entry["digest"], *(each["digest"] for each in platforms)}
    for each in platforms:
        body = manifest(each, blobs)
        reached |= {part["digest"] for part in (body["config"], *body["layers"])}
    assert reached == set(blobs)


def test_equal_contents_make_equal_bytes() -> None:
    assert layout() == layout()
    assert layout(b"other") != layout()
