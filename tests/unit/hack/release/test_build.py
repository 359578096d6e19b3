"""What refuses a release before anything is built, and the CRDs in one file."""

import shutil
from pathlib import Path

import pytest
import yaml

from gpu_scheduler import __version__
from release import build, version
from release.errors import ReleaseError
from release.source import Source

ROOT = Path(__file__).parents[4]


@pytest.fixture
def release(tmp_path: Path) -> build.Release:
    """Of a copy of what its texts are made from."""
    root = tmp_path / "source"
    files = {version.SOURCE, Path("CHANGELOG.md"), *(place.file for place in version.PLACES)}
    for file in (*files, *(p.relative_to(ROOT) for p in (ROOT / "crds").glob("*.yaml"))):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, root / file)
    (tmp_path / "dist").mkdir()
    source = Source(root, version.stated(root), 0, "0" * 40)
    return build.Release(source, tmp_path / "dist")


def test_all_crds_are_in_one_file(release: build.Release) -> None:
    build.texts(release)
    text = (release.target / f"gpu-scheduler-crds-{__version__}.yaml").read_text()
    singly = [yaml.safe_load(p.read_text()) for p in sorted((ROOT / "crds").glob("*.yaml"))]
    assert list(yaml.safe_load_all(text)) == singly
    assert len(singly) >= 4


def test_the_notes_are_the_changelogs(release: build.Release) -> None:
    build.texts(release)
    notes = (release.target / f"release-notes-{__version__}.md").read_text()
    assert notes.startswith(f"# {__version__} — ")
    assert notes.partition("\n")[2].strip() in (ROOT / "CHANGELOG.md").read_text()


def test_a_stale_place_refuses_the_release_and_says_what_mends_it(release: build.Release) -> None:
    chart = release.source.root / "charts/gpu-scheduler/Chart.yaml"
    chart.write_text(chart.read_text().replace(__version__, "0.0.1"))
    with pytest.raises(ReleaseError, match=r"(?s)make version.*Chart\.yaml: 0\.0\.1"):
        build.texts(release)


def test_a_version_without_a_section_refuses_the_release(release: build.Release) -> None:
    (release.source.root / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n- x\n")
    with pytest.raises(ReleaseError, match=r"CHANGELOG\.md has no section"):
        build.texts(release)
