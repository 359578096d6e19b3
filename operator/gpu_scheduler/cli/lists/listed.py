"""What ``kubectl gpu list`` shows, read from the API server: GPUJobs as its Table, pods as objects.

A watch goes on where ``read`` ended.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from gpu_scheduler.api.names import GROUP, LABEL_JOB, LABEL_SHARE, VERSION
from gpu_scheduler.api.unstructured import name_of, text
from gpu_scheduler.cli.finding import gpujob_path
from gpu_scheduler.cli.holders.left_behind import OutlivingPod, left_behind
from gpu_scheduler.cli.lists.job_table import Columns, age, meta_of, projects_by_namespace
from gpu_scheduler.cli.lists.share_rows import PodOwner, left_cells, status_of, workloads
from gpu_scheduler.kube import errors, paths
from gpu_scheduler.kube.command_client import CommandClient

Json = dict[str, Any]
Key = tuple[str, str]
"""Namespace, and name as on a command line."""

_PAGE = 500  # objects per answer
# As the API server's Table calls pods that are ending.
_ENDING = ("Terminating", "Unknown")
_HOLD_NOTHING = ("Completed", "Error", "Succeeded", "Failed", "Pending", "SchedulingGated")


class Listed:
    """Jobs and other workloads of some namespaces.

    Attributes:
        client: the API server.
        namespaces: an empty name stands for all.
        versions: of each collection, by its path: where a watch goes on.
        shares: workloads that are no GPUJobs, as last read.
        without_pods: these may not be listed, so GPUJobs alone are shown.
        left: pods that hold GPUs and are no GPUJob's any more, as last read.
    """

    def __init__(
        self,
        client: CommandClient,
        namespaces: Sequence[str],
        selector: str = "",
        statuses: Collection[str] = (),
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """``statuses``: in lower case; without any all are shown."""
        self.client = client
        self.namespaces = list(namespaces)
        self._selector = selector
        self._statuses = frozenset(statuses)
        self._now = now
        self.versions: dict[str, str] = {}
        self.shares: dict[Key, PodOwner] = {}
        self.without_pods = False
        self.left: list[OutlivingPod] = []
        self._projects: dict[str, str] = {}

    @property
    def place(self) -> str:
        """Where was looked."""
        if self.namespaces == [""]:
            return "any namespace"
        word = "namespace" if len(self.namespaces) == 1 else "namespaces"
        return f"{word} {', '.join(self.namespaces)}"

    @property
    def _several(self) -> bool:
        return self.namespaces == [""] or len(self.namespaces) > 1

    def key(self, row: Mapping[str, Any]) -> Key:
        """What a row of a Table of GPUJobs is about."""
        meta = meta_of(row)
        name = meta.get("name") or next(iter(row.get("cells") or ()), "")
        namespace = meta.get("namespace") if self._several else self.namespaces[0]
        return str(namespace or ""), str(name)

    @property
    def selector(self) -> str:
        """Of GPUJobs; empty: all."""
        return self._selector

    @property
    def share_selector(self) -> str:
        """Of pods that ask for a share by themselves."""
        return ",".join(filter(None, (LABEL_SHARE, self._selector)))

    def job_paths(self) -> list[str]:
        """Of the collections of GPUJobs."""
        return [gpujob_path(namespace) for namespace in self.namespaces]

    def pod_paths(self) -> list[str]:
        """Of the collections of pods."""
        names = () if self.without_pods else self.namespaces
        return [paths.core("pods", namespace) for namespace in names]

    def read(self) -> tuple[Columns, dict[Key, list[str]]]:
        """The columns, and the lines by what they are about."""
        columns: Columns | None = None
        rows, runs = dict[Key, list[str]](), dict[str, bool]()
        for path in self.job_paths():
            for table in self._tables(path):
                if columns is None:
                    columns = Columns.of(table, all_namespaces=self._several)
                for row in table.get("rows") or ():
                    key, cells = self.key(row), columns.row(row)
                    runs[key[1]] = runs.get(key[1], False) or columns.status(cells) == "Running"
                    if self.shows(columns, cells):
                        rows[key] = cells
        assert columns is not None, "there is at least one namespace"
        for key, cells in (*self._left_rows(columns, runs), *self._share_rows(columns)):
            rows[key] = cells
        return columns, rows

    def shows(self, columns: Columns, cells: Sequence[str]) -> bool:
        """Whether a line has a status that was asked for."""
        return not self._statuses or columns.status(cells).lower() in self._statuses

    def share_row(self, columns: Columns, workload: PodOwner) -> list[str]:
        """The line of a workload."""
        project = self._projects.get(workload.namespace, "")
        return columns.share_row(workload, project, self._now())

    def objects(self) -> list[Json]:
        """The objects behind the lines."""
        found, runs = list[Json](), dict[str, bool]()
        for path in self.job_paths():
            for each in self.client.items(path, self._selector, page=_PAGE):
                phase = str((each.get("status") or {}).get("phase") or "Pending")
                runs[name_of(each)] = runs.get(name_of(each), False) or phase == "Running"
                if self._has_status(phase):
                    found.append(each)
        self.left = self._left_behind(runs)
        pods = [*({**each.pod} for each in self.left), *self._pods()]
        return found + [each for each in pods if self._has_status(status_of([each]))]

    def _has_status(self, status: str) -> bool:
        return not self._statuses or status.lower() in self._statuses

    def _tables(self, path: str) -> Iterator[Json]:
        # Of one namespace the cells say enough, and objects would be ten times as much to read.
        params = (
            {"limit": str(_PAGE)} if self._several else {"limit": "1000", "includeObject": "None"}
        )
        if self._selector:
            params["labelSelector"] = self._selector
        return self._pages(path, self.client.table, params)

    def _pages(self, path: str, ask: Callable[..., Json], params: dict[str, str]) -> Iterator[Json]:
        """All of a collection, page by page; a watch goes on from the version of the last."""
        while True:
            page = ask(path, **params)
            meta = page.get("metadata") or {}
            self.versions[path] = str(meta.get("resourceVersion") or "")
            yield page
            if not meta.get("continue"):
                return
            params["continue"] = str(meta["continue"])

    def _left_rows(
        self, columns: Columns, runs: Mapping[str, bool]
    ) -> Iterator[tuple[Key, list[str]]]:
        self.left = self._left_behind(runs)
        for each in self.left:
            made = text(each.pod, "metadata", "creationTimestamp")
            cells = columns.cells(each.namespace, left_cells(each, age(made, self._now())))
            if self.shows(columns, cells):
                yield (each.namespace, f"pod/{name_of(each.pod)}"), cells

    def _left_behind(self, runs: Mapping[str, bool]) -> list[OutlivingPod]:
        """Pods are read where the server's Table says that one may be such, and only then.

        ``runs``: whether a GPUJob does, by its name.
        """
        selector = ",".join(filter(None, (LABEL_JOB, self._selector)))
        try:
            return [
                each
                for path in self.pod_paths()
                if self._any_may_be_left(path, selector, runs)
                for each in left_behind(self.client, self.client.items(path, selector, page=_PAGE))
            ]
        except errors.Forbidden:
            self.without_pods = True
            return []

    def _any_may_be_left(self, path: str, selector: str, runs: Mapping[str, bool]) -> bool:
        """Whether a pod is ending, or runs while no GPUJob does that it is called after."""
        params = {"limit": "1000", "includeObject": "None", "labelSelector": selector}
        while True:
            page = self.client.table(path, **params)
            names = [str(each.get("name")) for each in page.get("columnDefinitions") or ()]
            cells = [row.get("cells") or () for row in page.get("rows") or ()]
            for row in (dict(zip(names, each, strict=False)) for each in cells):
                status = str(row.get("Status"))
                if status in _ENDING:
                    return True
                if status not in _HOLD_NOTHING and not _runs_of(str(row.get("Name") or ""), runs):
                    return True
            more = (page.get("metadata") or {}).get("continue")
            if not more:
                return False
            params["continue"] = str(more)

    def _share_rows(self, columns: Columns) -> Iterator[tuple[Key, list[str]]]:
        self.shares = workloads(self._pods())
        if self.shares and columns.index("PROJECT") is not None:
            self._projects = self._read_projects()
        for key, workload in sorted(self.shares.items()):
            if self.shows(columns, cells := self.share_row(columns, workload)):
                yield key, cells

    def _pods(self) -> list[Json]:
        """Those that ask for a share by themselves; none where nobody may list pods."""
        try:
            return [pod for path in self.pod_paths() for pod in self._pods_of(path)]
        except errors.Forbidden:
            self.without_pods = True
            return []

    def _pods_of(self, path: str) -> Iterator[Json]:
        params = {"limit": str(_PAGE), "labelSelector": self.share_selector}
        for page in self._pages(path, self.client.get, params):
            for each in page.get("items") or ():
                yield {"apiVersion": "v1", "kind": "Pod", **each}

    def _read_projects(self) -> dict[str, str]:
        try:
            return projects_by_namespace(
                self.client.items(paths.of_group(GROUP, VERSION, "gpuprojects"))
            )
        except errors.ApiError:
            return {}  # may not be seen by everybody; nothing else is missing then


def _runs_of(pod: str, runs: Mapping[str, bool]) -> bool:
    """Whether a GPUJob runs after which a pod may be called: its name, a role, numbers."""
    name = pod
    while "-" in name:
        name = name.rpartition("-")[0]
        if runs.get(name):
            return True
    return False
