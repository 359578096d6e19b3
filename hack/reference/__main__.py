"""Writes docs/reference: ``make reference``."""

import sys

from reference.markdown import Undescribed
from reference.pages import FOLDER, PAGES


def main() -> int:
    """Write all pages; 1 when something has no description."""
    FOLDER.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        try:
            text = page()
        except Undescribed as error:
            print(f"reference: {name}.md: {error}", file=sys.stderr)
            return 1
        (FOLDER / f"{name}.md").write_text(text, encoding="utf-8")
        print(FOLDER / f"{name}.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
