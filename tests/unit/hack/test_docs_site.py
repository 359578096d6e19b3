"""What the build of the docs site does to Markdown, and looks for in HTML."""

from collections.abc import Callable
from pathlib import Path

import pytest

from docs_site import checks, staging
from docs_site.errors import SiteError

Write = Callable[[str, str], None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    return written


def test_a_link_out_of_docs_leads_to_a_page_that_shows_the_file(
    tmp_path: Path, write: Write
) -> None:
    write("docs/a.md", "see [it](../examples/x.yaml) and [b](sub/b.md#c)\n")
    write("docs/sub/b.md", "[it](../../examples/x.yaml#L3)\n")
    write("examples/x.yaml", "kind: ```\n")
    staging.stage(tmp_path, tmp_path / "pages")
    pages = tmp_path / "pages"
    assert (pages / "a.md").read_text() == (
        "see [it](files/examples/x.yaml.md) and [b](sub/b.md#c)\n"
    )
    assert (pages / "sub/b.md").read_text() == "[it](../files/examples/x.yaml.md#L3)\n"
    shown = (pages / "files/examples/x.yaml.md").read_text()
    assert "# examples/x.yaml\n" in shown
    assert "````yaml\nkind: ```\n````\n" in shown


def test_a_link_to_a_folder_leads_to_a_list_of_its_files(tmp_path: Path, write: Write) -> None:
    write("docs/a.md", "[all](../examples/any) [data](measured)\n")
    write("docs/measured/one.json", "{}")
    write("examples/any/x.yaml", "kind: X\n")
    staging.stage(tmp_path, tmp_path / "pages")
    files = tmp_path / "pages" / "files"
    assert "- [x.yaml](any/x.yaml.md)\n" in (files / "examples/any.md").read_text()
    assert (files / "examples/any/x.yaml.md").is_file()
    assert "- [one.json](../../measured/one.json)\n" in (files / "docs/measured.md").read_text()


def test_links_in_code_stay_as_they_are(tmp_path: Path, write: Write) -> None:
    text = "```\n[it](../gone)\n```\n~~~~\n```\n[it](../gone)\n~~~~\n"
    write("docs/a.md", text)
    staging.stage(tmp_path, tmp_path / "pages")
    assert (tmp_path / "pages/a.md").read_text() == text


def test_a_link_to_a_file_that_is_not_there_is_an_error_that_names_the_page(
    tmp_path: Path, write: Write
) -> None:
    write("docs/a.md", "[it](../gone.yaml) [that](../../above)\n")
    with pytest.raises(SiteError) as error:
        staging.stage(tmp_path, tmp_path / "pages")
    assert "docs/a.md: link to gone.yaml: there is no such file" in str(error.value)
    assert "docs/a.md: link to ../above: there is no such file" in str(error.value)


GOOD = '<h1 id="top">A</h1><a href="b.html#there">b</a><a href="https://example.org/">out</a>'


def found(tmp_path: Path, write: Write, body: str, nav: str = "[{S: [a.md, b.md]}]") -> list[str]:
    write("site/a.html", body)
    write("site/b.html", '<p id="there"></p>')
    write("docs/a.md", "")
    write("docs/b.md", "")
    write("mkdocs.yml", f"nav: {nav}\n")
    return checks.defects(tmp_path / "site", tmp_path / "docs", tmp_path / "mkdocs.yml")


def test_a_good_site_has_no_defect(tmp_path: Path, write: Write) -> None:
    write("site/x.css", "p { background: url(data:image/png;base64,AA==) }")
    assert found(tmp_path, write, GOOD) == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('<a href="c.html">', "a.html: c.html leads to nothing"),
        ('<a href="b.html#no">', "a.html: b.html#no: b.html has no such anchor"),
        ('<a href="#no">', "a.html: #no: a.html has no such anchor"),
        ('<img src="no.svg">', "a.html: no.svg leads to nothing"),
        ('<img src="//cdn.example/x.png">', "a.html: would load //cdn.example/x.png from another"),
        ('<script src="https://cdn.example/x.js">', "a.html: would load https://cdn.example/x.js"),
        ('<link rel="preconnect" href="https://f.example">', "would load https://f.example"),
        ("<style>p{src:url('https://f.example/f.woff')}</style>", "would load https://f.example/f"),
        ('<p style="background:url(https://f.example)">', "would load https://f.example"),
        ('<pre class="mermaid">', "drawn by a script of another origin"),
        ('<div data-md-component="source">', "ask the repository's host"),
    ],
)
def test_a_defect_is_found(tmp_path: Path, write: Write, body: str, said: str) -> None:
    (defect,) = found(tmp_path, write, body)
    assert said in defect


def test_a_picture_that_nobody_draws_is_an_error(tmp_path: Path, write: Write) -> None:
    write("docs/sub/c.md", "# C\n\n```mermaid\ngraph TD\n```\n")
    (defect,) = found(tmp_path, write, GOOD, "[a.md, b.md, sub/c.md]")
    assert defect == "docs/sub/c.md:3: mermaid is not drawn"


def test_what_style_sheets_and_pictures_load_is_looked_at(tmp_path: Path, write: Write) -> None:
    write("site/x.css", '@import "https://f.example/a.css"; p { src: url(//f.example/f) }')
    write("site/x.svg", "<svg><style>p { src: url('http://f.example/f') }</style></svg>")
    assert len(found(tmp_path, write, GOOD)) == 3


@pytest.mark.parametrize(
    ("nav", "said"),
    [
        ("[a.md]", "nav does not list docs/b.md"),
        ("[a.md, b.md, c.md]", "nav lists c.md, which is not in docs/"),
        ("[a.md, {B: b.md}, {S: [b.md]}]", "nav lists b.md twice"),
    ],
)
def test_the_navigation_lists_every_page_once(
    tmp_path: Path, write: Write, nav: str, said: str
) -> None:
    (defect,) = found(tmp_path, write, GOOD, nav)
    assert said in defect
