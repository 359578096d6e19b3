"""Writes docs/reference: ``make reference``."""

import sys

from reference.markdown import Undescribed
from reference.pages import FILES, FOLDER


def main() -> int:
    """Write all pages; 1 when something has no description."""
    FOLDER.mkdir(exist_ok=True)
    for path, made in FILES.items():
        try:
            text = made()
        except Undescribed as error:
            print(f"reference: {path.name}: {error}", file=sys.stderr)
            return 1
        path.write_text(text, encoding="utf-8")
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
