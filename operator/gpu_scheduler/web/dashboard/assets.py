"""The built front end: a table of its files, read at the start, so that no address is a path.

Files whose name has a digest of their content never change; whatever else a browser asks for
without a dot in its last part is the page itself, which reads the address.
"""

import gzip
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from gpu_scheduler.web.dashboard.answers import RefusedAnswer, problem

_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".ico": "image/x-icon",
    ".js": "text/javascript",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
_TEXT = ("text/", "application/", "image/svg")
_HASH = re.compile(r"[\w-]{8}", re.ASCII)  # as vite puts it behind the name
_FOR_EVER = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"
INDEX = "index.html"
MOST_BYTES = 8 << 20  # of all files together


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is sent; ``zipped`` None: it would not be smaller."""

    body: bytes
    zipped: bytes | None
    content_type: str
    etag: str
    cache: str


class Assets:
    """By path below the folder, with slashes."""

    def __init__(self, files: dict[str, Asset]) -> None:
        """See ``read``."""
        self._files = files

    def answer(self, request: web.Request) -> web.Response:
        """A file, or the page."""
        path = request.path.lstrip("/")
        found = self._files.get(path)
        if found is None and "." not in path.rpartition("/")[2]:
            found = self._files.get(INDEX)
            if found is None:
                return problem(
                    RefusedAnswer(
                        404, "the front end is not a part of this image; see docs/dashboard.md"
                    )
                )
        if found is None:
            return problem(RefusedAnswer(404, "there is no such file"))
        headers = {"Cache-Control": found.cache, "ETag": found.etag, "Vary": "Accept-Encoding"}
        if found.etag in request.headers.get("If-None-Match", ""):
            return web.Response(status=304, headers=headers)
        body = found.body
        if found.zipped is not None and takes_gzip(request):
            headers["Content-Encoding"] = "gzip"
            body = found.zipped
        text = found.content_type.startswith("text/")
        return web.Response(
            body=body,
            headers=headers,
            content_type=found.content_type,
            charset="utf-8" if text else None,
        )


def takes_gzip(request: web.Request) -> bool:
    """Whether the browser reads it."""
    return "gzip" in request.headers.get("Accept-Encoding", "")


def read(folder: str) -> Assets:
    """All files of a folder; empty: there are none.

    Raises:
        OSError: it cannot be read.
        ValueError: there is more in it than a front end has.
    """
    files: dict[str, Asset] = {}
    total, root = 0, Path(folder)
    for path in sorted(root.rglob("*")) if folder else ():
        if path.is_symlink() or not path.is_file() or path.suffix not in _TYPES:
            continue
        body = path.read_bytes()
        total += len(body)
        if total > MOST_BYTES:
            raise ValueError(f"{folder}: more than {MOST_BYTES >> 20} MiB of files")
        files[path.relative_to(root).as_posix()] = _asset(path.name, body, _TYPES[path.suffix])
    return Assets(files)


def _asset(name: str, body: bytes, content_type: str) -> Asset:
    zipped = gzip.compress(body, 9, mtime=0) if content_type.startswith(_TEXT) else body
    return Asset(
        body,
        zipped if len(zipped) < len(body) else None,
        content_type,
        f'W/"{hashlib.blake2b(body, digest_size=12).hexdigest()}"',
        _FOR_EVER if _is_hashed(name) and content_type != "text/html" else _ASK_AGAIN,
    )


def _is_hashed(name: str) -> bool:
    """Whether a name is like index-D3adB33f.js."""
    stem, _, _ = name.rpartition(".")
    return len(stem) > 9 and stem[-9] in "-." and _HASH.fullmatch(stem[-8:]) is not None
