"""Opens every page of build/site in Chromium, light and dark, wide and narrow: ``make docs-look``.

A page is wrong when it is wider than the screen, when a script complains, or when anything is asked
of another host. Of all pages, every reason, field, value, setting and metric is also typed into the
search, which must have it among its first results. ``--pictures FOLDER`` keeps what was seen.
"""

import argparse
import asyncio
import base64
import functools
import http.server
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from itertools import product
from pathlib import Path

from docs_site.__main__ import SITE
from docs_site.browser import Browser, browser
from docs_site.names import searched

SCHEMES, WIDTHS, HEIGHT = ("light", "dark"), (1400, 400), 900
_ALL = "*"
_TALLEST = 4000  # of a picture, pixels
_FIRST = 10  # results that a reader sees without another page of them
_OVERFLOW = "document.documentElement.scrollWidth - innerWidth"
# The page takes the colours of the system by a script, soon after they change.
_IS_AS_ASKED = """(async () => {
  const isDark = () => getComputedStyle(document.body).backgroundColor.match(/\\d+/g)
    .slice(0, 3).reduce((sum, each) => sum + Number(each), 0) < 3 * 128;
  for (let tries = 0; tries < 40 && isDark() !== DARK; tries++)
    await new Promise(done => setTimeout(done, 50));
  return isDark() === DARK;
})()"""
_SEARCH = """(async () => {
  const root = () => [...document.querySelectorAll('*')].find(e => e.shadowRoot)?.shadowRoot;
  const titles = () => [...root().querySelectorAll('a[role=option]')]
    .map(a => (a.querySelector('h1,h2,h3,[id$=-title]') ?? a).innerText.trim().split('\\n')[0]);
  const button = document.querySelector('label[for=__search], .md-search__button');
  for (let tries = 0; tries < 20 && !root()?.querySelector('input'); tries++) {
    button.click();  // a page that has just been opened does not listen yet
    await new Promise(done => setTimeout(done, 500));
  }
  const input = root().querySelector('input');
  const found = {};
  for (const word of WORDS) {
    input.value = word;
    input.dispatchEvent(new Event('input', {bubbles: true}));
    for (let tries = 0; tries < 60 && !found[word]; tries++) {
      await new Promise(done => setTimeout(done, 25));
      if (titles().slice(0, FIRST).includes(word)) found[word] = true;
    }
  }
  return WORDS.filter(word => !found[word]);
})()"""


def main() -> int:
    """Look; 1 when something is wrong."""
    parser = argparse.ArgumentParser(description="Open every page of the docs site in Chromium.")
    parser.add_argument("pages", nargs="?", default=_ALL, help="for example 'reference/*'")
    parser.add_argument("--pictures", type=Path, help="folder for a picture of each page")
    arguments = parser.parse_args()
    try:
        wrong = asyncio.run(_look(arguments.pages, arguments.pictures))
    except FileNotFoundError as error:
        wrong = [str(error)]
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


async def _look(pattern: str, pictures: Path | None) -> list[str]:
    there = (path.relative_to(SITE).as_posix() for path in sorted(SITE.rglob("*.html")))
    pages = [name for name in there if fnmatch(name, pattern)]
    wrong: list[str] = []
    with served(SITE) as address:
        async with browser() as page:
            for name in pages:
                for width, scheme in product(WIDTHS, SCHEMES):
                    await _screen(page, scheme, width)
                    if scheme == SCHEMES[0]:  # the other is a switch of the system, without a load
                        await page.go(f"{address}/{name}")
                    wrong += await _seen(page, name, scheme, width)
                    if pictures is not None:
                        shot = await _picture(page, width)
                        _keep(shot, pictures / f"{scheme}-{width}" / f"{name}.png")
            words = searched() if pattern == _ALL else []
            missed = await _search(page, address, words)
            wrong += [f"search: {word} is not among the first {_FIRST}" for word in missed]
            wrong += [f"asked of another host: {each}" for each in sorted(set(page.refused))]
    screens = len(SCHEMES) * len(WIDTHS)
    print(
        f"{len(pages)} pages on {screens} screens, {len(words)} names searched: {len(wrong)} wrong"
    )
    return wrong


async def _screen(page: Browser, scheme: str, width: int) -> None:
    await page.ask(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=HEIGHT,
        deviceScaleFactor=1,
        mobile=width < 600,
    )
    feature = {"name": "prefers-color-scheme", "value": scheme}
    await page.ask("Emulation.setEmulatedMedia", features=[feature])


async def _seen(page: Browser, name: str, scheme: str, width: int) -> list[str]:
    how = f"{name} ({scheme}, {width} wide)"
    wrong = [f"{how}: {error}" for error in page.errors]
    page.errors.clear()
    if (over := await page.value(_OVERFLOW)) > 0:
        wrong.append(f"{how}: {over} pixels wider than the screen")
    if not await page.value(_IS_AS_ASKED.replace("DARK", str(scheme == "dark").lower())):
        wrong.append(f"{how}: its background is not {scheme}")
    return wrong


async def _picture(page: Browser, width: int) -> bytes:
    size = (await page.ask("Page.getLayoutMetrics"))["cssContentSize"]
    height = min(size["height"], _TALLEST)
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    shot = await page.ask("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
    return base64.b64decode(shot["data"])


def _keep(picture: bytes, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(picture)


async def _search(page: Browser, address: str, words: list[str]) -> list[str]:
    await _screen(page, "light", WIDTHS[0])
    await page.go(f"{address}/index.html")
    script = _SEARCH.replace("WORDS", json.dumps(words)).replace("FIRST", str(_FIRST))
    missed: list[str] = await page.value(script)
    return missed


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which this machine serves a folder."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


if __name__ == "__main__":
    sys.exit(main())
