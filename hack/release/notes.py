"""The notes of a release: its section of CHANGELOG.md."""

import re

_HEADING = re.compile(r"^## (.+)$", re.M)


def section(changelog: str, version: str) -> str:
    """What CHANGELOG.md says of a version; of one that is `+dirty` what it says of the plain one.

    Raises:
        KeyError: it says nothing.
    """
    wanted = version.partition("+")[0]
    headings = list(_HEADING.finditer(changelog))
    for heading, after in zip(headings, [*headings[1:], None], strict=True):
        if heading[1].split(" ")[0] == wanted:
            text = changelog[heading.end() : after.start() if after else len(changelog)].strip()
            if text:
                return f"# {heading[1]}\n\n{text}\n"
    raise KeyError(f"CHANGELOG.md has no section `## {wanted} — DATE` with something in it")
