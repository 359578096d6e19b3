"""An OCI image layout as one tar: blobs by digest, manifests, index.

https://github.com/opencontainers/image-spec/blob/main/image-layout.md. `skopeo`, `oras`, `crane`,
`ctr` and `podman` read it; nothing here talks to a registry.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from release.packing import File, tar

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"

Descriptor = dict[str, Any]


@dataclass
class Layout:
    """A layout that is being filled."""

    blobs: dict[str, bytes] = field(default_factory=dict)

    def add(self, media_type: str, data: bytes, **more: Any) -> Descriptor:
        """Put a blob; its descriptor."""
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        size = len(data)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": size, **more}

    def manifest(
        self,
        config: Descriptor,
        layers: Sequence[Descriptor],
        annotations: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Descriptor:
        """Put a manifest; `more` goes into its descriptor."""
        body = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": list(layers)}
        if annotations:
            body["annotations"] = dict(annotations)
        return self.add(MANIFEST, encoded(body), **more)

    def index(self, manifests: Sequence[Descriptor], **more: Any) -> Descriptor:
        """Put an index of manifests, one for each platform."""
        return self.add(INDEX, encoded(_index(manifests)), **more)

    def packed(self, entries: Sequence[Descriptor], epoch: int) -> bytes:
        """The whole as a tar; `entries` are what its index.json names."""
        files = {f"blobs/sha256/{digest}": File(data) for digest, data in self.blobs.items()}
        files["oci-layout"] = File(encoded({"imageLayoutVersion": "1.0.0"}))
        files["index.json"] = File(encoded(_index(entries)))
        return tar(files, epoch)


def encoded(body: Mapping[str, Any]) -> bytes:
    """JSON in one way."""
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def named(image: str, tag: str) -> dict[str, str]:
    """Annotations from which containerd and others take an image's name."""
    return {
        "io.containerd.image.name": f"{image}:{tag}",
        "org.opencontainers.image.ref.name": tag,
    }


def _index(manifests: Sequence[Descriptor]) -> dict[str, Any]:
    return {"schemaVersion": 2, "mediaType": INDEX, "manifests": list(manifests)}
