"""A cluster that a command may ask."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpu_scheduler.kube.command_client import CommandClient


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """A cluster that can be asked.

    Attributes:
        client: its API server.
        namespace: what was said, or else that of the context.
    """

    client: "CommandClient"
    namespace: str
