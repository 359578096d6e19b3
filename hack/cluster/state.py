"""What a run folder says about its cluster, in `state.json`.

Written whole (beside it, then renamed) after every change, so that a run that was
killed at any point leaves a file from which the next one can clean up.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import msgspec

from cluster.files import write_whole
from cluster.ports import Ports
from cluster.process import Process

_FILE = "state.json"


@dataclass(frozen=True, slots=True)
class Service:
    """One program of the cluster: how it is started, and its process if it was."""

    argv: tuple[str, ...]
    process: Process | None = None


@dataclass(frozen=True, slots=True)
class State:
    """A cluster as its run folder remembers it."""

    name: str
    fingerprint: str
    first_port: int
    ports: Ports
    real_node: bool = False
    gpus: int = 2
    ready: bool = False
    owner: Process | None = None
    services: dict[str, Service] = field(default_factory=dict)

    def with_service(self, name: str, service: Service) -> Self:
        """This state with `service` in place of what `name` was."""
        return replace(self, services={**self.services, name: service})


def save(folder: Path, state: State) -> None:
    """Writes `state` into the run folder."""
    write_whole(folder / _FILE, msgspec.json.encode(state))


def load(folder: Path) -> State | None:
    """The state in `folder`; None when there is none or it cannot be read."""
    try:
        return msgspec.json.decode((folder / _FILE).read_bytes(), type=State)
    except (OSError, msgspec.DecodeError):
        return None
