"""The images of operator and agent as OCI archives, one for each image with all its platforms.

The Dockerfile is built as `make image` builds it (`cluster.images_operator`); what comes out is
written anew so that its bytes depend on contents alone: `layers` for the files, and here the
configuration, without dates, names of build containers and the builder's version.
"""

import gzip
import hashlib
import json
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cluster.files import sha256_of
from cluster.images_operator import build_image, tag_of
from release import layers, oci
from release.contents import Contents
from release.source import Source
from release.version import image_tag

NAME = "gpu-scheduler"  # of the operator's image; as the chart's defaults
_KEPT = ("User", "ExposedPorts", "Env", "Entrypoint", "Cmd", "Volumes", "WorkingDir", "StopSignal")


@dataclass
class Builder:
    """Builds images of one release; layers that several share are written once.

    Attributes:
        source: what they are built from.
        architectures: for which.
        contents: filled: what is in each image, by target and architecture.
    """

    source: Source
    architectures: tuple[str, ...]
    contents: dict[tuple[str, str], Contents] = field(default_factory=dict)
    _written: dict[str, tuple[bytes, str, Contents]] = field(default_factory=dict)

    def name(self, target: str) -> str:
        """What an image is called, with its tag."""
        return tag_of(target, f"{NAME}:{image_tag(self.source.version)}")

    def archive(self, target: str) -> bytes:
        """The OCI archive of an image.

        Raises:
            ClusterError: it cannot be built; the message ends with the build's output.
        """
        name, layout = self.name(target), oci.Layout()
        manifests = []
        for architecture in self.architectures:
            built = build_image(
                target, name, repository=self.source.root, architecture=architecture
            )
            with _opened(built) as (config, files):
                manifests.append(self._manifest(layout, config, files, (target, architecture)))
        image, _, tag = name.partition(":")
        names = oci.named(f"docker.io/library/{image}", tag)
        entry = layout.index(manifests, annotations=names)
        return layout.packed([entry], self.source.epoch)

    def _manifest(
        self,
        layout: oci.Layout,
        config: Mapping[str, Any],
        files: list[Path],
        which: tuple[str, str],
    ) -> oci.Descriptor:
        found = self.contents.setdefault(which, Contents())
        described, digests = [], []
        for file in files:
            data, digest, contents = self._layer(file)
            described.append(layout.add(oci.LAYER, data))
            digests.append(digest)
            found.add(contents)
        labels = {"version": self.source.version, "revision": self.source.commit}
        body = configuration(config, digests, self.source.epoch, labels)
        return layout.manifest(
            layout.add(oci.CONFIG, oci.encoded(body)),
            described,
            platform={"architecture": which[1], "os": "linux"},
        )

    def _layer(self, file: Path) -> tuple[bytes, str, Contents]:
        """A layer compressed, the digest of what is inside, and what it holds."""
        key = sha256_of(file)
        if key not in self._written:
            contents = Contents()
            settled = file.with_suffix(".settled")
            layers.settled(file, settled, self.source.epoch, contents.see)
            data = settled.read_bytes()
            digest = hashlib.sha256(data).hexdigest()
            self._written[key] = gzip.compress(data, 6, mtime=0), f"sha256:{digest}", contents
        return self._written[key]


def configuration(
    built: Mapping[str, Any], digests: list[str], epoch: int, labels: Mapping[str, str]
) -> dict[str, Any]:
    """The configuration of a released image.

    Args:
        built: that of the one that was built.
        digests: of its layers' tars.
        epoch: when it was made, in seconds since 1970.
        labels: further ones, below `org.opencontainers.image.`.
    """
    given = built["config"]
    kept = {key: given[key] for key in _KEPT if given.get(key)}
    said = {k: v for k, v in (given.get("Labels") or {}).items() if not k.startswith("io.buildah")}
    said |= {f"org.opencontainers.image.{name}": value for name, value in labels.items()}
    return {
        "architecture": built["architecture"],
        "os": built["os"],
        "created": rfc3339(epoch),
        "config": {**kept, "Labels": said},
        "rootfs": {"type": "layers", "diff_ids": digests},
    }


def rfc3339(epoch: int) -> str:
    """A time as OCI and CycloneDX write it."""
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@contextmanager
def _opened(archive: Path) -> Iterator[tuple[dict[str, Any], list[Path]]]:
    """A docker-archive's configuration and layers, in a folder for the time being."""
    folder = Path(tempfile.mkdtemp(prefix="gpu-scheduler-image-"))
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="tar")
        (described,) = json.loads((folder / "manifest.json").read_text())
        config = json.loads((folder / described["Config"]).read_text())
        yield config, [folder / name for name in described["Layers"]]
    finally:
        shutil.rmtree(folder)
