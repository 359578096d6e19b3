"""SHA256SUMS, as sha256sum writes and checks it."""

from pathlib import Path

from cluster.files import sha256_of

NAME = "SHA256SUMS"


def sums(folder: Path) -> str:
    """The file's text, over everything in a folder, itself left out."""
    paths = (path for path in sorted(folder.iterdir()) if path.name != NAME)
    return "".join(f"{sha256_of(path)}  {path.name}\n" for path in paths)


def differing(one: str, other: str) -> list[str]:
    """Names of which two such files say different things, or only one something."""
    first, second = _parsed(one), _parsed(other)
    return sorted(n for n in first.keys() | second.keys() if first.get(n) != second.get(n))


def _parsed(text: str) -> dict[str, str]:
    pairs = (line.split("  ", 1) for line in text.splitlines())
    return {name: digest for digest, name in pairs}
