"""The defects of ``make defects`` are about the code as it is."""

from pathlib import Path

import pytest
from tests.defects.catalogue import DEFECTS, Defect

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_what_it_changes_is_there_once(defect: Defect) -> None:
    content = (ROOT / defect.file).read_text()
    assert content.count(defect.text) == 1, f"adapt tests/defects: {defect.file} has changed"
    assert defect.slip != defect.text
    assert [test for test in defect.first if not (ROOT / test).exists()] == []


def test_there_are_twenty_and_each_has_a_name_of_its_own() -> None:
    assert len({defect.name for defect in DEFECTS}) == len(DEFECTS) >= 20


def test_a_stale_one_says_so(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("a < b\na < b\n")
    defect = Defect("turned", "module.py", "a < b", "a > b", "It is wrong.", ())
    with pytest.raises(ValueError, match="module.py has its text 2 times, not once"):
        defect.put_into(tmp_path)
    assert (tmp_path / "module.py").read_text() == "a < b\na < b\n"
