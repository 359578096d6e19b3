"""What is inside an image or a wheel, for its bill of materials: read from the files themselves.

Debian's packages from dpkg's database and their copyright files, Python's from their metadata,
and files of our own that belong to no package.
"""

import email.parser
import hashlib
import re
from dataclasses import dataclass, field
from typing import IO

_COPYRIGHT = re.compile(r"usr/share/doc/([^/]+)/copyright")
_METADATA = re.compile(r"\.dist-info/METADATA$")
_STATUS = "var/lib/dpkg/status"
_NATIVE = re.compile(r"opt/gpucap/(libgpucap\.so|gpucap-install)$")
_LICENCE = re.compile(r"^License:[ \t]*(\S.*?)[ \t]*$", re.M)


@dataclass(frozen=True, slots=True, order=True)
class Component:
    """A part.

    Attributes:
        kind: `deb`, `pypi` or `file`.
        name: as its packaging calls it.
        version: likewise; of a file none.
        architecture: of a Debian package.
        licences: as said by its own metadata; none where it says none.
        sha256: of a file.
    """

    kind: str
    name: str
    version: str = ""
    architecture: str = ""
    licences: tuple[str, ...] = ()
    sha256: str = ""


@dataclass
class Contents:
    """What was seen so far; a later layer wins."""

    debian: str = ""
    copyrights: dict[str, str] = field(default_factory=dict)
    python: dict[str, Component] = field(default_factory=dict)
    files: dict[str, Component] = field(default_factory=dict)

    def see(self, name: str, file: IO[bytes]) -> None:
        """Look at a file, by its path."""
        if name == _STATUS:
            self.debian = file.read().decode("utf-8", "replace")
        elif match := _COPYRIGHT.fullmatch(name):
            self.copyrights[match[1]] = file.read().decode("utf-8", "replace")
        elif _METADATA.search(name):
            self.python[name] = python_component(file.read().decode("utf-8", "replace"))
        elif match := _NATIVE.fullmatch(name):
            digest = hashlib.sha256(file.read()).hexdigest()
            self.files[name] = Component("file", match[1], licences=("Apache-2.0",), sha256=digest)

    def add(self, other: "Contents") -> None:
        """What another layer holds, too."""
        self.debian = other.debian or self.debian
        self.copyrights |= other.copyrights
        self.python |= other.python
        self.files |= other.files

    def components(self) -> list[Component]:
        """All, in order."""
        debian = debian_components(self.debian, self.copyrights)
        return sorted({*debian, *self.python.values(), *self.files.values()})


def debian_components(status: str, copyrights: dict[str, str]) -> list[Component]:
    """The installed packages of a dpkg database."""
    found = []
    for paragraph in status.split("\n\n"):
        fields = dict(re.findall(r"^([A-Za-z-]+): (.*)$", paragraph, re.M))
        if fields.get("Status", "").endswith(" installed"):
            licences = debian_licences(copyrights.get(fields["Package"], ""))
            found.append(
                Component(
                    *("deb", fields["Package"], fields["Version"], fields["Architecture"]), licences
                )
            )
    return found


def debian_licences(text: str) -> tuple[str, ...]:
    """Short names of licences in a machine-readable copyright file; of others none."""
    if not text.startswith("Format:"):
        return ()
    return tuple(sorted(set(_LICENCE.findall(text))))


def python_component(metadata: str) -> Component:
    """A distribution by its METADATA."""
    said = email.parser.HeaderParser().parsestr(metadata)
    licence = said.get("License-Expression") or _short(said.get("License"))
    if not licence:
        classifiers = said.get_all("Classifier", [])
        licence = next(
            (c.rpartition(" :: ")[2] for c in classifiers if c.startswith("License :: ")), ""
        )
    licences = (licence,) if licence else ()
    return Component("pypi", _normal(said["Name"]), said["Version"], licences=licences)


def _short(licence: str | None) -> str:
    """Not the whole text, which some put there."""
    return licence.strip() if licence and len(licence) < 80 and "\n" not in licence else ""


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
