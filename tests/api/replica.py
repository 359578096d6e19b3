"""A replica of the operator as a process of its own, so that a test can kill it."""

import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.api import account, forked
from tests.api.caller import Caller
from tests.api.forked import Forked
from tests.api.tenant import GIVE_UP_SECONDS, until

from cluster import Running

ROOT = Path(__file__).parents[2]
LEASE_NAMESPACE = "gpu-scheduler"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{LEASE_NAMESPACE}/leases/gpu-scheduler-leader"

# A leader that cannot renew its Lease for so long ends, and no machine is so busy, or stands still
# for so long (20 s were not enough). An attempt takes a third of it where nobody answers. Who has a
# stand-by take over need not wait for its end: ``Replica.forget``.
CALM_LEASE = {"lease_seconds": "150.0", "renew_deadline_seconds": "140.0", "retry_seconds": "2.0"}
STANDBY = {**CALM_LEASE, "retry_seconds": "0.3"}  # looks often whether it may lead


_started: deque["Replica"] = deque(maxlen=2)  # the last ones, for `last_words`


@dataclass(slots=True)
class Replica:
    """One operator process on a cluster, with the account that the chart makes for it.

    `settings` become GPUSCHED_* variables. ``program``: start the program itself, as a kubelet
    does, or this script, in place of a fork of one that has imported it, which costs far less.
    """

    running: Running
    name: str = "replica"
    settings: dict[str, str] = field(default_factory=dict)
    program: bool | Path = False
    process: subprocess.Popen[bytes] | Forked | None = None
    kubeconfig: Path | None = None  # that of the operator's account, if none is named
    _told: int = 0  # bytes in the log of those who had this name before

    @property
    def log(self) -> Path:
        return self.running.folder / f"{self.name}.log"

    def start(self) -> "Replica":
        chosen = {
            "lease_namespace": LEASE_NAMESPACE,
            "admin_port": "0",
            "identity": self.name,
            "status_seconds": "0.2",
            "recheck_seconds": "3",
            "eviction_pause_seconds": "1",
            **self.settings,
        }
        environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("GPUSCHED_")},
            "KUBECONFIG": str(self.kubeconfig or account.kubeconfig(self.running)),
            "PYTHONPATH": str(ROOT / "operator"),
            **{f"GPUSCHED_{key.upper()}": value for key, value in chosen.items()},
        }
        _started.append(self)
        with self.log.open("ab") as log:
            self._told = log.tell()
            if isinstance(self.program, Path):
                self.process = start_program(environment, log, str(self.program))
            else:
                start = start_program if self.program else forked.operator
                self.process = start(environment, log)
        return self

    def told(self) -> str:
        """What this process has logged."""
        return self.log.read_bytes()[self._told :].decode()

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def code(self) -> int:
        """Exit code of a process that has ended."""
        assert self.process is not None
        return self.process.wait()

    def kill(self) -> None:
        """SIGKILL: nothing is released, nothing is flushed."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process = None

    def pause(self) -> None:
        """SIGSTOP: as a machine that was paused."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT; nothing happens to one that has ended."""
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)

    def synced(self) -> bool:
        """Whether it has taken the lead and known the cluster since it was started."""
        return " synced: " in self.told()

    def forget(self, in_seconds: int = 0) -> None:
        """Give back the Lease of one that was killed, for which its successor would wait.

        ``in_seconds``: have it run out after so long, as one of such a length does.
        """
        assert not self.alive()
        admin = Caller(self.running.server, self.running.ca_file, self.running.token())
        spec = {"leaseDurationSeconds": in_seconds} if in_seconds else {"holderIdentity": ""}
        assert admin.patch(LEASE, {"spec": spec}).ok

    def fail(self) -> int:
        """Have a part of ``faulty_operator.py`` fail, and the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGUSR1)
        return self.code()

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        assert self.process is not None
        self.process.terminate()
        try:
            code = self.process.wait(timeout=GIVE_UP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.process = None
        return code

    def wait_leading(self, seconds: float = GIVE_UP_SECONDS) -> None:
        """Until it has taken the lead and knows the cluster."""

        def leads() -> bool:
            if self.synced():
                return True
            assert self.alive(), self.told()
            return False

        until(leads, lambda: f"{self.name} leads; it told: {self.told()}", seconds)


def last_words() -> str:
    """What the operators that were started last told, and whether they live: for a failed test."""
    texts = []
    for replica in _started:
        if replica.log.exists():
            state = "lives" if replica.alive() else "has ended, or was killed"
            told = replica.told().splitlines()[-15:]
            texts.append("\n".join((f"{replica.name} {state}", *(line[:240] for line in told))))
    return "\n".join(texts)


def start_program(
    environment: Mapping[str, str], log: IO[bytes], *script: str
) -> subprocess.Popen[bytes]:
    """The operator as a kubelet starts it, or such a ``script``."""
    return subprocess.Popen(
        [sys.executable, *(script or ("-m", "gpu_scheduler.main")), "operator"],
        env=environment,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )


@contextmanager
def operating(
    running: Running, settings: Mapping[str, str] = CALM_LEASE, name: str = "replica"
) -> Iterator[Replica]:
    """An operator that leads; what a test has killed stays dead."""
    replica = Replica(running, name, dict(settings)).start()
    try:
        replica.wait_leading()
        yield replica
    finally:
        if replica.alive():
            replica.stop()
