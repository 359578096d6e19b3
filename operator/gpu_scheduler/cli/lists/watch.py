"""``kubectl gpu list -w``: a line for each change, as ``kubectl get -w`` does.

A thread for each collection watches from where the list was read. A watch that the server ends is
opened again; one that is too old (410) is read anew, and what is other than before is shown.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from queue import Queue
from threading import Event, Thread
from typing import Any

from gpu_scheduler.cli.lists.job_table import Columns, meta_of
from gpu_scheduler.cli.lists.listed import Key, Listed
from gpu_scheduler.cli.lists.share_rows import PodOwner, owner_of
from gpu_scheduler.cli.printed_table import PrintedTable, aligned
from gpu_scheduler.kube import errors

Json = Mapping[str, Any]

_TIMES_UNANSWERED = 5  # in a row, before it is an error
_WAIT_SECONDS = 1.0
_WATCH_SECONDS = 300  # then the server ends a watch, and a connection that hangs is noticed


class Again(Exception):  # noqa: N818 - no error: the list has to be read again
    """A watch is too old."""


def follow(
    listed: Listed,
    columns: Columns,
    rows: Mapping[Key, Sequence[str]],
    write: Callable[[str], None],
    *,
    wide: bool,
    headers: bool,
) -> None:
    """Print the lines, and each that changes; does not come back.

    Raises:
        errors.ApiError: the server does not answer any more, or refuses.
    """
    printer = Printer(columns, write, wide=wide)
    printer.begin([*rows.values()], headers=headers)
    shown = {key: [*cells] for key, cells in rows.items()}

    def show(key: Key, cells: list[str] | None) -> None:
        before = shown.pop(key, None)
        if cells is None:
            if before is not None:
                printer.line(columns.ended(before))
        elif listed.shows(columns, cells):
            shown[key] = cells
            if before is None or _lasting(columns, before) != _lasting(columns, cells):
                printer.line(cells)

    while True:
        for key, cells in WatchLines(listed, columns).lines():
            show(key, cells)
        columns, fresh = listed.read()
        printer.columns = columns
        for key in shown.keys() - fresh.keys():
            show(key, None)
        for key, cells in fresh.items():
            show(key, cells)


class Printer:
    """Lines in columns as wide as the first ones needed."""

    def __init__(self, columns: Columns, write: Callable[[str], None], *, wide: bool) -> None:
        self.columns = columns
        self._write = write
        self._wide = wide
        self._widths: list[int] = []

    def begin(self, rows: Sequence[Sequence[str]], *, headers: bool) -> None:
        """The heading and what there is."""
        table = self._table(rows)
        self._widths = table.widths(headers=True)
        for cells in [table.columns, *table.rows] if headers else table.rows:
            self._write(aligned(cells, self._widths))

    def line(self, row: Sequence[str]) -> None:
        """One more line."""
        self._write(aligned(self._table([row]).rows[0], self._widths))

    def _table(self, rows: Sequence[Sequence[str]]) -> PrintedTable:
        return PrintedTable(self.columns.heading(), [*rows]).cut(wide=self._wide)


class WatchLines:
    """What the watches tell, as lines."""

    def __init__(self, listed: Listed, columns: Columns) -> None:
        self._listed = listed
        self._columns = columns
        self._queue: Queue[tuple[bool, Json] | Exception] = Queue()  # of a GPUJob; else of a pod
        self._over = Event()

    def lines(self) -> Iterator[tuple[Key, list[str] | None]]:
        """What changes, until the list has to be read again; None: it is gone."""
        for path in self._listed.job_paths():
            self._start(path, self._listed.selector, of_jobs=True)
        for path in self._listed.pod_paths():
            self._start(path, self._listed.share_selector, of_jobs=False)
        try:
            while True:
                item = self._queue.get()
                if isinstance(item, Again):
                    return
                if isinstance(item, Exception):
                    raise item
                of_job, event = item
                yield from self._job(event) if of_job else self._pod(event)
        finally:
            self._over.set()

    def _start(self, path: str, selector: str, *, of_jobs: bool) -> None:
        def watch() -> None:
            try:
                for event in self._events(path, selector, as_table=of_jobs):
                    self._queue.put((of_jobs, event))
            except Exception as error:  # raised again by who prints
                self._queue.put(error)

        Thread(target=watch, daemon=True).start()

    def _events(self, path: str, selector: str, *, as_table: bool) -> Iterator[Json]:
        version, unanswered = self._listed.versions[path], 0
        params = {"labelSelector": selector} if selector else {}
        params["timeoutSeconds"] = str(_WATCH_SECONDS)
        while not self._over.is_set():
            try:
                for event in self._listed.client.watch(
                    path, as_table=as_table, resourceVersion=version, **params
                ):
                    unanswered, version = 0, _version(event, version)
                    yield event
            except errors.Gone:
                raise Again from None
            except (errors.Unavailable, errors.ServerError, errors.TooManyRequests):
                unanswered += 1
                if unanswered >= _TIMES_UNANSWERED:
                    raise
            self._over.wait(_WAIT_SECONDS)

    def _job(self, event: Json) -> Iterator[tuple[Key, list[str] | None]]:
        for row in (event.get("object") or {}).get("rows") or ():
            gone = event.get("type") == "DELETED"
            yield self._listed.key(row), None if gone else self._columns.row(row)

    def _pod(self, event: Json) -> Iterator[tuple[Key, list[str] | None]]:
        pod, shares = event.get("object") or {}, self._listed.shares
        if event.get("type") not in ("ADDED", "MODIFIED", "DELETED") or "metadata" not in pod:
            return
        key, uid = owner_of(pod), str(pod["metadata"].get("uid"))
        workload = shares.setdefault(key, PodOwner(*key))
        if event["type"] == "DELETED":
            workload.pods.pop(uid, None)
        else:
            workload.pods[uid] = pod
        if not workload.pods:
            del shares[key]
        yield key, self._listed.share_row(self._columns, workload) if workload.pods else None


def _version(event: Json, before: str) -> str:
    """Where a watch goes on behind this event."""
    body = event.get("object") or {}
    rows = body.get("rows")
    metas = [meta_of(row) for row in rows] if rows else [body.get("metadata") or {}]
    return str(metas[-1].get("resourceVersion") or before)


def _lasting(columns: Columns, cells: Sequence[str]) -> list[str]:
    """A line without what changes by itself."""
    return [cell for cell, name in zip(cells, columns.heading(), strict=False) if name != "AGE"]
