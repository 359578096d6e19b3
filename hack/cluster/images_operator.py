"""The images of operator and agent, built from their Dockerfile without Docker and a registry.

buildah runs the Dockerfile; the base images are stand-ins for python:*-slim and gcc, made by
mmdebstrap from Debian packages. All results stay in the cache under a digest of everything that
goes in, so a second build of the same sources costs nothing.
"""

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cache_folder import cache_folder
from cluster import images_pip, node_packages
from cluster.errors import ClusterError
from cluster.images import Image, native_architecture, pack_layer
from cluster.locks import exclusive
from cluster.mounts import can_stack
from cluster.progress import say

REPOSITORY = Path(__file__).parents[2]
DOCKERFILE = Path("operator/Dockerfile")
# What the Dockerfile copies, as .dockerignore has it; each image has its requirements too.
INPUTS = (
    DOCKERFILE,
    Path("operator/gpu_scheduler"),
    Path("native/include"),
    Path("native/libgpucap"),
)
REQUIREMENTS = {
    "operator": ("operator",),
    "operator-dashboard": ("operator",),
    "operator-tpe": ("operator", "tpe"),
    "operator-tpe-dashboard": ("operator", "tpe"),
    "agent": ("agent",),
}
FRONT_END = Path("dashboard/dist")  # as `make dashboard` has built it
OPTIONAL_INPUTS = (Path("LICENSE"), Path(".dockerignore"))

# The day on which the suite came out. With it maintainer scripts write no date of today, and byte
# code is checked against the sources' contents, not their times: equal packages make equal bytes.
BASE_EPOCH = 1686355200

# What buildah must forget when the machine restarts; nothing stays mounted in it.
RUN_FOLDER = Path("/run/gpu-scheduler-images")
STORAGE_LIMIT_MIB = 4096  # some twenty builds; then its storage starts anew

ARCHIVES_KEPT = 4  # of each target

