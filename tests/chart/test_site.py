"""The docs site is built without a defect, and its search finds what people look for.

Zensical is installed on first use, in an environment of its own.
"""

from pathlib import Path

import pytest

from docs_site import checks
from docs_site.__main__ import build
from gpu_scheduler.agent import settings as agent
from gpu_scheduler.runtime import settings as operator
from reference import crds, metrics, reasons, settings, values


@pytest.fixture(scope="module")
def site() -> Path:
    return build()


@pytest.fixture(scope="module")
def titles(site: Path) -> dict[str, set[str]]:
    """Locations of sections by their title, as the search knows them."""
    found: dict[str, set[str]] = {}
    for each in checks.search_entries(site):
        found.setdefault(each["title"], set()).add(each["location"])
    return found


def test_search_finds_the_section_of_each_reason(titles: dict[str, set[str]]) -> None:
    missing = [
        word
        for word in reasons.words()
        if f"troubleshooting.html#{word.lower()}" not in titles.get(word, ())
    ]
    assert missing == []


def test_search_finds_each_field(titles: dict[str, set[str]]) -> None:
    paths = [
        path
        for crd in crds.kinds()
        for path, *_ in crds.fields(crds.schema_of(crd), crd["spec"]["names"]["singular"])
    ]
    assert len(paths) > 150
    assert [path for path in paths if path not in titles] == []


def test_search_finds_each_value_setting_and_metric(titles: dict[str, set[str]]) -> None:
    wanted = {
        *(value.path for value in values.values() if not value.is_section),
        *(name for name, *_ in settings.variables(operator.Settings, operator.PREFIX)),
        *(name for name, *_ in settings.variables(agent.Settings, agent.PREFIX)),
    }
    families = (*metrics.of_operator(), *metrics.of_agent())
    wanted |= {metrics.heading(family) for family in families}
    assert sorted(wanted - titles.keys()) == []


def test_pages_that_only_show_a_file_are_not_searched(site: Path) -> None:
    assert list((site / "files").rglob("*.html"))
    assert '"location":"files/' not in (site / "search.json").read_text(encoding="utf-8")
