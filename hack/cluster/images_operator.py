"""The operator's image, built from its own Dockerfile without Docker and without a registry.

buildah runs the Dockerfile; the base image is a stand-in for python:*-slim, made by mmdebstrap
from Debian packages. Both results stay in the cache under a digest of everything that goes in, so
a second build of the same sources costs nothing.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from cluster import images_pip, node_overlayfs, node_packages
from cluster.cache import cache_folder
from cluster.errors import ClusterError
from cluster.locks import exclusive
from cluster.progress import say

REPOSITORY = Path(__file__).parents[2]
DOCKERFILE = Path("operator/Dockerfile")
# What the Dockerfile copies; a list kept short by .dockerignore.
INPUTS = (DOCKERFILE, Path("requirements/operator.txt"), Path("operator/gpu_scheduler"))
OPTIONAL_INPUTS = (Path("LICENSE"), Path(".dockerignore"))

# What buildah must forget when the machine restarts; nothing stays mounted in it.
RUN_FOLDER = Path("/run/gpu-scheduler-images")
STORAGE_LIMIT_MIB = 4096  # some twenty builds; then its storage starts anew

SUITE = "bookworm"  # Python 3.11, as the Dockerfile's own default base
BASE_PACKAGES = ("python3", "python3-venv")
BASE_OPTIONS = (
    "--variant=essential",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/info/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
)


def build_operator_image(tag: str, *, repository: Path = REPOSITORY) -> Path:
    """The docker-archive of the operator's image, named ``tag`` inside.

    Raises:
        ClusterError: a package is missing, or the build failed; the message ends with its output.
    """
    folder = cache_folder() / "images"
    base_digest = _digest([SUITE, *BASE_PACKAGES, *BASE_OPTIONS])
    digest = _digest([tag, base_digest, *_contents(repository)])
    archive = folder / f"operator-{digest}.tar"
    if archive.exists():
        return archive
    if os.geteuid() != 0:
        raise ClusterError("the operator's image can be built as root only (or with Docker)")
    folder.mkdir(parents=True, exist_ok=True)
    with exclusive(
        folder / "operator.lock", on_wait=lambda: say("waiting for another image build")
    ):
        if not archive.exists():
            node_packages.ensure_packages(node_packages.IMAGE_BUILD)
            base = _base(folder / f"base-{SUITE}-{base_digest}.tar")
            say(f"building the operator's image {tag}")
            _build(repository, base=base, tag=tag, archive=archive)
            _forget_older(folder, keep=archive)
    return archive


def _base(archive: Path) -> Path:
    """A root file system with Python, as a tar."""
    if not archive.exists():
        say("making the base image from Debian packages (once, about a minute)")
        temporary = archive.with_suffix(".new.tar")
        _run(
            [
                "mmdebstrap",
                "--quiet",
                *BASE_OPTIONS,
                f"--include={','.join(BASE_PACKAGES)}",
                SUITE,
                str(temporary),
            ]
        )
        temporary.replace(archive)
    return archive


def _build(repository: Path, *, base: Path, tag: str, archive: Path) -> None:
    buildah = _buildah(archive.parent / "buildah")
    base_image = f"localhost/{base.stem}"
    if subprocess.run(
        [*buildah, "inspect", "--type=image", base_image], capture_output=True
    ).returncode:
        container = _run([*buildah, "from", "scratch"]).strip()
        _run([*buildah, "add", "--quiet", container, str(base), "/"])
        _run([*buildah, "commit", "--quiet", "--rm", container, base_image])
    with tempfile.TemporaryDirectory() as name:
        _run(
            [
                *buildah,
                "build",
                "--layers",
                "--isolation=chroot",
                "--pull-never",
                "--format=docker",
                f"--build-arg=PYTHON_IMAGE={base_image}",
                *images_pip.mounts(Path(name)),
                f"--file={repository / DOCKERFILE}",
                f"--tag={tag}",
                str(repository),
            ]
        )
    temporary = archive.with_suffix(".new")
    temporary.unlink(missing_ok=True)
    _run([*buildah, "push", "--quiet", tag, f"docker-archive:{temporary}:{tag}"])
    temporary.replace(archive)


def _buildah(storage: Path) -> list[str]:
    """The command, with a storage of its own whose layers make the next build short."""
    size = _run(["du", "--summarize", "--block-size=1M", str(storage)]) if storage.exists() else "0"
    if int(size.split()[0]) > STORAGE_LIMIT_MIB:
        shutil.rmtree(storage, ignore_errors=True)
    driver = "overlay" if node_overlayfs.possible_in(storage) else "vfs"
    return [
        "buildah",
        f"--root={storage / driver}",
        f"--runroot={RUN_FOLDER}",
        f"--storage-driver={driver}",
    ]


def _forget_older(folder: Path, *, keep: Path) -> None:
    """Every change of the sources makes an archive of some 200 MB: two are enough."""
    archives = sorted(folder.glob("operator-*.tar"), key=lambda path: path.stat().st_mtime)
    for archive in archives[:-2]:
        if archive != keep:
            archive.unlink(missing_ok=True)


def _contents(repository: Path) -> Iterable[str]:
    for given in (*INPUTS, *OPTIONAL_INPUTS):
        path = repository / given
        if not path.exists():
            if given in INPUTS:
                raise ClusterError(f"{given} is missing: the operator's image is built from it")
            continue
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                yield str(file.relative_to(repository))
                yield hashlib.sha256(file.read_bytes()).hexdigest()


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": node_packages.PATH, "LC_ALL": "C.UTF-8"},
    )
    if done.returncode:
        output = (done.stdout + done.stderr).strip()[-3000:]
        raise ClusterError(f"{' '.join(command[:1])} failed:\n{output}")
    return done.stdout
