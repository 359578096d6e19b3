"""What the pictures of the docs have in common: a frame, a title, words for who cannot see them.

The tip of arrows is ``url(#tip)``. Drawn here and not by a script in the browser, which the site
would have to ask another origin for.
"""

from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape

_STYLE = """
    .box { fill: #f6f8fa; stroke: #afb8c1; } .head { fill: #1f2328; font-weight: 600; }
    .word { fill: #444c56; } .way { fill: none; stroke: #6e7781; stroke-width: 1.4; }
    .tip { fill: #6e7781; } text { font-size: %dpx; }
    @media (prefers-color-scheme: dark) {
      .box { fill: #161b22; stroke: #484f58; } .head { fill: #e6edf3; }
      .word { fill: #c0c7cf; } .way { stroke: #8b949e; } .tip { fill: #8b949e; }
    }
  """


LINE = 20  # of words in a box


def boxed(
    place: tuple[int, int, int, int], head: str, lines: Iterable[str], first: int
) -> Iterator[str]:
    """A box at x and y, of a width and a height, with what it is called and what stands in it.

    ``lines`` are SVG; the first one stands so many pixels below the top.
    """
    x, y, width, height = place
    yield f'<rect class="box" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>'
    yield f'<text class="head" x="{x + 12}" y="{y + 23}">{escape(head)}</text>'
    for at, line in enumerate(lines):
        yield f'<text class="word" x="{x + 12}" y="{y + first + LINE * at}">{line}</text>'


def framed(size: tuple[int, int], title: str, words: str, pixels: int, lines: list[str]) -> str:
    """A picture of this width and height, with letters of so many pixels.

    ``words`` say what it shows, ``lines`` draw it.
    """
    width, height = size
    body = "\n".join(f"  {line}" for line in lines)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" \
aria-labelledby="t d" font-family="system-ui, -apple-system, 'Segoe UI', sans-serif">
  <title id="t">{escape(title)}</title>
  <desc id="d">{escape(words)}</desc>
  <style>{_STYLE % pixels}</style>
  <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" \
orient="auto"><path class="tip" d="M0 0.5 L8 4 L0 7.5z"/></marker>
{body}
</svg>
"""
