"""What a page of HTML links to, loads by itself, and can be linked at."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

_CSS_URL = re.compile(r"url\(\s*['\"]?([^'\")]+)")
_LOADING_RELS = {"stylesheet", "icon", "preconnect", "dns-prefetch", "preload", "prefetch"}
_LOADED_BY = {
    "script": ("src",),
    "img": ("src",),
    "iframe": ("src",),
    "source": ("src",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "object": ("data",),
    "embed": ("src",),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
}


@dataclass(slots=True)
class Page:
    """One page.

    Attributes:
        links: what a reader may follow.
        loads: what a browser fetches by itself.
        anchors: ids and names.
        drawn_by_script: it has a picture that the theme has drawn by mermaid.
        repository: it shows a repository, of which the theme asks stars and forks.
    """

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    drawn_by_script: bool = False
    repository: bool = False


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self._style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        page, given = self.page, {key: value or "" for key, value in attrs}
        page.anchors.update(given[key] for key in ("id", "name") if key in given)
        page.loads += [given[key] for key in _LOADED_BY.get(tag, ()) if key in given]
        page.loads += _CSS_URL.findall(given.get("style", ""))
        classes = given.get("class", "").split()
        page.drawn_by_script |= "mermaid" in classes
        page.repository |= given.get("data-md-component") == "source"
        href = given.get("href")
        if tag == "a" and href is not None:
            page.links.append(href)
        elif tag == "link" and href is not None:
            rels = set(given.get("rel", "").split())
            (page.loads if rels & _LOADING_RELS else page.links).append(href)
        self._style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._style = False

    def handle_data(self, data: str) -> None:
        if self._style:
            self.page.loads += _CSS_URL.findall(data)


def read(text: str) -> Page:
    """What stands in a page."""
    reader = _Reader()
    reader.feed(text)
    return reader.page
