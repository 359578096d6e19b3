"""Facts of an installation in which nothing is missing, and their parts."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.unit.cli.node_objects import gpunode, node

from gpu_scheduler import __version__
from gpu_scheduler.api.crd import KINDS
from gpu_scheduler.api.unstructured import Body
from gpu_scheduler.cli.checks import policies
from gpu_scheduler.cli.checks.facts import CheckInputs

DEFINITIONS = [kind.definition() for kind in KINDS]
NOW = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)


def named(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "gpus"}, **more}


def lease(name: str, seconds_ago: float = 2, holder: str = "operator-x") -> Body:
    renewed = (NOW - timedelta(seconds=seconds_ago)).isoformat().replace("+00:00", "Z")
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}
    return named(name, spec=spec)


def workload(name: str, image: str, spec: Body, status: Body, **template: Any) -> Body:
    pod = {"containers": [{"image": image, "env": []}], **template}
    selector = {"matchLabels": {"app.kubernetes.io/name": name}}
    body = {**spec, "selector": selector, "template": {"spec": pod}}
    found = named(name, spec=body, status=status)
    found["metadata"]["labels"] = {"app.kubernetes.io/version": __version__}
    return found


def operator(ready: int = 2, wanted: int = 2, image: str = f"gpu-scheduler:{__version__}") -> Body:
    return workload("gpu-scheduler", image, {"replicas": wanted}, {"readyReplicas": ready})


def agents(ready: int = 1, wanted: int = 1) -> Body:
    status = {"numberReady": ready, "desiredNumberScheduled": wanted}
    more = {"runtimeClassName": "nvidia", "nodeSelector": {"nvidia.com/gpu.present": "true"}}
    return workload("gpu-scheduler-agent", f"gpu-scheduler-agent:{__version__}", {}, status, **more)


NAMES = [f"gpu-scheduler-{suffix}" for suffix in policies._SUFFIXES]


def bindings(names: list[str]) -> list[Body]:
    return [named(name, spec={"policyName": name}) for name in names]


def project(name: str, *namespaces: str, **condition: str) -> Body:
    return named(
        name,
        spec={"namespaces": list(namespaces or (name,)), "quota": 1},
        status={"conditions": [condition] if condition else []},
    )


def well() -> CheckInputs:
    """An installation in which nothing is missing."""
    return CheckInputs(
        namespace="gpus",
        version=__version__,
        now=NOW,
        kinds=frozenset(kind.plural for kind in KINDS),
        admission=frozenset(["validatingadmissionpolicies", "mutatingadmissionpolicies"]),
        crds=DEFINITIONS,
        deployments=[operator()],
        daemonsets=[agents()],
        leases=[lease("gpu-scheduler-leader"), lease("gpu-node-n1")],
        nodes=[node("n1"), {"metadata": {"name": "cpu-only"}}],
        gpunodes=[gpunode("n1", "GPU-a", "GPU-b")],
        projects=[project("team-a")],
        namespaces=[named("team-a"), named("team-b")],
        runtime_classes=[named("nvidia")],
        validating=[named(name) for name in NAMES],
        validating_bindings=bindings(NAMES),
        mutating=[named("gpu-scheduler-shares")],
        mutating_bindings=bindings(["gpu-scheduler-shares"]),
        quotas=[],
        pods=[],
    )
