"""An image with Debian's torch for CPUs, which trains in the end-to-end tests of gangs.

Made by mmdebstrap as the bases of the operator's image are, and kept in the cache under a digest of
its recipe: the packages, their suite, and torch-customize.sh.
"""

import hashlib
import os
from pathlib import Path

from cache_folder import cache_folder
from cluster import images, images_operator, node_packages
from cluster.errors import ClusterError
from cluster.locks import exclusive
from cluster.progress import say

TORCH = "docker.io/gpu-scheduler/torch:1"
CUSTOMIZE = Path(__file__).with_name("torch-customize.sh")
# What libtorch calls; it and python3-torch themselves come without their dependencies.
PACKAGES = (
    "python3",
    "python3-typing-extensions",
    "libblas3",
    "libcpuinfo0",
    "libdnnl2",
    "libfmt9",
    "libgflags2.2",
    "libgloo0",
    "libgomp1",
    "libgoogle-glog0v6",
    "liblapack3",
    "libnuma1",
    "libonnx1",
    "libprotobuf32",
    "libpthreadpool0",
    "libsleef3",
    "libtensorpipe0",
    "libxnnpack0",
    "patchelf",
)


def torch_archive() -> Path:
    """The docker-archive of the image, built if it is not in the cache.

    Raises:
        ClusterError: not root, or a package could not be fetched; the message ends with its output.
    """
    recipe = [images_operator.SUITE, *images_operator.BASE_OPTIONS, *PACKAGES, TORCH]
    digest = hashlib.sha256("\0".join(recipe).encode() + CUSTOMIZE.read_bytes()).hexdigest()[:16]
    folder = cache_folder() / "images"
    archive = folder / f"torch-{digest}.tar"
    with exclusive(folder / "torch.lock", on_wait=lambda: say("waiting for another image build")):
        if not archive.exists():
            _build(archive)
    return archive


def _build(archive: Path) -> None:
    if os.geteuid() != 0:
        raise ClusterError("the image with torch can be built as root only")
    node_packages.ensure_packages(node_packages.IMAGE_BUILD)
    say("making an image with torch from Debian packages (once, one to two minutes)")
    layer = archive.with_suffix(".layer.tar")
    try:
        images_operator.debian(layer, PACKAGES, customize=CUSTOMIZE)
        images.pack_layer(
            images.Image(tag=TORCH, files={}, environment={"PATH": node_packages.PATH}),
            layer,
            archive,
        )
    finally:
        layer.unlink(missing_ok=True)
    for older in archive.parent.glob("torch-*.tar"):
        if older != archive:
            older.unlink(missing_ok=True)
