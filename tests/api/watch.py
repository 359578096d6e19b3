"""A watch of one collection in a thread: each change in the order in which it was stored."""

import json
import ssl
import threading
import urllib.request
from types import TracebackType
from typing import Any, Self

from tests.api.tenant import until

from cluster import Running


class Watch:
    """Follows a collection by its path; a context manager. ``listed`` and ``told`` are for heirs.

    Its thread is behind what a request says: `up_to_now` waits for it, and so does the end. What
    goes wrong in the thread is raised there.
    """

    def __init__(self, running: Running, path: str) -> None:
        self.error: BaseException | None = None
        self._running, self._path = running, path
        self._version = ""
        self._seen: dict[str, int] = {}  # the last version of each object, by uid
        self._gone: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def listed(self, items: list[dict[str, Any]]) -> None:
        """What was there when it began."""

    def told(self, kind: str, obj: dict[str, Any]) -> None:
        """One was added, changed or deleted."""

    def __enter__(self) -> Self:
        found = self._list()
        self._seen = _versions(found["items"])
        self.listed(found["items"])
        self._version = str(found["metadata"]["resourceVersion"])
        self._thread.start()
        return self

    def __exit__(
        self,
        failure: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        try:
            if failure is None:
                self.up_to_now()
        finally:
            self._stop.set()
            self._thread.join(timeout=30)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error

    def up_to_now(self) -> Self:
        """Until it was told of all that is stored now."""
        found = self._list()
        there, now = _versions(found["items"]), int(found["metadata"]["resourceVersion"])

        def is_told() -> bool:
            seen, gone = dict(self._seen), set(self._gone)
            return all(seen.get(uid, 0) >= version for uid, version in there.items()) and all(
                version > now for uid, version in seen.items() if uid not in there.keys() | gone
            )

        until(lambda: self.error or is_told(), f"{self._path} is watched up to {now}")
        if self.error is not None:
            raise self.error
        return self

    def _list(self) -> Any:
        with self._open("") as answer:
            return json.load(answer)

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
            if event["type"] == "DELETED":
                self._gone.add(obj["metadata"]["uid"])
            self._seen |= _versions([obj])


def _versions(objects: list[dict[str, Any]]) -> dict[str, int]:
    return {each["metadata"]["uid"]: int(each["metadata"]["resourceVersion"]) for each in objects}
