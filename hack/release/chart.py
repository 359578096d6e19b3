"""The chart as `helm package` makes it, and as an OCI layout, as `helm push` would store it.

helm writes the time of packing into its archive; it is packed anew, so that equal charts are
equal files.
"""

import tempfile
from pathlib import Path

import yaml

from cluster.commands import run
from release import oci
from release.images import rfc3339
from release.packing import tar_gz, unpacked
from release.source import Source
from release.version import image_tag

# https://helm.sh/docs/topics/registries/#helm-chart-manifest
CONFIG = "application/vnd.cncf.helm.config.v1+json"
CONTENT = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
CHART = Path("charts/gpu-scheduler")


def package(source: Source, helm: Path) -> bytes:
    """The chart's archive.

    Raises:
        ClusterError: helm refused; with its words.
    """
    versions = (f"--version={source.version}", f"--app-version={image_tag(source.version)}")
    with tempfile.TemporaryDirectory() as folder:
        command = [helm, "package", source.root / CHART, f"--destination={folder}", *versions]
        run(command, "helm package")
        (made,) = Path(folder).iterdir()
        return tar_gz(unpacked(made.read_bytes()), source.epoch)


def layout(archive: bytes, epoch: int) -> bytes:
    """An OCI layout with the chart in it, as a tar."""
    (described,) = (
        file.data for name, file in unpacked(archive).items() if name.count("/") == 1
        and name.endswith("/Chart.yaml")
    )  # fmt: skip
    chart = yaml.safe_load(described)
    made = oci.Layout()
    annotations = {
        "org.opencontainers.image.title": chart["name"],
        "org.opencontainers.image.version": chart["version"],
        "org.opencontainers.image.description": chart["description"],
        "org.opencontainers.image.created": rfc3339(epoch),
    }
    entry = made.manifest(
        made.add(CONFIG, oci.encoded(chart)), [made.add(CONTENT, archive)], annotations
    )
    # A tag cannot hold a `+`; helm writes `_` for it.
    tag = chart["version"].replace("+", "_")
    return made.packed([entry | {"annotations": oci.named(chart["name"], tag)}], epoch)
