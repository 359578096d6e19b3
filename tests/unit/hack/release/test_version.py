"""The version is stated once, and everything that repeats it follows."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gpu_scheduler import __version__
from release import version
from release.notes import section

ROOT = Path(__file__).parents[4]
# What was made with a version keeps it, and other people's versions are theirs.
RECORDS = re.compile(
    r"CHANGELOG\.md|docs/first-session\.md|docs/measurements/|docs/adr/|requirements/|.*go\.(mod|sum)$"
    r"|operator/gpu_scheduler/__init__\.py|.*\.(svg|csv|xz|jsonl?)$"
)
# Made by `make reference`, which has a drift test of its own.
GENERATED = re.compile(r"docs/reference/")


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    names = filter(None, listed.stdout.decode().split("\0"))
    return [Path(name) for name in names if (ROOT / name).is_file()]


def test_the_sources_state_what_the_package_says() -> None:
    assert version.stated(ROOT) == __version__


def test_every_place_that_repeats_it_is_up_to_date() -> None:
    assert not version.stale(ROOT), "make version writes them anew"


def test_no_other_file_states_it() -> None:
    wanted = re.compile(rf"(?<![\d.]){re.escape(__version__)}(?![\d]|\.\d)")
    known = {place.file for place in version.PLACES}
    found = []
    for path in tracked():
        if path in known or RECORDS.match(str(path)) or GENERATED.match(str(path)):
            continue
        if wanted.search((ROOT / path).read_text(encoding="utf-8", errors="replace")):
            found.append(str(path))
    assert not found, "read it from gpu_scheduler, or add a place to release.version"


def test_the_changelog_has_a_section_for_it() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert len(section(text, __version__)) > 100
    assert re.search(rf"^## {re.escape(__version__)} — \d{{4}}-\d\d-\d\d$", text, re.M)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for file in {version.SOURCE, *(place.file for place in version.PLACES)}:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    return tmp_path


def test_a_new_version_makes_each_place_stale_until_it_is_written(sources: Path) -> None:
    path = sources / version.SOURCE
    path.write_text(path.read_text().replace(__version__, "7.8.9"))
    stale = version.stale(sources)
    assert len(stale) == len(version.PLACES)
    assert all("not 7.8.9" in each for each in stale)
    version.write(sources)
    assert not version.stale(sources)
    assert "appVersion: 7.8.9" in (sources / "charts/gpu-scheduler/Chart.yaml").read_text()


def test_a_place_that_no_longer_repeats_it_is_told(sources: Path) -> None:
    readme = sources / "README.md"
    readme.write_text(readme.read_text().replace(f":{__version__}", ""))
    assert version.stale(sources) == [f"README.md: nothing, not {__version__}"]


def test_a_dirty_version_is_written_everywhere(sources: Path) -> None:
    version.set_version(sources, "7.8.9+dirty")
    assert version.stated(sources) == "7.8.9+dirty"
    assert not version.stale(sources)
    assert version.image_tag("7.8.9+dirty") == "7.8.9-dirty"


def test_sources_that_state_none_or_two_are_refused(tmp_path: Path) -> None:
    path = tmp_path / version.SOURCE
    path.parent.mkdir(parents=True)
    for text in ("", '__version__ = "1"\n__version__ = "2"\n'):
        path.write_text(text)
        with pytest.raises(ValueError, match="__version__"):
            version.stated(tmp_path)
