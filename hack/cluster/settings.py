"""What one local cluster is: its name, its nodes and how its control plane is tuned.

Two `up` with equal settings mean the same cluster; `fingerprint` is what is compared,
and it covers the contents of files, not their names.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from cluster.errors import ClusterError

MOST_GPUS = 9  # a digit each, which their UUIDs repeat
# All but the one that checks each policy anew for each kind that it is about: ten seconds of a core
# whenever the chart's policies change, and all that comes of it are warnings in their status.
UNCHECKED_POLICIES = ("*", "-validatingadmissionpolicy-status-controller")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Settings:
    """The wish for a cluster.

    Attributes:
        name: names its run folder and its kubeconfig context.
        nodes: YAML files of Node objects that kwok plays.
        crds: YAML files of CustomResourceDefinitions that are served before the controllers
            start: the garbage collector looks for new kinds only every 30 seconds.
        qps: requests per second (and burst) that kube-controller-manager and kube-scheduler
            allow themselves; None leaves their defaults of 20 and 50.
        real_node: also one real node, which takes port 443 of the machine.
        gpus: how many pretended GPUs the real node has.
        audit: the API server writes one line per request to `logs/audit.log`.
        feature_gates: `Name=true` or `Name=false`, for every part of the control plane.
        apis: `GROUP/VERSION` that the API server serves beside the usual ones.
        controllers: which ones kube-controller-manager runs, as its ``--controllers`` says.
        node_grace_seconds: how long a node may be silent before it counts as NotReady.
        port: the first of the cluster's ports; None chooses a free block.
        owner: process id of a test run; once that has ended, the next `up` of any cluster
            takes this one down. No part of the fingerprint.
    """

    name: str = "dev"
    nodes: tuple[Path, ...] = ()
    crds: tuple[Path, ...] = ()
    qps: int | None = None
    real_node: bool = False
    gpus: int = 2
    audit: bool = False
    feature_gates: tuple[str, ...] = ()
    apis: tuple[str, ...] = ()
    controllers: tuple[str, ...] = ("*",)
    node_grace_seconds: int = 120
    port: int | None = None
    owner: int | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ClusterError(
                f"name {self.name!r}: lower case letters, digits and dashes, at most 40"
            )
        if self.qps is not None and self.qps < 1:
            raise ClusterError(f"qps {self.qps}: at least 1, or left out for the defaults")
        if not 1 <= self.gpus <= MOST_GPUS:
            raise ClusterError(f"gpus {self.gpus}: 1 to {MOST_GPUS}")
        for what, paths in (("nodes", self.nodes), ("crds", self.crds)):
            for path in paths:
                if not path.is_file():
                    raise ClusterError(f"{what}: there is no file {path}")

    def fingerprint(self) -> str:
        """Equal for settings that ask for the same cluster."""
        contents = [
            [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
            for paths in (self.nodes, self.crds)
        ]
        asked = [
            self.name, contents, self.qps, self.real_node, self.audit,
            list(self.feature_gates), self.node_grace_seconds, self.port, self.gpus,
            list(self.apis), list(self.controllers),
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]
