"""All of a release, from the export to the checksums.

What cannot be made on this machine is listed with the reason, never left out silently.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from cluster import build as programs
from cluster.fetch_pins import this_platform
from cluster.images_operator import FRONT_END, REQUIREMENTS
from cluster.progress import say
from release import chart, checksums, distributions, krew, notes, platforms, sbom, version
from release.contents import Component
from release.environment import Environment, prepared
from release.errors import ReleaseError
from release.images import Builder
from release.source import Source, export


@dataclass
class Release:
    """A release that is being made.

    Attributes:
        source: what it is made from.
        target: the folder that is filled.
        left_out: what was not made, and why.
        remarks: what whoever publishes it should know.
    """

    source: Source
    target: Path
    left_out: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    @cached_property
    def environment(self) -> Environment:
        """What it is made with."""
        return prepared()

    def put(self, name: str, data: bytes | str) -> None:
        """Write a file of the release."""
        path = self.target / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        path.chmod(0o644)

    def pinned(self, extra: str, *more: str) -> list[Component]:
        """What requirements/EXTRA.txt installs, and `more`, as the installed packages say it."""
        text = (self.source.root / "requirements" / f"{extra}.txt").read_text()
        names = {*re.findall(r"^([a-z0-9-]+)==", text, re.M), *more}
        return [each for each in self.environment.distributions() if each.name in names]

    def bill(self, name: str, of: str, parts: Iterable[Component]) -> None:
        """Write the bill of materials `name`, of an image or a file."""
        asked = sbom.question(of, self.source.version, self.source.epoch, parts)
        where = str(self.source.root / "hack")
        text = self.environment.run(["-m", "release.sbom"], given=asked, PYTHONPATH=where)
        self.put(f"{name}.cdx.json", text)


def make(repository: Path, target: Path, *, allow_dirty: bool, releases: str) -> Release:
    """Build a release into `target`, in place of what is there.

    Args:
        repository: the checkout.
        target: a folder; replaced once everything is there.
        allow_dirty: also of a tree with changes, marked +dirty.
        releases: host and path of published releases, for krew's manifest; may be empty.

    Raises:
        ReleaseError: the tree has changes, the changelog lacks the version, or a step failed.
        ClusterError: an image or helm could not be built.
    """
    with tempfile.TemporaryDirectory(prefix="gpu-scheduler-release-") as name:
        folder = Path(name)
        made = folder / "made"
        made.mkdir()
        source = export(repository, folder / "source", allow_dirty=allow_dirty)
        release = Release(source, made)
        say(f"release {source.version} of {source.commit[:12]}")
        for what, step in (
            ("texts", texts),
            ("wheel and sdist", _distributions),
            ("chart", _chart),
            ("kubectl-gpu for krew", lambda each: _krew(each, releases)),
            ("front end", lambda each: _front_end(each, repository)),
            ("images", _images),
        ):
            say(f"release {source.version}: {what}")
            step(release)
        release.put(checksums.NAME, checksums.sums(made))
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, target)
        target.chmod(0o755)
    return release


def texts(release: Release) -> None:
    """Notes and CRDs, which need no building.

    Raises:
        ReleaseError: the version is stale somewhere, or the changelog says nothing of it.
    """
    source = release.source
    if found := version.stale(source.root):
        raise ReleaseError(
            "`make version` states the version where it is stale:\n" + "\n".join(found)
        )
    try:
        text = notes.section((source.root / "CHANGELOG.md").read_text(), source.version)
    except KeyError as error:
        raise ReleaseError(str(error.args[0])) from None
    release.put(f"release-notes-{source.version}.md", text)
    crds = sorted((source.root / "crds").glob("*.yaml"))
    separated = "".join(f"---\n{path.read_text().removeprefix('---').lstrip()}" for path in crds)
    release.put(f"gpu-scheduler-crds-{source.version}.yaml", separated)


def _distributions(release: Release) -> None:
    for path in distributions.build(release.source, release.environment, release.target):
        if path.suffix == ".whl":
            release.bill(path.name, path.name, release.pinned("cli"))


def _chart(release: Release) -> None:
    programs.ensure(("core",))
    archive = chart.package(release.source, programs.binary("helm"))
    release.put(f"gpu-scheduler-{release.source.version}.tgz", archive)
    layout = chart.layout(archive, release.source.epoch)
    release.put(f"gpu-scheduler-chart-{release.source.version}.oci.tar", layout)


def _krew(release: Release, releases: str) -> None:
    files, here = krew.program(release.source, release.environment), this_platform()
    archive = krew.archive(files, release.source.epoch)
    release.put(krew.archive_name(here), archive)
    parts = (*release.pinned("cli", "numpy"), *krew.bundled(files))
    release.bill(krew.archive_name(here), krew.archive_name(here), parts)
    template = (release.source.root / krew.MANIFEST).read_text()
    release.put(
        "gpu.yaml", krew.manifest(template, release.source.version, releases, {here: archive})
    )
    release.remarks.append(f"{krew.archive_name(here)} needs glibc 2.{krew.glibc(files)} or later")
    if not releases:
        release.remarks.append("gpu.yaml says RELEASES: RELEASES=host/path fills that in")
    for other in krew.platforms(template):
        if other != here:
            why = f"PyInstaller makes programs for its own platform only, which is {here}"
            release.left_out[f"kubectl-gpu for {other}"] = why


def _front_end(release: Release, repository: Path) -> None:
    """Build the dashboard's front end where its sources are, for the images that have it.

    Raises:
        ReleaseError: npm could not.
    """
    built = subprocess.run(["hack/dashboard.sh", "build"], cwd=repository)
    if built.returncode:
        raise ReleaseError("the dashboard's front end could not be built; its words are above")
    shutil.copytree(repository / FRONT_END, release.source.root / FRONT_END, dirs_exist_ok=True)


def _images(release: Release) -> None:
    if os.geteuid() != 0:
        release.left_out["images"] = "buildah builds them as root only"
        return
    can, cannot = platforms.buildable(os.environ.get("ARCHITECTURES", ""))
    for each, why in cannot.items():
        release.left_out[f"images for {each}"] = why
    builder = Builder(release.source, can)
    for target in REQUIREMENTS:
        name = builder.name(target).replace(":", "-")
        release.put(f"{name}.oci.tar", builder.archive(target))
        for architecture in can:
            parts = builder.contents[target, architecture].components()
            release.bill(f"{name}-{architecture}", f"image {name}", parts)
