"""A cluster that runs, as tests, benchmarks and the real node see it.

The run folder is the truth; an object of this class is a handle on it, so any number of
programs may hold one for the same cluster.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster import build, credentials, process
from cluster import nodes as node_objects
from cluster.api_client import ApiClient, Object
from cluster.errors import ClusterError
from cluster.process import Process
from cluster.programs import PROGRAMS
from cluster.registration import register
from cluster.services import Services
from cluster.state import State


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
        return self._services.state

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

    def kubectl(
        self, *args: str, input: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Runs kubectl as `admin`.

        Raises:
            ClusterError: it failed, and `check` was not turned off.
        """
        return self._tool("kubectl", args, input, check)

    def helm(
        self, *args: str, input: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
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
        left = register(documents, self.client)
        with self.client() as client:
            self.wait_for(
                "kube-controller-manager",
                lambda: not node_objects.not_schedulable(client.items("/api/v1/nodes"), left),
                seconds=wait_seconds,
            )

    @property
    def processes(self) -> dict[str, Process]:
        """The processes that were started and not stopped, by program."""
        return self._services.started()

    def run_process(self, name: str, argv: Sequence[str]) -> None:
        """Starts a further program, which then belongs to the cluster and ends with it."""
        self._services.run(name, argv)

    def start_process(self, name: str) -> None:
        """Starts a stopped program again; `wait_ready` tells when an API server answers."""
        self._services.start(name)

    def stop_process(self, name: str, *, kill: bool = False) -> None:
        """Stops one program: asks first, or with `kill` ends it as a crash would."""
        self._services.stop(name, kill=kill)

    def pause_process(self, name: str) -> None:
        """Freezes a program: it keeps its port and connections, and answers nothing."""
        self._services.signal(name, signal.SIGSTOP)

    def resume_process(self, name: str) -> None:
        """Lets a frozen program go on."""
        self._services.signal(name, signal.SIGCONT)

    def log_file(self, name: str) -> Path:
        """Where a program of the cluster writes."""
        return self._services.log_file(name)

    def wait_for(self, program: str, check: Callable[[], bool], *, seconds: float = 180.0) -> None:
        """Polls `check` until it holds, as long as `program` lives.

        Raises:
            ClusterError: the time is over, or the program has ended; its last lines are told.
        """
        self._services.wait_for(program, check, seconds=seconds)

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
            with self.client(None) as client:
                return self._services.all_alive() and client.is_ok("/readyz")
        except (ClusterError, OSError):
            return False

    @property
    def _services(self) -> Services:
        return Services(self.folder)

    def _tool(
        self, name: str, args: Sequence[str], input: str | None, check: bool
    ) -> subprocess.CompletedProcess[str]:
        answer = subprocess.run(
            [self.binary(name), *args],
            input=input,
            capture_output=True,
            text=True,
            env={**os.environ, **self.environment},
            check=False,
        )
        if check and answer.returncode != 0:
            raise ClusterError(f"{name} {' '.join(args)}: {answer.stderr.strip()}")
        return answer
