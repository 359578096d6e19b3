"""docs/layers.svg: the packages as import-linter's contracts layer them, the top ones first.

A row is a layer; what stands in it uses what stands in the rows below. Packages with layers of
their own have their folders as lines in their box, in the same order. What each is, its docstring
says.
"""

import ast
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from xml.sax.saxutils import escape

from reference.picture import LINE, boxed, framed

_REPOSITORY = Path(__file__).parents[2]
_PROJECT = _REPOSITORY / "pyproject.toml"
_ROOT = "gpu_scheduler"
_CHARS_PER_PIXEL = 0.135
_WIDER = 4
_WIDTH, _MARGIN, _GAP, _BETWEEN = 960, 14, 10, 22
_HEAD, _FOOT = 32, 8


@dataclass(frozen=True, slots=True)
class _Box:
    """A package: its name, what it is, and its folders with what each is."""

    name: str
    x: int
    width: int
    about: list[str]
    folders: list[tuple[str, str]]

    @property
    def lines(self) -> int:
        return len(self.about) + len(self.folders)


def svg() -> str:
    """The picture as it should be."""
    rows = [list(_boxes(row, inner)) for row, inner in _layers()]
    heights = [_HEAD + _FOOT + LINE * max(box.lines for box in row) for row in rows]
    tops = [_MARGIN + top + _BETWEEN * n for n, top in enumerate(accumulate([0, *heights]))]
    drawn = [
        *(
            line
            for top, height, row in zip(tops, heights, rows, strict=False)
            for line in _row(top, height, row)
        ),
        *(_arrow(top - _BETWEEN) for top in tops[1 : len(rows)]),
    ]
    size = _WIDTH, tops[-1] - _BETWEEN + _MARGIN
    title = "The packages in layers; each uses those below it"
    return framed(size, title, _in_words(rows), 14, drawn)


def _layers() -> Iterator[tuple[list[str], Mapping[str, list[str]]]]:
    """The rows of packages, the top ones first, and by package its folders in the same order."""
    project = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))
    contracts = [c for c in project["tool"]["importlinter"]["contracts"] if c["type"] == "layers"]
    folders = {
        _name(package): [_name(each) for layer in c["layers"] for each in layer.split("|")]
        for c in contracts
        for package in c.get("containers", ())
    }
    for contract in contracts:
        if "containers" not in contract:
            for layer in contract["layers"]:
                yield [_name(each) for each in layer.replace(":", "|").split("|")], folders


def _name(package: str) -> str:
    return package.strip().removeprefix(f"{_ROOT}.")


def _boxes(row: list[str], inner: Mapping[str, list[str]]) -> Iterator[_Box]:
    """Side by side; one with folders is wider."""
    weights = [_WIDER if name in inner else 1 for name in row]
    room, x = _WIDTH - 2 * _MARGIN - _GAP * (len(row) - 1), _MARGIN
    for name, weight in zip(row, weights, strict=True):
        width = room * weight // sum(weights)
        chars = int((width - 24) * _CHARS_PER_PIXEL)
        about = textwrap.wrap(_about(name), chars)
        folders = [
            (each, textwrap.shorten(_about(f"{name}.{each}"), chars - len(each), placeholder="…"))
            for each in inner.get(name, ())
        ]
        yield _Box(name, x, width, about, folders)
        x += width + _GAP


def _about(name: str) -> str:
    """The first sentence of a module's docstring."""
    path = _REPOSITORY / "operator" / _ROOT / name.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    said = said.partition("\n\n")[0].replace("``", "")
    return " ".join(said.split()).partition(". ")[0].rstrip(".")


def _row(top: int, height: int, row: list[_Box]) -> Iterator[str]:
    for box in row:
        lines = [escape(each) for each in box.about]
        lines += [
            f'<tspan class="head">{escape(each)}</tspan> {escape(said)}'.rstrip()
            for each, said in box.folders
        ]
        yield from boxed((box.x, top, box.width, height), box.name, lines, _HEAD + 13)


def _arrow(top: int) -> str:
    x = _WIDTH // 2
    return (
        f'<line class="way" x1="{x}" y1="{top + 2}" x2="{x}" y2="{top + _BETWEEN - 2}" '
        'marker-end="url(#tip)"/>'
    )


def _in_words(rows: list[list[_Box]]) -> str:
    """The layers, for who cannot see them."""
    said = ["; ".join(", ".join(box.name for box in row) for row in rows)]
    said += [
        f"{box.name}: {', '.join(each for each, _ in box.folders)}"
        for row in rows
        for box in row
        if box.folders
    ]
    return ". ".join(said) + "."
