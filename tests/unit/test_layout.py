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
