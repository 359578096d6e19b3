"""The programs of one cluster: started, stopped, frozen, waited for.

Each change is written to the run folder before anything else happens, under a lock, so
that two programs which hold the same cluster do not lose each other's changes.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from cluster import process
from cluster.cache import lock_file
from cluster.errors import ClusterError
from cluster.locks import exclusive
from cluster.state import Service, State, load, save

# An API server whose watchers or etcd went away hangs in shutdown and keeps its port.
_GRACE_SECONDS = {"kube-apiserver": 2.0}
_USUAL_GRACE_SECONDS = 5.0
_LOG_TAIL_LINES = 15


@dataclass(frozen=True, slots=True)
class Services:
    """The programs recorded in the run folder `folder`."""

    folder: Path

    @property
    def state(self) -> State:
        """What the run folder says now.

        Raises:
            ClusterError: the cluster has been stopped.
        """
        state = load(self.folder)
        if state is None:
            raise ClusterError(f"cluster {self.folder.name} does not run")
        return state

    def started(self) -> dict[str, process.Process]:
        """The processes that were started and not stopped, by program; some may have died."""
        services = self.state.services.items()
        return {name: service.process for name, service in services if service.process}

    def all_alive(self) -> bool:
        """Whether every program that belongs to the cluster runs."""
        services = self.state.services.values()
        return bool(services) and all(
            service.process is not None and process.is_alive(service.process)
            for service in services
        )

    def run(self, name: str, argv: Sequence[str]) -> None:
        """Adds a program to the cluster and starts it."""
        with self._changing():
            self._start(name, tuple(argv))

    def start(self, name: str) -> None:
        """Starts a stopped program again, with the command line it had."""
        with self._changing():
            service = self._service(name)
            if service.process is None or not process.is_alive(service.process):
                self._start(name, service.argv)

    def stop(self, name: str, *, kill: bool = False) -> None:
        """Stops one program: asks first, or with `kill` ends it as a crash would."""
        with self._changing():
            service = self._service(name)
            if service.process is not None:
                if kill:
                    process.send(service.process, signal.SIGKILL)
                grace = _GRACE_SECONDS.get(name, _USUAL_GRACE_SECONDS)
                process.stop([service.process], grace_seconds=grace)
            save(self.folder, self.state.with_service(name, replace(service, process=None)))

    def signal(self, name: str, number: signal.Signals) -> None:
        """Signals one program.

        Raises:
            ClusterError: it does not run.
        """
        running = self._service(name).process
        if running is None or not process.is_alive(running):
            raise ClusterError(f"{name} does not run in cluster {self.folder.name}")
        process.send(running, number)

    def log_file(self, name: str) -> Path:
        """Where the program `name` writes."""
        return self.folder / "logs" / f"{name}.log"

    def wait_for(self, name: str, check: Callable[[], bool], *, seconds: float) -> None:
        """Polls `check` until it holds, as long as the program `name` lives.

        Raises:
            ClusterError: the time is over, or the program has ended; its last lines are told.
        """
        deadline = time.monotonic() + seconds
        while not check():
            running = self._service(name).process
            if running is None or not process.is_alive(running):
                raise ClusterError(f"{name} has ended:\n{self._log_tail(name)}")
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"{name} is not ready after {seconds:.0f} s:\n{self._log_tail(name)}"
                )
            time.sleep(0.03)

    def _start(self, name: str, argv: tuple[str, ...]) -> None:
        started = process.spawn(argv, log=self.log_file(name), mark=self.folder)
        save(self.folder, self.state.with_service(name, Service(argv, started)))

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
