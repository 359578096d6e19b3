"""operator/ is a folder of sources, not a package: it would shadow the module of that name."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_operator_is_not_a_package() -> None:
    assert (ROOT / "operator" / "gpu_scheduler" / "__init__.py").exists()
    assert not (ROOT / "operator" / "__init__.py").exists()


def test_the_standard_library_works_from_the_root_of_the_repository() -> None:
    tool = subprocess.run(
        [sys.executable, "-m", "json.tool"],
        cwd=ROOT,
        input='{"a": 1}',
        capture_output=True,
        text=True,
        check=False,
    )
    assert (tool.returncode, tool.stderr) == (0, "")
    assert '"a": 1' in tool.stdout


def test_each_decision_has_a_number_of_its_own_and_a_line_in_both_lists() -> None:
    folder = ROOT / "docs" / "adr"
    pages = sorted(page.name for page in folder.glob("[0-9]*.md"))
    numbers = [name[:4] for name in pages]
    assert len(numbers) == len(set(numbers)), pages
    listed = (folder / "README.md").read_text()
    assert [name for name in pages if f"[{name[:4]}]({name})" not in listed] == []
    nav = (ROOT / "mkdocs.yml").read_text()
    assert [name for name in pages if f"- adr/{name}\n" not in nav] == []
    titles = {name: (folder / name).read_text().split("\n", 1)[0] for name in pages}
    assert [name for name, title in titles.items() if not title.startswith(f"# {name[:4]} ")] == []
