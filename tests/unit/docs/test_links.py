"""Links between pages lead somewhere, heading included, in a code host's viewer and on the site."""

import re
from pathlib import Path

from tests.unit.docs.pages import (
    DOCS,
    ROOT,
    headings,
    host_anchor,
    links,
    name_of,
    pages,
    prose,
    site_anchor,
)


def broken(page: Path, target: str) -> str:
    """What is wrong with a link; empty: it leads somewhere."""
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.is_relative_to(ROOT) or not file.exists():
        return f"{name_of(page)}: {target}: there is no such file"
    if not anchor or file.suffix != ".md":
        return ""
    words = [words for _, words in headings(file.read_text(encoding="utf-8"))]
    if anchor not in map(host_anchor, words):
        return f"{name_of(page)}: {target}: there is no such heading"
    # The site has the pages below docs/ alone.
    if file.is_relative_to(DOCS) and anchor not in map(site_anchor, words):
        return f"{name_of(page)}: {target}: the site calls this heading otherwise"
    return ""


def test_relative_links_lead_somewhere() -> None:
    found = [
        (page, target)
        for page in pages()
        for target in links(page.read_text(encoding="utf-8"))
        if "://" not in target and not target.startswith("mailto:")
    ]
    assert len(found) > 300
    assert [wrong for page, target in found if (wrong := broken(page, target))] == []


def test_a_link_that_leads_nowhere_is_seen() -> None:
    page = DOCS / "index.md"
    assert not broken(page, "states.md#phases")
    assert "no such file" in broken(page, "no-such-page.md")
    assert "no such file" in broken(page, "../../outside.md")
    assert "no such heading" in broken(page, "states.md#no-such-heading")


def test_anchors_are_those_of_the_two_places() -> None:
    assert host_anchor("HAMi: `gpu-scheduler.io/compat: hami`") == "hami-gpu-scheduleriocompat-hami"
    assert host_anchor("What if: `a` & b") == "what-if-a--b"
    assert site_anchor("What if: `a` & b") == "what-if-a-b"


def test_every_page_of_the_site_is_reached_from_its_first() -> None:
    reached, left = set[Path](), [DOCS / "index.md"]
    while left:
        page = left.pop()
        if page in reached or page.suffix != ".md" or not page.is_relative_to(DOCS):
            continue
        reached.add(page)
        found = links(page.read_text(encoding="utf-8"))
        files = (target.partition("#")[0] for target in found if "://" not in target)
        left += [(page.parent / file).resolve() for file in files if file]
    assert sorted(name_of(p) for p in set(DOCS.glob("*.md")) - reached) == []


def test_each_of_ten_questions_names_the_page_that_answers_it() -> None:
    text = (DOCS / "questions.md").read_text(encoding="utf-8")
    asked = re.split(r"^\*\*\d+\. ", text, flags=re.M)[1:]
    assert len(asked) == 10
    assert [each for each in asked if "?**" not in each or not links(each)] == []


def test_pictures_are_there_and_say_what_they_show() -> None:
    drawn = {path for page in pages() for path in pictures(page)}
    assert DOCS / "life-of-a-job.svg" in drawn
    for path in drawn:
        text = path.read_text(encoding="utf-8")
        assert "<title" in text and "<desc" in text or path.name in GENERATED, path
        assert "prefers-color-scheme: dark" in text or path.name in GENERATED, path
        assert not re.search(r"(href|src)=[\"']?https?:|@import|url\(['\"]?https?:", text), path


GENERATED = {"sharing.svg", "first-session.svg"}


def pictures(page: Path) -> list[Path]:
    text = prose(page.read_text(encoding="utf-8"))
    found = re.findall(r"!\[[^\]]+\]\(([^)\s]+\.svg)\)", text)
    return [(page.parent / target).resolve() for target in found]
