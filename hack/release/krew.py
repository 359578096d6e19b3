"""kubectl's plugin for krew: archives with a stand-alone program, and the manifest that names them.

PyInstaller puts the interpreter and all that is imported into a folder beside the program; it
makes programs for the machine that it runs on, no other. krew unpacks files and folders, but no
links.
"""

import hashlib
import platform
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from release.contents import Component
from release.environment import Environment
from release.packing import File, folder_files, tar_gz
from release.source import Source
from release.version import image_tag

MANIFEST = Path("packaging/krew/gpu.yaml")
PROGRAM = Path("hack/release/program")
_LIBRARY = re.compile(r"_internal/lib[^/]*\.so[.\d]*$")
_GLIBC = re.compile(rb"GLIBC_2\.(\d+)")


def archive_name(of: str) -> str:
    """The archive's file name for a platform."""
    return f"kubectl-gpu-{of}.tar.gz"


def program(source: Source, environment: Environment) -> dict[str, File]:
    """The files of this platform's archive.

    Raises:
        ReleaseError: with what PyInstaller said.
    """
    spec = source.root / PROGRAM / "kubectl-gpu.spec"
    with tempfile.TemporaryDirectory() as folder:
        environment.run(
            ["-m", "PyInstaller", "--noconfirm", "--log-level=WARN", "--clean", "--distpath=dist",
             "--workpath=work", str(spec)],
            folder=Path(folder),
            SOURCE_DATE_EPOCH=str(source.epoch),
            PYINSTALLER_CONFIG_DIR=f"{folder}/config",
            PYTHONDONTWRITEBYTECODE="1",
        )  # fmt: skip
        made = folder_files(Path(folder) / "dist" / "kubectl-gpu")
    # Lists of installed files have digests of scripts, which name the environment's folder.
    files = {name: file for name, file in made.items() if not name.endswith(".dist-info/RECORD")}
    complete = (source.root / PROGRAM / "kubectl_complete-gpu").read_bytes()
    licence = (source.root / "LICENSE").read_bytes()
    return {**files, "kubectl_complete-gpu": File(complete, True), "LICENSE": File(licence)}


def bundled(files: Mapping[str, File]) -> list[Component]:
    """What an archive holds beside Python packages: the interpreter, and libraries as files."""
    running = Component("generic", "python", platform.python_version(), licences=("PSF-2.0",))
    libraries = {
        Component("file", name.rpartition("/")[2], sha256=hashlib.sha256(file.data).hexdigest())
        for name, file in files.items()
        if _LIBRARY.search(name)
    }
    return [running, *sorted(libraries)]


def glibc(files: Mapping[str, File]) -> int:
    """The least minor version of glibc 2 that these programs and libraries ask for."""
    found = [
        int(minor)
        for file in files.values()
        if file.data.startswith(b"\x7fELF")
        for minor in _GLIBC.findall(file.data)
    ]
    return max(found, default=0)


def archive(files: Mapping[str, File], epoch: int) -> bytes:
    """The archive of a platform."""
    return tar_gz(files, epoch)


def manifest(template: str, version: str, releases: str, archives: Mapping[str, bytes]) -> str:
    """The template filled in, with the platforms that there are archives for.

    Args:
        template: packaging/krew/gpu.yaml.
        version: without a `v`.
        releases: host and path below which releases are published; empty leaves the word RELEASES.
        archives: by platform.
    """
    plugin: dict[str, Any] = yaml.safe_load(template)
    kept = []
    for each in plugin["spec"]["platforms"]:
        labels = each["selector"]["matchLabels"]
        made = archives.get(f"{labels['os']}-{labels['arch']}")
        if made is not None:
            kept.append({**each, "sha256": hashlib.sha256(made).hexdigest()})
    plugin["spec"]["platforms"] = kept
    text = yaml.dump(plugin, Dumper=_Manifest, sort_keys=False, width=100)
    text = text.replace("VERSION", image_tag(version))
    return text.replace("RELEASES", releases) if releases else text


class _Manifest(yaml.SafeDumper):
    """Long texts as the template has them."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Manifest.add_representer(str, _text)


def platforms(template: str) -> list[str]:
    """All platforms that the template knows."""
    labels = [p["selector"]["matchLabels"] for p in yaml.safe_load(template)["spec"]["platforms"]]
    return [f"{each['os']}-{each['arch']}" for each in labels]
