"""The version: stated by `gpu_scheduler/__init__.py`, and written from there into few places.

`make version` writes these places; a unit test names those that are stale, and finds any other
place that states the version. What only records which version it was made with (CHANGELOG.md,
measurements, recorded sessions) keeps the old one.
"""

import re
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path("operator/gpu_scheduler/__init__.py")
_IMAGE = re.compile(r"example\.com/gpu-scheduler:(\d\S*)")
_PLUGIN = re.compile(r'"name": "gpu-scheduler-headlamp",\n +"version": "([^"]+)"')
_STATED = re.compile(r'^__version__ = "([^"]+)"$', re.M)


@dataclass(frozen=True, slots=True)
class Place:
    """A file that repeats the version: where its one group matches."""

    file: Path
    pattern: re.Pattern[str]


PLACES = (
    Place(Path("charts/gpu-scheduler/Chart.yaml"), re.compile(r"^version: (.+)$", re.M)),
    Place(Path("charts/gpu-scheduler/Chart.yaml"), re.compile(r"^appVersion: (.+)$", re.M)),
    Place(Path("README.md"), _IMAGE),
    Place(Path("docs/bring-your-own-workload.md"), _IMAGE),
    Place(Path("docs/owners.md"), _IMAGE),
    Place(Path("docs/start.md"), _IMAGE),
    Place(Path("headlamp/package.json"), _PLUGIN),
    Place(Path("headlamp/package-lock.json"), _PLUGIN),
)


def stated(root: Path) -> str:
    """The version of the sources below `root`.

    Raises:
        ValueError: it is not stated, or not once.
    """
    found = _STATED.findall((root / SOURCE).read_text(encoding="utf-8"))
    if len(found) != 1:
        raise ValueError(f'{SOURCE}: one line `__version__ = "…"`, found {len(found)}')
    return str(found[0])


def restated(text: str, pattern: re.Pattern[str], version: str) -> str:
    """`text` with `version` wherever the pattern's group matches."""

    def put(match: re.Match[str]) -> str:
        whole, start = match.group(), match.start()
        return whole[: match.start(1) - start] + version + whole[match.end(1) - start :]

    return pattern.sub(put, text)


def stale(root: Path) -> list[str]:
    """The places that state another version, or none."""
    version, found = stated(root), []
    for place in PLACES:
        text = (root / place.file).read_text(encoding="utf-8")
        said = set(place.pattern.findall(text))
        if said != {version}:
            found.append(f"{place.file}: {', '.join(sorted(said)) or 'nothing'}, not {version}")
    return found


def write(root: Path) -> None:
    """State the version in all places."""
    version = stated(root)
    for place in PLACES:
        path = root / place.file
        text = path.read_text(encoding="utf-8")
        path.write_text(restated(text, place.pattern, version), encoding="utf-8")


def set_version(root: Path, version: str) -> None:
    """State another version at the source, and write it into all places."""
    path = root / SOURCE
    text = path.read_text(encoding="utf-8")
    path.write_text(restated(text, _STATED, version), encoding="utf-8")
    write(root)


def image_tag(version: str) -> str:
    """As images and the chart have it: a tag cannot hold a `+`."""
    return version.replace("+", "-")
