"""Nobody is told to install another project's package: its name in the public index is not ours."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
# `pip install gpu-scheduler`, with or without extras; not the chart's `helm install`.
STRANGER = re.compile(r"(?<!helm )install (?:-\S+ )*['\"]?gpu[-_]scheduler(?:\[|['\"]|\s*$)", re.M)


def test_the_pattern_sees_what_it_is_for() -> None:
    assert STRANGER.search("x: pip install 'gpu-scheduler[cli]'")
    assert STRANGER.search("pip install -U gpu-scheduler\n")
    assert not STRANGER.search("helm install gpu-scheduler charts/gpu-scheduler")


def test_no_page_and_no_message_names_the_package() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    pages += [p for folder in ("operator", "charts", "examples") for p in text_files(ROOT / folder)]
    assert len(pages) > 200
    found = [str(p.relative_to(ROOT)) for p in pages if STRANGER.search(p.read_text())]
    assert not found


def text_files(folder: Path) -> list[Path]:
    kinds = {".py", ".md", ".txt", ".yaml", ".tpl"}
    return [p for p in folder.rglob("*") if p.suffix in kinds]
