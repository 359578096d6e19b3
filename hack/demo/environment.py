"""Where the demo takes place: its cluster, nodes, operator and project.

The fake servers carry a taint, as on any cluster that mixes both kinds, so that only jobs which
tolerate it land there: everything else runs for real. Without a real node there is no taint.
"""

from collections.abc import Sequence
from concurrent.futures import Executor, wait
from dataclasses import dataclass
from pathlib import Path

from cluster import Running, Settings, build, connect, nodes, real_node, service_address, up
from cluster.api_client import Object
from demo import checkout, install, living, names
from demo.dashboard import Dashboard
from demo.terminal import DIM, paint, step

NAME = "demo"
ROOT = Path(__file__).parents[2]
SERVERS = ROOT / "tests" / "fixtures" / "clusters" / "dell-saas.yaml"
PROJECT = ROOT / "examples" / "project.yaml"
TAINT = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
FAKE_LABEL = {"type": "kwok"}
GPUS = 6  # of the real node: room for two jobs on one, a search, and the jobs that stay
SERVER_GPUS = 2  # of a fake one
REAL = f"node real-0 is this machine: real containers; only its {GPUS} A100s are pretend ones"
PROGRAMS = "programs: Kubernetes, etcd, helm and the rest"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A cluster with everything that jobs need; ``dashboard``: None where no pod can serve it."""

    running: Running
    dashboard: Dashboard | None


def prepare(beside: Executor) -> Prepared:
    """Everything that jobs need; what is there already is kept.

    Args:
        beside: where images are built meanwhile; those of the dashboard also after the return.

    Raises:
        ClusterError: a part could not be built or did not start, or another checkout's demo runs.
    """
    checkout.refuse_another(connect(NAME))
    # Images wait for network and disk much of their time, and the cluster for its parts.
    dashboard = Dashboard(beside) if service_address.why_no_real_node() is None else None
    try:
        running = _with_operator(beside, dashboard) if dashboard else _on_fake_nodes()
        install.command(running)
        with step("project team-a: 4 GPUs guaranteed, at most 8"):
            running.kubectl("apply", "-f", str(PROJECT))
    except BaseException:
        if dashboard:
            dashboard.give_up()
        raise
    return Prepared(running, dashboard)


def _with_operator(beside: Executor, dashboard: Dashboard) -> Running:
    """A real node, the chart on it, and fake servers beside it."""
    parts = [beside.submit(part) for part in real_node.PARTS]
    with step(PROGRAMS):
        build.ensure(("core", "node"))
    with step("cluster: control plane, kubelet, containerd, NVIDIA's runtime"):
        for part in parts:
            part.result()
        # Made since the last run? The front end's sources are looked at for that, too.
        ready, _ = wait([dashboard.images], timeout=3)
        archives = dashboard.images.result() if ready else ()
        running = up(Settings(name=NAME, real_node=True, gpus=GPUS), archives=archives)
        checkout.keep(running)
    names.start(running)
    beside.submit(living.clear, running)
    print(paint(f"  {REAL}", DIM))
    with step("four fake servers of two A100s each beside it"):
        running.add_nodes(_servers(tainted=True))
    with step("images of operator and agent, built from operator/Dockerfile meanwhile"):
        archives = dashboard.images.result()
    with step("the real node takes them"):
        install.give_images(running, archives)
    with step("helm install gpu-scheduler") as said:
        fresh = dashboard.install(running, archives)
        said.append("2 replicas, 1 agent" if fresh else "ready since the last run")
    return running


def _on_fake_nodes() -> Running:
    with step(PROGRAMS):
        build.ensure()
    with step("cluster: control plane"):
        running = up(Settings(name=NAME, real_node=True))
        checkout.keep(running)
    with step("four fake servers of two A100s each"):
        running.add_nodes(_servers(tainted=False))
    with step("the operator, as a process on this machine"):
        install.on_host(running)
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
