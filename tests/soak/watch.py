"""A list and a watch of one resource, by code that shares nothing with the operator."""

import json
import ssl
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from tests.soak.site import AWAY, Site

ObjectBody = Mapping[str, Any]


class Watch:
    """Tells of objects as they are, and of those that are gone."""

    def __init__(
        self,
        site: Site,
        path: str,
        see: Callable[[ObjectBody], None],
        gone: Callable[[ObjectBody], None],
    ) -> None:
        """``gone`` is told an object's metadata."""
        self._site, self._path, self._tell_seen, self._tell_gone = site, path, see, gone
        self._known: dict[str, ObjectBody] = {}  # metadata by uid
        self._version = ""

    def follow(self) -> None:
        """One connection; the API server may be away."""
        try:
            self._follow()
        except AWAY:
            self._site.rest(0.2)

    def _follow(self) -> None:
        if not self._version:
            self._list()
        query = "?watch=1&allowWatchBookmarks=1&timeoutSeconds=20"
        with self._open(f"{query}&resourceVersion={self._version}") as answer:
            for line in answer:
                if self._site.stop.is_set():
                    return
                event = json.loads(line)
                if event["type"] == "ERROR":
                    self._version = ""
                    return
                self._version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] == "DELETED":
                    self._gone(event["object"]["metadata"]["uid"])
                elif event["type"] != "BOOKMARK":
                    self._see(event["object"])

    def _list(self) -> None:
        with self._open("") as answer:
            found = json.load(answer)
        present = {each["metadata"]["uid"] for each in found["items"]}
        for uid in self._known.keys() - present:
            self._gone(uid)
        for each in found["items"]:
            self._see(each)
        self._version = str(found["metadata"]["resourceVersion"])

    def _see(self, body: ObjectBody) -> None:
        self._known[body["metadata"]["uid"]] = body["metadata"]
        self._tell_seen(body)

    def _gone(self, uid: str) -> None:
        if uid in self._known:
            self._tell_gone(self._known.pop(uid))

    def _open(self, query: str) -> Any:
        running = self._site.running
        tls = ssl.create_default_context(cafile=str(running.ca_file))
        request = urllib.request.Request(
            f"{running.server}{self._path}{query}",
            headers={"Authorization": f"Bearer {running.token()}"},
        )
        return urllib.request.urlopen(request, context=tls, timeout=60)
