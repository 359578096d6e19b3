"""Prints what ``test_leads`` expects: ``python -m tests.unit.dashboard.sentences``."""

from typing import Any

from tests.unit.dashboard import test_leads


def sentences() -> list[tuple[str, str]]:
    """Each with the page that it opens; a paler second one stands after the bar."""
    found = []
    for name, test in vars(test_leads).items():
        for mark in getattr(test, "pytestmark", ()):
            cases: list[Any] = mark.args[1]
            found += [(name.removeprefix("test_").replace("_", " "), case[-1]) for case in cases]
    return found


if __name__ == "__main__":
    page = ""
    for of, sentence in sentences():
        if of != page:
            page = of
            print(f"\n{page}")  # noqa: T201
        print(f"  {sentence}")  # noqa: T201
    print(f"\n{len(sentences())} sentences")  # noqa: T201
