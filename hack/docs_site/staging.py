"""A copy of docs/ in which every link to a file of the repository leads somewhere.

A site has nothing above docs/. So each file outside of it that a page links to gets a page of its
own below ``files/``, which shows it, and a folder gets one that lists its files; lines stay where
they are, so what Zensical says of a page is true of its source.
"""

import posixpath
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from docs_site.errors import SiteError

FILES = "files"
_LINK = re.compile(r"(\]\()([^()\s#]+)((?:#[^()\s]*)?(?:\s+\"[^\"]*\")?\))")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_LANGUAGES = {".yml": "yaml", ".yaml": "yaml", ".py": "python", ".sh": "bash", ".c": "c"}
_LARGEST_BYTES = 200_000


def stage(root: Path, pages: Path) -> None:
    """Write ``pages`` anew from ``root/docs``.

    Raises:
        SiteError: a link leads to what is not there, out of the repository or to no text.
    """
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(root / "docs", pages)

    def is_folder(path: str) -> bool:
        return (root / path).is_dir()

    wanted: dict[str, str] = {}  # path in the repository, and the first page that links to it
    for page in sorted(pages.rglob("*.md")):
        name = page.relative_to(pages).as_posix()
        text, linked = relinked(page.read_text(encoding="utf-8"), name, is_folder)
        page.write_text(text, encoding="utf-8")
        for each in linked:
            wanted.setdefault(each, name)
    problems = []
    for path, page_name in sorted(wanted.items()):
        try:
            _show(root, path, pages)
        except SiteError as error:
            problems.append(f"docs/{page_name}: link to {path}: {error}")
    if problems:
        raise SiteError("\n".join(problems))


def relinked(text: str, name: str, is_folder: Callable[[str], bool]) -> tuple[str, list[str]]:
    """A page whose links out of docs/ lead to pages below ``files/``, and what they lead to.

    Args:
        text: Markdown.
        name: of the page, relative to docs/.
        is_folder: whether a path of the repository is one.
    """
    linked: list[str] = []
    here = posixpath.dirname(name)

    def mended(found: re.Match[str]) -> str:
        target = found[2]
        if "://" in target or target.startswith(("/", "mailto:")):
            return found[0]
        path = posixpath.normpath(posixpath.join("docs", here, target))
        if path.startswith("docs/") and not is_folder(path):
            return found[0]
        linked.append(path)
        shown = posixpath.relpath(f"{FILES}/{path}.md", here or ".")
        return f"{found[1]}{shown}{found[3]}"

    lines, fence = [], ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        lines.append(line if fence or mark else _LINK.sub(mended, line))
    return "\n".join(lines), linked


def _show(root: Path, path: str, pages: Path) -> None:
    """Write the page of a file, or of a folder and of the files in it."""
    source = root / path
    if path.startswith("..") or not source.exists():
        raise SiteError("there is no such file in the repository")
    if source.is_dir():
        inside = sorted(each for each in source.iterdir() if each.is_file())
        ours = path.startswith("docs/")  # its files are on the site as they are
        for each in inside:
            if not ours:
                _show(root, f"{path}/{each.name}", pages)
        to = posixpath.relpath(path.removeprefix("docs/"), posixpath.dirname(f"{FILES}/{path}"))
        links = [f"{to}/{e.name}" if ours else f"{source.name}/{e.name}.md" for e in inside]
        rows = "\n".join(f"- [{e.name}]({to})" for e, to in zip(inside, links, strict=True))
        text = f"The files of this folder, as they are in the repository.\n\n{rows}\n"
    else:
        text = f"The file, as it is in the repository.\n\n{_fenced(source)}\n"
    page = pages / FILES / f"{path}.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    head = "---\nsearch:\n  exclude: true\n---\n"
    page.write_text(f"{head}# {path}\n\n{text}", encoding="utf-8")


def _fenced(source: Path) -> str:
    content = source.read_bytes()
    if len(content) > _LARGEST_BYTES:
        raise SiteError(f"{len(content)} bytes are too many for a page")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise SiteError("is no text") from None
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    mark = "`" * (longest + 1)
    return f"{mark}{_LANGUAGES.get(source.suffix, 'text')}\n{text.rstrip()}\n{mark}"
