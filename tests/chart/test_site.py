"""The docs site is built without a defect, and its search finds what people look for.

Zensical is installed on first use, in an environment of its own.
"""

import json
import os
from pathlib import Path

import pytest

from cluster.locks import exclusive
from docs_site.__main__ import SITE, build
from docs_site.names import searched
from reference import reasons


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built once: the workers of a run share the folder, so the first makes it for all."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        return build()
    built = tmp_path_factory.getbasetemp().parent / f"site-of-{run}"
    with exclusive(built.with_suffix(".lock")):
        if not built.exists():
            build()
            built.touch()
    return SITE


@pytest.fixture(scope="module")
def titles(site: Path) -> dict[str, set[str]]:
    """Locations of sections by their title, as the search knows them."""
    found: dict[str, set[str]] = {}
    index = json.loads((site / "search.json").read_text(encoding="utf-8"))
    for each in index["items"]:
        found.setdefault(each["title"], set()).add(each["location"])
    return found


def test_search_finds_the_section_of_each_reason(titles: dict[str, set[str]]) -> None:
    missing = [
        word
        for word in reasons.words()
        if f"troubleshooting.html#{word.lower()}" not in titles.get(word, ())
    ]
    assert missing == []


def test_search_finds_each_field_value_setting_and_metric(titles: dict[str, set[str]]) -> None:
    names = searched()
    assert len(names) > 400
    assert [name for name in names if name not in titles] == []


def test_pages_that_only_show_a_file_are_not_searched(site: Path) -> None:
    assert list((site / "files").rglob("*.html"))
    assert '"location":"files/' not in (site / "search.json").read_text(encoding="utf-8")
