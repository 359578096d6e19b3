"""An owner who upgrades keeps the values that were set, and gets the new ones' defaults.

Helm's ``--reuse-values`` keeps all of the version before, defaults too: what is new has no value,
and the schema refuses that. So no page and no command of ours says so.
"""

import re
import shutil
from pathlib import Path

import pytest
from tests.chart.conftest import CHART, NAMESPACE, helm
from tests.e2e.before import sources
from tests.unit.docs.pages import ROOT, name_of, pages

SAID_IN = ("operator", "hack", "tools", "charts")


@pytest.fixture(scope="module")
def values() -> Path:
    """All of the version before, as somebody has them who has copied the file."""
    return sources() / "charts" / "gpu-scheduler" / "values.yaml"


def test_values_that_were_set_are_still_taken(values: Path) -> None:
    answer = helm("template", "gpu-scheduler", str(CHART), "-n", NAMESPACE, "-f", str(values))
    assert answer.returncode == 0, answer.stderr


def test_defaults_of_before_alone_are_refused_by_the_name_of_what_is_missing(
    values: Path, tmp_path: Path
) -> None:
    chart = shutil.copytree(CHART, tmp_path / "chart")
    shutil.copyfile(values, chart / "values.yaml")  # as --reuse-values does
    answer = helm("template", "gpu-scheduler", str(chart), "-n", NAMESPACE)
    assert answer.returncode != 0 and "missing property 'dashboard'" in answer.stderr
    answered = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    (row,) = (line for line in answered.splitlines() if line.startswith("| `missing property"))
    assert "--reset-then-reuse-values" in row


def test_nobody_is_told_to_reuse_the_defaults_of_before() -> None:
    ours = (file for folder in SAID_IN for file in sorted((ROOT / folder).rglob("*")))
    texts = [*pages(), *(file for file in ours if file.suffix in (".py", ".txt", ".tpl"))]
    advised = re.compile(r"helm upgrade[^`\n]{0,200} --reuse-values")
    found = [name_of(each) for each in texts if advised.search(each.read_text(encoding="utf-8"))]
    assert found == []
