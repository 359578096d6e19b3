"""Container images without a registry: docker-archives packed here from a few files.

An archive's bytes depend on its contents alone (fixed times, owners, order), so it is cached by
digest and an image id changes only when the image does. The one binary inside is Debian's
busybox-static, unpacked into the cache and never installed on the machine.
"""

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cache_folder import cache_folder
from cluster.debian import unpacked
from cluster.files import sha256_of, write_whole

PAUSE = "docker.io/gpu-scheduler/pause:1"
QUICKSTART = "docker.io/gpu-scheduler/quickstart:1"
QUICKSTART_SCRIPT = Path(__file__).parents[1] / "images" / "quickstart.sh"

# What shell programs in images may use; links to busybox.
_APPLETS = (
    "sh cat chmod cp cut date dd df du echo env expr false find free grep head hostname id kill "
    "ln ls md5sum mkdir mount mv nc nproc od printf ps pwd readlink rm rmdir sed seq sha256sum "
    "sleep sort stat tail test timeout top touch tr true uname uniq wc wget which xargs yes"
).split()


@dataclass(frozen=True, slots=True)
class Image:
    """One layer of files, and how a container of it starts.

    Attributes:
        tag: full name, with registry, as containerd keeps it.
        files: contents by path; all may be read and run by everybody.
        links: symbolic links, target by path.
        entrypoint: the program and its first arguments.
        environment: variables by name.
        user: numeric user (and group) that containers run as; empty = root.
        architecture: as images call it; empty = this machine's.
    """

    tag: str
    files: Mapping[str, bytes]
    links: Mapping[str, str] = field(default_factory=dict)
    entrypoint: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    architecture: str = ""


def native_architecture() -> str:
    """This machine's, as images and Debian call it."""
    machine = os.uname().machine
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def pause_archive() -> Path:
    """The image that holds a pod's namespaces: a busybox that sleeps."""
    return archive(
        Image(
            tag=PAUSE,
            files={"bin/busybox": busybox()},
            entrypoint=("/bin/busybox", "sleep", "2147483647"),
            user="65535:65535",
        )
    )


def quickstart_archive() -> Path:
    """The image of examples, demo and tests: shows its devices and caps, then "trains"."""
    return archive(
        Image(
            tag=QUICKSTART,
            files={
                "bin/busybox": busybox(),
                "bin/quickstart": QUICKSTART_SCRIPT.read_bytes(),
                "etc/passwd": b"root:x:0:0:root:/:/bin/sh\nnobody:x:65532:65532::/:/bin/sh\n",
                "tmp/.keep": b"",
            },
            links={f"bin/{applet}": "busybox" for applet in _APPLETS},
            entrypoint=("/bin/quickstart",),
            environment={"PATH": "/bin"},
        )
    )


def archive(image: Image) -> Path:
    """The docker-archive of ``image`` in the cache, packed if it is not there yet."""
    data = pack(image)
    name = image.tag.rpartition("/")[2].replace(":", "-")
    path = cache_folder() / "images" / f"{name}-{hashlib.sha256(data).hexdigest()[:16]}.tar"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)
    return path


def pack(image: Image) -> bytes:
    """The docker-archive of ``image``: layer.tar, config.json, manifest.json."""
    layer = _tar(image.files, image.links)
    return _tar({"layer.tar": layer, **_described(image, hashlib.sha256(layer).hexdigest())})


def pack_layer(image: Image, layer: Path, archive: Path) -> None:
    """Write the docker-archive of an image whose only layer is a file, too large for memory.

    Args:
        image: how it starts; its files and links do not count.
        layer: a tar, from elsewhere.
        archive: where the archive goes; there only once it is whole.
    """
    temporary = archive.with_suffix(f".{os.getpid()}")
    with tarfile.open(temporary, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.add(layer, arcname="layer.tar")
        for name, data in _described(image, sha256_of(layer)).items():
            _add(tar, name, data)
    temporary.replace(archive)


def _described(image: Image, layer_digest: str) -> dict[str, bytes]:
    """The files of a docker-archive beside its layer."""
    config = {
        "architecture": image.architecture or native_architecture(),
        "os": "linux",
        "config": {
            "Entrypoint": list(image.entrypoint),
            "Env": [f"{key}={value}" for key, value in image.environment.items()],
            "User": image.user,
            "WorkingDir": "/",
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]},
        "history": [{"created_by": "gpu-scheduler"}],  # buildah counts one for each layer
    }
    manifest = [{"Config": "config.json", "RepoTags": [image.tag], "Layers": ["layer.tar"]}]
    return {
        "config.json": json.dumps(config).encode(),
        "manifest.json": json.dumps(manifest).encode(),
    }


def busybox() -> bytes:
    """The static busybox of Debian's package, fetched once into the cache.

    Raises:
        ClusterError: when apt-get cannot fetch it.
    """
    return unpacked("busybox-static", "bin/busybox").read_bytes()


def _tar(files: Mapping[str, bytes], links: Mapping[str, str] | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for folder in sorted({str(parent) for name in files for parent in Path(name).parents}):
            if folder != ".":
                entry = tarfile.TarInfo(folder)
                entry.type = tarfile.DIRTYPE
                entry.mode = 0o1777 if folder == "tmp" else 0o755
                tar.addfile(entry)
        for name, data in sorted(files.items()):
            _add(tar, name, data)
        for name, target in sorted((links or {}).items()):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, target, 0o777
            tar.addfile(entry)
    return buffer.getvalue()


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), 0o755
    tar.addfile(entry, io.BytesIO(data))
