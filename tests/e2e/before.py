"""The version before, from which an upgrade starts: its chart, and images made from its sources."""

import atexit
import tarfile
import tempfile
from functools import cache
from pathlib import Path

from cluster import Running, images_operator
from demo import install

ARCHIVE = Path(__file__).parents[1] / "fixtures" / "upgrade" / "before.tar.xz"
TAG = "before"


@cache
def sources() -> Path:
    """Its files, in a folder that goes when this process ends."""
    folder = tempfile.TemporaryDirectory(prefix="gpu-scheduler-before-")
    atexit.register(folder.cleanup)
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(folder.name, filter="data")
    return Path(folder.name)


def build_images() -> tuple[Path, ...]:
    """The images of operator and agent as archives, from the cache if they are there."""
    tag = f"{install.REPOSITORY}:{TAG}"
    names = {"operator": tag, "agent": images_operator.tag_of("agent", tag)}
    return tuple(
        images_operator.build_image(target, name, repository=sources())
        for target, name in names.items()
    )


def install_chart(cluster: Running, more: tuple[str, ...]) -> None:
    """Install it, with further options for helm."""
    image = install.give_images(cluster, build_images())
    folder = sources() / "charts" / "gpu-scheduler"
    install.chart(cluster, image=image, more=more, folder=folder, tag=TAG)
