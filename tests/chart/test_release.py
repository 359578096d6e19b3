"""The parts of a release that need no image: equal when made twice, and what they should be."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.chart.conftest import helm
from tests.unit.hack.release.layouts import followed, manifest, opened

from cluster import build
from gpu_scheduler import __version__
from release import chart, distributions
from release.environment import Environment
from release.source import Source, export

ROOT = Path(__file__).parents[2]
BACKEND = ("hatchling", "packaging", "pathspec", "pluggy", "tomlkit", "trove-classifiers")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """This checkout, with whatever changes it has."""
    return export(ROOT, tmp_path_factory.mktemp("release") / "source", allow_dirty=True)


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """What builds the wheel, as a release pins it."""
    made = Environment(tmp_path_factory.mktemp("backend") / "environment")
    subprocess.run([sys.executable, "-m", "venv", made.folder], check=True)
    blocks = re.split(r"\n(?=\S)", (ROOT / "requirements" / "release.txt").read_text())
    kept = [block for block in blocks if block.partition("==")[0] in BACKEND]
    assert len(kept) == len(BACKEND)
    pinned = made.folder / "backend.txt"
    pinned.write_text("\n".join(kept))
    install(made, "-r", str(pinned))
    return made


def install(environment: Environment, *arguments: str) -> None:
    environment.run(["-m", "pip", "install", "--quiet", "--require-hashes", *arguments])


@pytest.fixture(scope="module")
def wheel(source: Source, backend: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("dist")
    made = distributions.build(source, backend, target)
    assert [path.suffix for path in made] == [".whl", ".gz"]
    return made[0]


def test_wheel_and_sdist_are_equal_however_and_wherever_they_are_built(
    source: Source,
    backend: Environment,
    wheel: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    before = os.umask(0o077)
    try:
        elsewhere = export(ROOT, tmp_path / "another" / "place", allow_dirty=True)
        (tmp_path / "dist").mkdir()
        made = distributions.build(elsewhere, backend, tmp_path / "dist")
    finally:
        os.umask(before)
    assert elsewhere == replace(source, root=elsewhere.root)
    first = {path.name: path.read_bytes() for path in wheel.parent.iterdir()}
    assert {path.name: path.read_bytes() for path in made} == first


def test_the_wheel_runs_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    empty = Environment(tmp_path / "empty")
    subprocess.run([sys.executable, "-m", "venv", empty.folder], check=True)
    install(empty, "-r", str(ROOT / "requirements" / "cli.txt"))
    empty.run(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", str(wheel)])
    empty.run(["-m", "pip", "check"])
    done = subprocess.run(
        [empty.folder / "bin" / "kubectl-gpu", "--help"], capture_output=True, text=True, check=True
    )
    assert "Usage: kubectl gpu" in done.stdout
    said = empty.run(
        ["-c", "from importlib.metadata import *; print(version('fractional-gpu-scheduler'))"]
    )
    assert said.startswith(__version__)


def test_the_packaged_chart_renders_what_the_folder_does(source: Source, tmp_path: Path) -> None:
    archive = tmp_path / "chart.tgz"
    archive.write_bytes(chart.package(source, build.binary("helm")))
    assert archive.read_bytes() == chart.package(source, build.binary("helm"))
    rendered = [
        helm("template", "gpu-scheduler", str(path), "-n", "gpus")
        for path in (archive, source.root / chart.CHART)
    ]
    assert all(each.returncode == 0 for each in rendered), rendered
    objects = [list(yaml.safe_load_all(each.stdout)) for each in rendered]
    if source.version == __version__:  # one of a tree with changes says so in its labels
        assert objects[0] == objects[1]
    assert len(objects[0]) == len(objects[1]) > 20


def test_the_charts_layout_holds_what_helm_pushes(source: Source) -> None:
    archive = chart.package(source, build.binary("helm"))
    layout = chart.layout(archive, source.epoch)
    index, blobs = opened(layout)
    (entry,) = index["manifests"]
    body = manifest(entry, blobs)
    assert body["config"]["mediaType"] == "application/vnd.cncf.helm.config.v1+json"
    (content,) = body["layers"]
    assert content["mediaType"] == "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
    assert followed(content, blobs) == archive
    described = json.loads(followed(body["config"], blobs))
    assert (described["name"], described["version"]) == ("gpu-scheduler", source.version)
    assert set(blobs) == {entry["digest"], body["config"]["digest"], content["digest"]}
    assert layout == chart.layout(archive, source.epoch)
