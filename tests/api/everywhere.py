"""Every path by which something of ours can be read, found in the code and in the cluster.

Ports: the routes of all aiohttp applications of the program, and the sockets on which a process
listens. The API server: all resources of discovery. What is new there and cannot be asked without
being told how fails.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from aiohttp import web
from prometheus_client import CollectorRegistry
from tests.api.caller import Caller
from tests.api.tenant import Json

import gpu_scheduler
from gpu_scheduler.web import admin, reports

_PACKAGE = Path(gpu_scheduler.__file__).parent
OURS = "gpu-scheduler.io"


@dataclass(frozen=True, slots=True)
class Route:
    """One of an application; ``path`` may have {parameters}."""

    method: str
    path: str

    def paths(self, values: Mapping[str, Iterable[str]]) -> Iterator[str]:
        """With every value of its parameters.

        Raises:
            KeyError: a parameter for which there is no value: say one, so that it is asked.
        """
        found = [self.path]
        for name in re.findall(r"{(\w+)[^}]*}", self.path):
            found = [
                re.sub(rf"{{{name}[^}}]*}}", value, path)
                for path in found
                for value in values[name]
            ]
        yield from found


def routes(application: web.Application) -> list[Route]:
    """All of an application."""
    found = []
    for each in application.router.routes():
        assert each.resource is not None
        found.append(Route(each.method, each.resource.canonical))
    return found


def of_operator() -> dict[str, list[Route]]:
    """The routes of an operator's applications, by the setting of their port."""
    return {
        "admin_port": routes(admin.app(CollectorRegistry(), ready=str, state=str)),
        "report_port": routes(reports.app(lambda: None)),
    }


def applications() -> set[str]:
    """Modules that make an application."""
    return _calling("Application")


def listeners() -> set[str]:
    """Modules that listen."""
    return _calling("create_server", "start_server", "start_unix_server", "TCPSite", "UnixSite")


def _calling(*names: str) -> set[str]:
    called = re.compile(rf"\b({'|'.join(names)})\(")
    files = _PACKAGE.rglob("*.py")
    return {
        path.relative_to(_PACKAGE).as_posix() for path in files if called.search(path.read_text())
    }


def ports_of(pid: int) -> set[int]:
    """TCP ports on which a process listens."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        if found := re.fullmatch(r"socket:\[(\d+)\]", str(descriptor.readlink())):
            inodes.add(found[1])
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:  # LISTEN
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports


def ask(port: int, method: str, path: str, token: str = "") -> tuple[int, str]:
    """Status, and all else that a port of this machine answers."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        said = answer.read().decode("utf-8", "replace")
        return answer.status, f"{answer.getheaders()} {said}"
    finally:
        connection.close()


@dataclass(frozen=True, slots=True)
class Resource:
    """One of discovery.

    Attributes:
        base: path of its group and version.
        plural: its name; of a subresource without that.
        subresource: empty: it is none.
        namespaced: whether its objects are in namespaces.
        verbs: what can be done with it.
    """

    base: str
    plural: str
    subresource: str
    namespaced: bool
    verbs: frozenset[str]

    @property
    def ours(self) -> bool:
        """Whether it is of our group."""
        return f"/{OURS}/" in f"{self.base}/"

    def path(self, namespace: str = "", name: str = "") -> str:
        """Of its objects."""
        there = f"namespaces/{namespace}/" if namespace else ""
        parts = (f"{self.base}/{there}{self.plural}", name, self.subresource)
        return "/".join(filter(None, parts))


def resources(admin: Caller) -> list[Resource]:
    """All that the API server serves, in all versions."""
    bases = [f"/api/{version}" for version in admin.get("/api").body["versions"]]
    for group in admin.get("/apis").body["groups"]:
        bases += [f"/apis/{each['groupVersion']}" for each in group["versions"]]
    return [_resource(base, each) for base in bases for each in admin.get(base).body["resources"]]


def _resource(base: str, body: Json) -> Resource:
    plural, _, subresource = body["name"].partition("/")
    return Resource(base, plural, subresource, body["namespaced"], frozenset(body["verbs"]))
