"""Where the demo takes place: its cluster, nodes, operator and project.

The fake servers carry a taint, as on any cluster that mixes both kinds, so that only jobs which
tolerate it land there: everything else runs for real. Without a real node there is no taint.
"""

from collections.abc import Sequence
from pathlib import Path

from cluster import Running, Settings, nodes, service_address, up
from cluster.api_client import Object
from demo import install
from demo.terminal import DIM, paint, step

NAME = "demo"
ROOT = Path(__file__).parents[2]
SERVERS = ROOT / "tests" / "fixtures" / "clusters" / "dell-saas.yaml"
PROJECT = ROOT / "examples" / "project.yaml"
TAINT = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
FAKE_LABEL = {"type": "kwok"}
REAL = "node real-0 is this machine: real containers; only its two A100s are pretend ones"


def prepare() -> Running:
    """Everything that jobs need; what is there already is kept.

    Raises:
        ClusterError: a part could not be built or did not start.
    """
    real = service_address.why_no_real_node() is None
    parts = "control plane, kubelet, containerd, NVIDIA's runtime" if real else "control plane"
    with step(f"cluster: {parts}"):
        running = up(Settings(name=NAME, real_node=True))
    if real:
        print(paint(f"  {REAL}", DIM))
    with step("four fake servers of two A100s each" + (" beside it" if real else "")):
        running.add_nodes(_servers(tainted=real))
    if real:
        with step("images of operator and agent, built from operator/Dockerfile"):
            image = install.images(running)
        with step("helm install gpu-scheduler") as said:
            fresh = install.chart(running, image=image)
            said.append("2 replicas, 1 agent" if fresh else "ready since the last run")
    else:
        with step("the operator, as a process on this machine"):
            install.on_host(running)
    install.command(running)
    with step("project team-a: 4 GPUs guaranteed, at most 8"):
        running.kubectl("apply", "-f", str(PROJECT))
    return running


def _servers(*, tainted: bool) -> Sequence[Object]:
    found = nodes.read(SERVERS)
    for node in found:
        metadata = node["metadata"]
        assert isinstance(metadata, dict)
        metadata["labels"] |= FAKE_LABEL
        if tainted:
            node["spec"] = {"taints": [TAINT]}
    return found
