"""A watch of one collection in a thread: each change in the order in which it was stored."""

import json
import ssl
import threading
import urllib.request
from typing import Any, Self

from cluster import Running


class Watch:
    """Follows a collection by its path; a context manager. ``listed`` and ``told`` are for heirs.

    What goes wrong in the thread is raised at the end.
    """

    def __init__(self, running: Running, path: str) -> None:
        self.error: BaseException | None = None
        self._running, self._path = running, path
        self._version = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def listed(self, items: list[dict[str, Any]]) -> None:
        """What was there when it began."""

    def told(self, kind: str, obj: dict[str, Any]) -> None:
        """One was added, changed or deleted."""

    def __enter__(self) -> Self:
        with self._open("") as answer:
            found = json.load(answer)
        self.listed(found["items"])
        self._version = str(found["metadata"]["resourceVersion"])
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=30)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error

    def _open(self, query: str) -> Any:
        tls = ssl.create_default_context(cafile=str(self._running.ca_file))
        request = urllib.request.Request(
            f"{self._running.server}{self._path}{query}",
            headers={"Authorization": f"Bearer {self._running.token()}"},
        )
        return urllib.request.urlopen(request, context=tls, timeout=60)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                query = "?watch=1&allowWatchBookmarks=1&timeoutSeconds=1"
                query += f"&resourceVersion={self._version}"
                with self._open(query) as answer:
                    for line in answer:
                        self._event(json.loads(line))
        except BaseException as error:
            self.error = error

    def _event(self, event: dict[str, Any]) -> None:
        obj = event["object"]
        assert event["type"] != "ERROR", obj
        self._version = obj["metadata"]["resourceVersion"]
        if event["type"] != "BOOKMARK":
            self.told(event["type"], obj)
