"""What takes long to make, once, and waits for nobody: images, made while the first tests run.

They are built one after the other in the order in which tests need them; a test that is there
before its image waits for it. Only those of tests that will run are made.
"""

from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.e2e import before, images_torch

from cluster import build
from cluster.images import native_architecture
from demo import install
from release import chart
from release.images import Builder
from release.source import export
from release.version import image_tag

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Packaged:
    """What `make release` makes, as far as helm and a node need it.

    Attributes:
        tag: of the images.
        images: the archives.
        chart: the packaged chart.
    """

    tag: str
    images: tuple[Path, ...]
    chart: Path


@dataclass(frozen=True, slots=True)
class Ahead:
    """What is being made."""

    packaged: "Future[Packaged] | None"


@contextmanager
def making(folder: Path, modules: Collection[str]) -> Iterator[Ahead]:
    """While the tests of these modules run; ``folder``: where files go that no cache keeps."""
    with ThreadPoolExecutor(1) as threads:
        made: list[Future[object]] = [threads.submit(install.build_images)]
        if "test_upgrade" in modules:
            made.append(threads.submit(before.build_images))
        if "test_gangs" in modules:
            made.append(threads.submit(images_torch.torch_archive))
        if {"test_sweeps", "test_holders"} & {*modules}:
            made.append(threads.submit(install.build_tpe_image))
        last = threads.submit(_package, folder) if "test_release" in modules else None
        try:
            yield Ahead(last)
        finally:
            for each in (*made, *([last] if last else ())):
                each.cancel()


def _package(folder: Path) -> Packaged:
    source = export(ROOT, folder / "source", allow_dirty=True)
    builder = Builder(source, (native_architecture(),))
    archives = []
    for target in ("operator", "agent"):
        archives.append(folder / f"{target}.oci.tar")
        archives[-1].write_bytes(builder.archive(target))
    package = folder / "chart.tgz"
    package.write_bytes(chart.package(source, build.binary("helm")))
    return Packaged(image_tag(source.version), tuple(archives), package)
