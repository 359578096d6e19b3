"""The cluster of a benchmark: control plane, fake nodes, and the product as the chart installs it.

Admission policies, roles and CRDs are the chart's, so every pod pays for them, stock ones too. The
operator itself is a process of this machine, with the service account that the chart made; the
chart's own Deployment is scaled to zero, and no agent runs: the nodes are fake. What is started
here ends with the cluster.
"""

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.perf.settings import GPUS_PER_NODE, ROOT
from tests.perf.workload import CAP_IMAGE, NAMESPACE

from cluster import Running, Settings, down, fake_nodes, up
from cluster.api_client import ApiClient, Object
from cluster.credentials import render_kubeconfig
from gpu_scheduler.api.names import RUNTIME_CLASS

RELEASE = "gpu-scheduler"  # also its namespace and its service account
_CRDS = ("gpujobs", "gpuprojects", "gpunodes")
_RATE = "--kube-api-"
_LIMITED = ("kube-controller-manager", "kube-scheduler")


def say(text: str) -> None:
    """One line of progress."""
    print(f"{time.strftime('%H:%M:%S')} bench: {text}", file=sys.stderr, flush=True)  # noqa: T201


def gpu_nodes(
    count: int, *, prefix: str = "gpu", also: Mapping[str, str] | None = None
) -> list[Object]:
    """Nodes with 8 GPUs, which the stock scheduler sees as nvidia.com/gpu as well.

    Args:
        count: how many.
        prefix: beginning of their names.
        also: further resources of each node.
    """
    nodes = fake_nodes(count, gpus=GPUS_PER_NODE, prefix=prefix)
    for node in nodes:
        status = node["status"]
        assert isinstance(status, dict)
        gpus = {"nvidia.com/gpu": str(GPUS_PER_NODE)}
        resources = {**status["capacity"], **gpus, **(also or {})}
        node["status"] = {**status, "capacity": resources, "allocatable": resources}
    return nodes


@contextmanager
def cluster(
    name: str,
    *,
    nodes: int,
    qps: int | None,
    audit: bool = False,
    root: Path = ROOT,
    also: Mapping[str, str] | None = None,
) -> Iterator[Running]:
    """A cluster with the product installed; it is gone afterwards, whatever happens.

    Args:
        name: of the cluster.
        nodes: fake nodes of 8 GPUs.
        qps: client limits of the stock controllers and scheduler; None: their own.
        audit: whether the API server keeps an audit log.
        root: the checkout whose chart is installed.
        also: further resources of each node.
    """
    say(f"cluster {name}: {nodes} nodes with {GPUS_PER_NODE} GPUs")
    # Fake kubelets may be late under load; a node that counts as lost would spoil a run.
    wanted = Settings(name, qps=qps, audit=audit, node_grace_seconds=600, owner=os.getpid())
    running = up(wanted, recreate=True)
    try:
        running.add_nodes(gpu_nodes(nodes, also=also))
        _install(running, root)
        yield running
    finally:
        say(f"cluster {name}: stopping")
        down(running.name)


def operator_kubeconfig(running: Running) -> Path:
    """The kubeconfig of the operator's service account."""
    return running.folder / "operator.kubeconfig"


def set_qps(running: Running, qps: int | None) -> None:
    """Restart the stock controllers and scheduler with these client limits; None: their own."""
    services = running.state.services
    for name in _LIMITED:
        argv = [part for part in services[name].argv if not part.startswith(_RATE)]
        if qps:
            argv += [f"{_RATE}qps={qps}", f"{_RATE}burst={qps}"]
        running.stop_process(name)
        running.run_process(name, argv)
    ports = running.state.ports
    for name, port in zip(_LIMITED, (ports.controller_manager, ports.scheduler), strict=True):
        with ApiClient(f"https://127.0.0.1:{port}", ca_file=running.ca_file) as client:
            running.wait_for(name, partial(client.is_ok, "/healthz"))


def pids(running: Running) -> Mapping[str, int]:
    """The programs of the cluster, and this one."""
    found = {name: process.pid for name, process in running.processes.items()}
    return {**found, "harness": os.getpid()}


def _install(running: Running, root: Path) -> None:
    chart = str(root / "charts" / "gpu-scheduler")
    running.kubectl("apply", "--filename", "-", input=_RUNTIME_CLASS)
    running.helm(
        *("install", RELEASE, chart, "--namespace", RELEASE, "--create-namespace"),
        *("--set", f"isolation.image={CAP_IMAGE}", "--set", "agent.nodeSelector.bench=none"),
    )
    running.kubectl("--namespace", RELEASE, "scale", "deployment", RELEASE, "--replicas=0")
    crds = [f"crd/{kind}.gpu-scheduler.io" for kind in _CRDS]
    running.kubectl("wait", "--for=condition=Established", *crds, "--timeout=60s")
    token = running.kubectl(
        "--namespace", RELEASE, "create", "token", RELEASE, "--duration=24h"
    ).stdout.strip()
    path = operator_kubeconfig(running)
    path.touch(mode=0o600)
    path.write_text(
        render_kubeconfig(
            name=running.name, server=running.server, ca_file=running.ca_file, token=token
        )
    )
    running.kubectl("create", "namespace", NAMESPACE)
    running.kubectl("apply", "--filename", "-", input=_PROJECT)
    running.kubectl(
        "wait", "--for=create", "serviceaccount/default", f"--namespace={NAMESPACE}",
        "--timeout=60s",
    )  # fmt: skip


# The chart's policy gives it to pods that ask.
_RUNTIME_CLASS = f"""\
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {{name: {RUNTIME_CLASS}}}
handler: {RUNTIME_CLASS}
"""
_PROJECT = f"""\
apiVersion: gpu-scheduler.io/v1alpha1
kind: GPUProject
metadata: {{name: {NAMESPACE}}}
spec: {{namespaces: [{NAMESPACE}], quota: 100000}}
"""