SUITE = "bookworm"  # Python 3.11, as the Dockerfile's own default base
ARCH_TEST = node_packages.Package("arch-test", ("arch-test",))  # mmdebstrap asks it of others
BASE_PACKAGES = {
    "PYTHON_IMAGE": ("python3", "python3-venv", "libstdc++6"),  # numpy needs the last; slim has it
    "NATIVE_IMAGE": ("gcc", "libc6-dev", "make"),
}
# A merged /usr from the start: the package usrmerge would make one, and brings all of perl for it.
MERGED_USR = Path("/usr/share/mmdebstrap/hooks/merged-usr")
_MERGED = (f"--hook-dir={MERGED_USR}", "--include=usr-is-merged")
# In digests as they are, also before mmdebstrap is there and shows whether it has the hook.
BASE_OPTIONS = (
    "--variant=essential",
    *_MERGED,
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-include=/usr/share/doc/*/copyright",  # who passes a package on passes this on
    "--dpkgopt=path-exclude=/usr/share/info/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
)


def tag_of(target: str, tag: str) -> str:
    """A target's image beside the operator's, as the chart has it.

    The agent's is ``name-agent:tag``. Those with Optuna (sweeps.tpe) and with the front end
    (dashboard.enabled) are ``name:tag-tpe`` and ``name:tag-dashboard``.
    """
    name, colon, version = tag.rpartition(":")
    if not colon or "/" in version:  # the colon was a registry's port
        name, colon, version = tag, "", ""
    if target == "agent":
        return f"{name}-agent{colon}{version}"
    suffix = target.removeprefix("operator")
    return f"{name}:{version or 'latest'}{suffix}" if suffix else tag


def build_image(
    target: str,
    tag: str,
    *,
    repository: Path = REPOSITORY,
    architecture: str = "",
    compiled_here: bool = False,
) -> Path:
    """The docker-archive of one of the Dockerfile's targets, from the cache if it is there.

    Args:
        target: a key of ``REQUIREMENTS``.
        tag: the image's name inside.
        repository: where the sources are.
        architecture: as images call it; empty = this machine's. Programs of another one must
            run here.
        compiled_here: libgpucap is compiled by this machine's gcc; else by Debian's, whose base
            image takes a minute to make. For images that stay on this machine.

    Raises:
        ClusterError: a package is missing, or the build failed; the message ends with its output.
    """
    folder, architecture = cache_folder() / "images", architecture or native_architecture()
    bases = {
        argument: _digest([SUITE, architecture, str(BASE_EPOCH), *packages, *BASE_OPTIONS])
        for argument, packages in BASE_PACKAGES.items()
        if not (compiled_here and argument == "NATIVE_IMAGE")
    }
    inputs = (*INPUTS, *(Path(f"requirements/{name}.txt") for name in REQUIREMENTS[target]))
    if target.endswith("-dashboard"):
        if not (repository / FRONT_END).is_dir():
            raise ClusterError(f"the image {tag} needs the front end: run `make dashboard`")
        inputs = (*inputs, FRONT_END)
    compiler = _compiler() if compiled_here else ""
    digest = _digest([tag, *bases.values(), compiler, *_contents(repository, inputs)])
    archive = folder / f"{target}-{digest}.tar"
    if archive.exists():
        # It is in use, and not the next to be forgotten.
        os.utime(archive, ns=(time.time_ns(), archive.stat().st_mtime_ns))
        return archive
    if os.geteuid() != 0:
        raise ClusterError(f"the image {tag} can be built as root only (or with Docker)")
    folder.mkdir(parents=True, exist_ok=True)
    with exclusive(
        folder / "operator.lock", on_wait=lambda: say("waiting for another image build")
    ):
        if not archive.exists():
            foreign = () if architecture == native_architecture() else (ARCH_TEST,)
            node_packages.ensure_packages((*node_packages.IMAGE_BUILD, *foreign))
            tars = _bases(folder, bases, architecture)
            say(f"building the image {tag} ({architecture})")
            _build(
                repository,
                target=target,
                bases=tars,
                tag=tag,
                architecture=architecture,
                compiled_here=compiled_here,
                archive=archive,
            )
            _forget_older(folder, target, keep=archive)
    return archive


def _bases(folder: Path, digests: Mapping[str, str], architecture: str) -> dict[str, Path]:
    """The root file systems by argument of the Dockerfile; what is missing is made at once."""
    bases = {argument: folder / f"base-{SUITE}-{each}.tar" for argument, each in digests.items()}
    made = []
    with ThreadPoolExecutor() as threads:
        for argument, archive in bases.items():
            if archive.exists():
                continue
            packages = BASE_PACKAGES[argument]
            what = " ".join(packages)
            say(f"making a base image from Debian packages: {what} (once, about a minute)")
            made.append(threads.submit(debian, archive, packages, architecture=architecture))
    for each in made:
        each.result()
    return bases


def debian(
    archive: Path,
    packages: Sequence[str],
    *,
    customize: Path | None = None,
    architecture: str = "",
) -> None:
    """Make a root file system from Debian packages, as a tar.

    Args:
        archive: where it goes; there only once it is whole.
        packages: beside the essential ones.
        customize: a shell script that is run on the file system's folder at the end.
        architecture: as Debian calls it; empty = this machine's.

    Raises:
        ClusterError: a package is missing, or the script failed; the message ends with the output.
    """
    temporary = archive.with_suffix(".new.tar")
    hook = [f'--customize-hook=sh {shlex.quote(str(customize))} "$1"'] if customize else []
    _run(
        [
            "mmdebstrap",
            "--quiet",
            *(each for each in BASE_OPTIONS if each not in _MERGED or MERGED_USR.is_dir()),
            f"--architectures={architecture or native_architecture()}",
            f"--include={','.join(packages)}",
            *hook,
            SUITE,
            str(temporary),
        ],
        SOURCE_DATE_EPOCH=str(BASE_EPOCH),
    )
    temporary.replace(archive)


def _build(
    repository: Path,
    *,
    target: str,
    bases: Mapping[str, Path],
    tag: str,
    architecture: str,
    compiled_here: bool,
    archive: Path,
) -> None:
    buildah = _buildah(archive.parent / "buildah")
    arguments = [
        f"--build-arg={name}={_base_image(buildah, tar, architecture)}"
        for name, tar in bases.items()
    ]
    with tempfile.TemporaryDirectory() as name:
        if compiled_here:
            arguments.append(f"--build-context=native={_compiled(repository, Path(name))}")
        _run(
            [
                *buildah,
                "build",
                "--layers",
                "--isolation=chroot",
                "--pull-never",
                "--format=docker",
                f"--arch={architecture}",
                f"--target={target}",
                *arguments,
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


def _compiler() -> str:
    """Which one this machine has."""
    if not shutil.which("gcc") or not shutil.which("make"):
        raise ClusterError("the images need a C compiler: apt-get install gcc libc6-dev make")
    return _run(["gcc", "--version"]).partition("\n")[0]


def _compiled(repository: Path, folder: Path) -> Path:
    """What the Dockerfile's stage ``native`` has for the others, from this machine's compiler."""
    made = folder / "native"
    make = ["make", "-C", str(repository / "native" / "libgpucap"), f"BUILD={folder / 'build'}"]
    _run([*make, f"PREFIX={made / 'opt' / 'gpucap'}", "install"])
    return made


def _base_image(buildah: Sequence[str], tar: Path, architecture: str) -> str:
    """The name of a base in buildah's storage, put there from its tar if need be."""
    name = f"localhost/{tar.stem}:latest"
    if subprocess.run([*buildah, "inspect", "--type=image", name], capture_output=True).returncode:
        packed = tar.with_suffix(".packed")
        pack_layer(Image(name, files={}, architecture=architecture), tar, packed)
        _run([*buildah, "pull", "--quiet", f"docker-archive:{packed}"])
        packed.unlink()
    return name


def _buildah(storage: Path) -> list[str]:
    """The command, with a storage of its own whose layers make the next build short."""
    # Not what a build that was killed has left mounted there.
    measure = ["du", "--summarize", "--one-file-system", "--block-size=1M", str(storage)]
    size = _run(measure) if storage.exists() else "0"
    if int(size.split()[0]) > STORAGE_LIMIT_MIB:
        _begin_anew(storage)
    driver = "overlay" if can_stack(storage) else "vfs"
    return [
        "buildah",
        f"--root={storage / driver}",
        f"--runroot={RUN_FOLDER}",
        f"--storage-driver={driver}",
    ]


def _begin_anew(storage: Path) -> None:
    """Moved away first: who is killed while it goes must leave no storage without its layers."""
    storage.rename(storage.with_name(f"{storage.name}.old-{time.time_ns()}"))
    for old in storage.parent.glob(f"{storage.name}.old-*"):
        shutil.rmtree(old, ignore_errors=True)  # not what is mounted there


def _forget_older(folder: Path, target: str, *, keep: Path) -> None:
    """Every change of the sources makes an archive of some 200 MB: those last used are kept.

    The end-to-end tests alone use three: of this checkout, of the version before, and of a release.
    """
    archives = sorted(
        folder.glob(f"{target}-{'[0-9a-f]' * 16}.tar"), key=lambda path: path.stat().st_atime
    )
    for archive in archives[:-ARCHIVES_KEPT]:
        if archive != keep:
            archive.unlink(missing_ok=True)


def _contents(repository: Path, inputs: Sequence[Path]) -> Iterable[str]:
    for given in (*inputs, *OPTIONAL_INPUTS):
        path = repository / given
        if not path.exists():
            if given in inputs:
                raise ClusterError(f"{given} is missing: the images are built from it")
            continue
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                yield str(file.relative_to(repository))
                yield hashlib.sha256(file.read_bytes()).hexdigest()


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _run(command: Sequence[str], **more: str) -> str:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": node_packages.PATH, "LC_ALL": "C.UTF-8", **more},
    )
    if done.returncode:
        output = (done.stdout + done.stderr).strip()[-3000:]
        raise ClusterError(f"{' '.join(command[:1])} failed:\n{output}")
    return done.stdout
