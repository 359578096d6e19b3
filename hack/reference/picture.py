"""What the pictures of the docs have in common: a frame, a title, words for who cannot see them.

The tip of arrows is ``url(#tip)``. Drawn here and not by a script in the browser, which the site
would have to ask another origin for.
"""

from xml.sax.saxutils import escape


def framed(size: tuple[int, int], title: str, words: str, style: str, lines: list[str]) -> str:
    """A picture of this width and height; ``words`` say what it shows, ``lines`` draw it."""
    width, height = size
    body = "\n".join(f"  {line}" for line in lines)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" \
aria-labelledby="t d" font-family="system-ui, -apple-system, 'Segoe UI', sans-serif">
  <title id="t">{escape(title)}</title>
  <desc id="d">{escape(words)}</desc>
  <style>{style}</style>
  <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" \
orient="auto"><path class="tip" d="M0 0.5 L8 4 L0 7.5z"/></marker>
{body}
</svg>
"""
