"""The command lines of the cluster's programs, as pure functions of where and how.

Everything listens on 127.0.0.1, but the API server of a cluster with a real node: its
pods call 10.96.0.1:443, the first address of the service range, without a kube-proxy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cluster import store
from cluster.credentials import kubeconfig_file, token_file
from cluster.ports import Ports
from cluster.settings import Settings

SERVICE_RANGE = "10.96.0.0/16"
SERVICE_ADDRESS = "10.96.0.1"
REAL_NODE_PORT = 443
STAGES_FILE = Path(__file__).parent / "stages.yaml"
AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the command lines depend on."""

    folder: Path
    ports: Ports
    settings: Settings


Program = Callable[[Plan], tuple[str, ...]]


def etcd(plan: Plan) -> tuple[str, ...]:
    """The store; it never syncs to disk, for a cluster that dies is made anew."""
    client = f"http://127.0.0.1:{plan.ports.etcd}"
    peer = f"http://127.0.0.1:{plan.ports.etcd_peer}"
    return (
        f"--data-dir={plan.folder / store.NAME}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        # It is alone: an election need not wait for anybody. Each beat costs 0.3 ms of CPU.
        "--heartbeat-interval=40",
        "--election-timeout=200",
        f"--quota-backend-bytes={4 << 30}",
        "--log-level=warn",
    )


def api_server(plan: Plan) -> tuple[str, ...]:
    """The API server, with RBAC and the users of the token file."""
    folder = plan.folder
    audit = (
        f"--audit-policy-file={folder / 'audit-policy.yaml'}",
        f"--audit-log-path={folder / 'logs' / 'audit.log'}",
        "--audit-log-mode=batch",
    )
    return (
        f"--etcd-servers=http://127.0.0.1:{plan.ports.etcd}",
        f"--secure-port={plan.ports.api_server}",
        f"--bind-address={'0.0.0.0' if plan.settings.real_node else '127.0.0.1'}",
        f"--advertise-address={SERVICE_ADDRESS}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        f"--tls-cert-file={folder / 'apiserver.crt'}",
        f"--tls-private-key-file={folder / 'apiserver.key'}",
        f"--client-ca-file={folder / 'ca.crt'}",
        f"--kubelet-client-certificate={folder / 'apiserver-kubelet-client.crt'}",
        f"--kubelet-client-key={folder / 'apiserver-kubelet-client.key'}",
        "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={folder / 'service-account.key'}",
        f"--service-account-key-file={folder / 'service-account.key'}",
        f"--token-auth-file={token_file(folder)}",
        # The Node authorizer keeps a graph of all pods; only a real kubelet needs it.
        f"--authorization-mode={'Node,RBAC' if plan.settings.real_node else 'RBAC'}",
        "--allow-privileged",
        *(audit if plan.settings.audit else ()),
        *_feature_gates(plan),
        *(f"--runtime-config={api}=true" for api in plan.settings.apis),
    )


def controller_manager(plan: Plan) -> tuple[str, ...]:
    """Its controllers, each with its own service account as in a usual cluster."""
    return (
        f"--controllers={','.join(plan.settings.controllers)}",
        *_client(plan, "kube-controller-manager", plan.ports.controller_manager),
        f"--service-account-private-key-file={plan.folder / 'service-account.key'}",
        f"--root-ca-file={plan.folder / 'ca.crt'}",
        "--use-service-account-credentials",
        f"--node-monitor-grace-period={plan.settings.node_grace_seconds}s",
    )


def scheduler(plan: Plan) -> tuple[str, ...]:
    """The stock scheduler."""
    return _client(plan, "kube-scheduler", plan.ports.scheduler)


def kwok(plan: Plan) -> tuple[str, ...]:
    """The player of fake nodes and of the pods on them."""
    return (
        f"--kubeconfig={kubeconfig_file(plan.folder, 'kwok')}",
        f"--config={STAGES_FILE}",
        "--manage-all-nodes=false",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        # Its leases conflict with each other; nodes live by their heartbeat stage.
        "--node-lease-duration-seconds=0",
        "--v=WARN",
    )


def _client(plan: Plan, key: str, port: int) -> tuple[str, ...]:
    kubeconfig = kubeconfig_file(plan.folder, key)
    qps = plan.settings.qps
    rate = (f"--kube-api-qps={qps}", f"--kube-api-burst={qps}") if qps else ()
    return (
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={plan.folder / 'apiserver.crt'}",
        f"--tls-private-key-file={plan.folder / 'apiserver.key'}",
        "--leader-elect=false",
        *rate,
        *_feature_gates(plan),
    )


def _feature_gates(plan: Plan) -> tuple[str, ...]:
    gates = plan.settings.feature_gates
    return (f"--feature-gates={','.join(gates)}",) if gates else ()
