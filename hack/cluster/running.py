"""A cluster that runs, as tests, benchmarks and the real node see it.

The run folder is the truth; an object of this class is a handle on it, so any number of
programs may hold one for the same cluster. Each change of the cluster's programs is written
there before anything else happens, under a lock, so that two holders do not lose each
other's changes.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from cluster import build, credentials, process
from cluster import nodes as node_objects
from cluster.api_client import ApiClient, Object
from cluster.cache import lock_file
from cluster.commands import Done, run
from cluster.errors import ClusterError
from cluster.locks import exclusive
from cluster.process import Process
from cluster.programs import PROGRAMS
from cluster.state import Service, State, load, save

# An API server whose watchers or etcd went away hangs in shutdown and keeps its port.
_GRACE_SECONDS = {"kube-apiserver": 2.0}
_USUAL_GRACE_SECONDS = 5.0
_LOG_TAIL_LINES = 15
_CONNECTIONS = 8  # by which fake nodes are created


@dataclass(frozen=True, slots=True)
class Running:
    """One cluster, by its name and run folder."""

    name: str
    folder: Path

    @property
    def state(self) -> State:
        """What the run folder says now: ports, programs, whether there is a real node.

        Raises:
            ClusterError: the cluster has been stopped.
        """
        state = load(self.folder)
        if state is None:
            raise ClusterError(f"cluster {self.folder.name} does not run")
        return state

    @property
    def server(self) -> str:
        """Address of the API server for programs on this machine."""
        return f"https://127.0.0.1:{self.state.ports.api_server}"

    @property
    def ca_file(self) -> Path:
        """The CA of the API server's certificate, and of kubelet clients."""
        return self.folder / "ca.crt"

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of `admin`."""
        return self.kubeconfig_of("admin")

    def kubeconfig_of(self, user: str) -> Path:
        """The kubeconfig of a user of `credentials.USERS`."""
        return credentials.kubeconfig_file(self.folder, user)

    def token(self, user: str = "admin") -> str:
        """The bearer token of a user of `credentials.USERS`."""
        return credentials.token(self.folder, user)

    def client(self, user: str | None = "admin") -> ApiClient:
        """A client for use by one thread; None is an anonymous one."""
        token = None if user is None else self.token(user)
        return ApiClient(self.server, ca_file=self.ca_file, token=token)

    def binary(self, name: str) -> Path:
        """A built program, such as `kubectl` or `helm`."""
        return build.binary(name)

    @property
    def environment(self) -> dict[str, str]:
        """What kubectl and helm need in their environment to find this cluster.

        Their caches are the cluster's own: ports are used again, and what they remember
        of an earlier cluster's resources would be wrong.
        """
        cache = self.folder / "cache"
        return {
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(cache / "kube"),
            "HELM_CACHE_HOME": str(cache / "helm"),
            "HELM_CONFIG_HOME": str(cache / "helm-config"),
            "HELM_DATA_HOME": str(cache / "helm-data"),
        }

    def link_programs(self) -> Path:
        """A folder for PATH, with links to all programs that are built."""
        folder = self.folder / "bin"
        folder.mkdir(exist_ok=True)
        for program in PROGRAMS:
            target, link = build.path_of(program), folder / program.name
            if target.exists() and not link.is_symlink():
                link.symlink_to(target)
        return folder

    def kubectl(self, *args: str, input: str | None = None, check: bool = True) -> Done:
        """Runs kubectl as `admin`.

        Raises:
            ClusterError: it failed, and `check` was not turned off.
        """
        return self._tool("kubectl", args, input, check)

    def helm(self, *args: str, input: str | None = None, check: bool = True) -> Done:
        """Runs helm as `admin`.

        Raises:
            ClusterError: it failed, and `check` was not turned off.
        """
        return self._tool("helm", args, input, check)

    def add_nodes(self, nodes: Path | Iterable[Object], *, wait_seconds: float = 120.0) -> None:
        """Creates fake nodes, from a file or from objects, and waits until they take pods.

        Raises:
            ClusterError: an object is not a Node, or they were not ready in time.
        """
        documents = node_objects.read(nodes) if isinstance(nodes, Path) else list(nodes)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        completed = [node_objects.complete(node, now=now) for node in documents]
        shares = [completed[first::_CONNECTIONS] for first in range(_CONNECTIONS)]
        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            list(pool.map(self._create_nodes, filter(None, shares)))
        left = [node_objects.name_of(node) for node in completed]
        with self.client() as client:
            self.wait_for(
                "kube-controller-manager",
                lambda: not node_objects.not_schedulable(client.items("/api/v1/nodes"), left),
                seconds=wait_seconds,
            )

    @property
    def processes(self) -> dict[str, Process]:
        """The processes that were started and not stopped, by program; some may have died."""
        services = self.state.services.items()
        return {name: service.process for name, service in services if service.process}

    def run_process(self, name: str, argv: Sequence[str]) -> None:
        """Starts a further program, which then belongs to the cluster and ends with it."""
        with self._changing():
            self._start(name, tuple(argv))

    def start_process(self, name: str) -> None:
        """Starts a stopped program again; `wait_ready` tells when an API server answers."""
        with self._changing():
            service = self._service(name)
            if service.process is None or not process.is_alive(service.process):
                self._start(name, service.argv)

    def stop_process(self, name: str, *, kill: bool = False) -> None:
        """Stops one program: asks first, or with `kill` ends it as a crash would."""
        with self._changing():
            service = self._service(name)
            if service.process is not None:
                if kill:
                    process.send(service.process, signal.SIGKILL)
                grace = _GRACE_SECONDS.get(name, _USUAL_GRACE_SECONDS)
                process.stop([service.process], grace_seconds=grace)
            save(self.folder, self.state.with_service(name, replace(service, process=None)))

    def pause_process(self, name: str) -> None:
        """Freezes a program: it keeps its port and connections, and answers nothing."""
        self._signal(name, signal.SIGSTOP)

    def resume_process(self, name: str) -> None:
        """Lets a frozen program go on."""
        self._signal(name, signal.SIGCONT)

    def log_file(self, name: str) -> Path:
        """Where a program of the cluster writes."""
        return self.folder / "logs" / f"{name}.log"

    def wait_for(self, program: str, check: Callable[[], bool], *, seconds: float = 180.0) -> None:
        """Polls `check` until it holds, as long as `program` lives.

        Raises:
            ClusterError: the time is over, or the program has ended; its last lines are told.
        """
        deadline = time.monotonic() + seconds
        while not check():
            running = self._service(program).process
            if running is None or not process.is_alive(running):
                raise ClusterError(f"{program} has ended:\n{self._log_tail(program)}")
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"{program} is not ready after {seconds:.0f} s:\n{self._log_tail(program)}"
                )
            time.sleep(0.03)

    def wait_ready(self, *, seconds: float = 180.0) -> None:
        """Waits until the API server says that it is ready.

        Raises:
            ClusterError: it did not in time, or it has ended.
        """
        with self.client(None) as client:
            self.wait_for("kube-apiserver", lambda: client.is_ok("/readyz"), seconds=seconds)

    def is_healthy(self) -> bool:
        """Whether every program runs, those of a real node too, and the API server is ready."""
        try:
            if self.state.real_node:
                programs = {process.program_name(each) for each in process.marked_with(self.folder)}
                if not {"kubelet", "containerd"} <= programs:
                    return False
            services = self.state.services.values()
            alive = [each.process and process.is_alive(each.process) for each in services]
            with self.client(None) as client:
                return bool(alive) and all(alive) and client.is_ok("/readyz")
        except (ClusterError, OSError):
            return False

    def _create_nodes(self, nodes: list[Object]) -> None:
        with self.client() as client:
            for node in nodes:
                client.create("/api/v1/nodes", node)

    def _start(self, name: str, argv: tuple[str, ...]) -> None:
        started = process.spawn(argv, log=self.log_file(name), mark=self.folder)
        save(self.folder, self.state.with_service(name, Service(argv, started)))

    def _signal(self, name: str, number: signal.Signals) -> None:
        running = self._service(name).process
        if running is None or not process.is_alive(running):
            raise ClusterError(f"{name} does not run in cluster {self.folder.name}")
        process.send(running, number)

    def _service(self, name: str) -> Service:
        services = self.state.services
        if name not in services:
            known = ", ".join(services)
            raise ClusterError(f"no program {name!r} in cluster {self.folder.name}: {known}")
        return services[name]

    def _changing(self) -> AbstractContextManager[None]:
        return exclusive(lock_file(f"{self.folder.name}.state"))

    def _log_tail(self, name: str) -> str:
        try:
            lines = self.log_file(name).read_text(errors="replace").splitlines()
        except OSError:
            return "(no log)"
        return "\n".join(lines[-_LOG_TAIL_LINES:])

    def _tool(self, name: str, args: Sequence[str], input: str | None, check: bool) -> Done:
        command, env = [self.binary(name), *args], {**os.environ, **self.environment}
        return run(command, f"{name} {' '.join(args)}", check=check, input=input, env=env)
