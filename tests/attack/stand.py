"""Where the attack takes place: a control plane with fake nodes, the chart, and two replicas.

Each replica has the chart's memory limit, as in its pod. The API server has a limit of its own, so
that no attack takes the machine, and an audit log of what the operator asks for.
"""

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.api.caller import Caller
from tests.api.replica import Replica
from tests.api.tenant import Tenant, until
from tests.attack import on_gpus
from tests.attack.memory_group import MemoryGroup, memory_group
from tests.perf.install import cluster, operator_kubeconfig
from tests.perf.settings import ROOT
from tests.perf.workload import CAP_IMAGE
from tests.soak.site import Replicas, Site, let_edit

from cluster import Running

HOME, COMPAT, ELSEWHERE, HONEST = "worst-home", "worst-compat", "worst-elsewhere", "honest"
LIMIT_GPUS = 4
NODES = 4
OPERATOR = "system:serviceaccount:gpu-scheduler:gpu-scheduler"
_MIB = 1 << 20
_API_SERVER = "kube-apiserver"
# As the operator has it by default; api.Replica's own are quicker.
_SETTINGS = {"admin_port": "0", "status_seconds": "1.0", "recheck_seconds": "30"}
_SETTINGS |= {"eviction_pause_seconds": "10", "cap_image": CAP_IMAGE}
_AUDIT_POLICY = f"""\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - {{level: Metadata, users: ["{OPERATOR}"]}}
  - {{level: None}}
"""


@dataclass(slots=True)
class Stand:
    """The cluster under attack."""

    site: Site
    honest: Caller
    tokens: list[str]
    replicas: Replicas
    reports: list[str]
    """Host and port of each replica's port for reports."""
    operator_memory: list[MemoryGroup]
    audit: Path
    api_server: MemoryGroup
    api_server_pid: int

    def revive(self) -> None:
        """Start an API server that has ended again."""
        running = self.site.running
        running.start_process(_API_SERVER)
        self.api_server_pid = running.processes[_API_SERVER].pid
        self.api_server.add(self.api_server_pid)
        running.wait_ready()


@contextmanager
def stand(api_server_gib: float, seed: int) -> Iterator[Stand]:
    """All of it, with a leader; it is gone afterwards."""
    operators: list[MemoryGroup] = []
    reports: list[str] = []
    limit = chart_limit_mib() * _MIB
    with (
        ExitStack() as groups,  # removed when what is in them has ended
        cluster(f"attack-{os.getpid()}", nodes=NODES, qps=200, audit=True) as running,
        ExitStack() as processes,
    ):
        pid = _restart_api_server(running, api_server_gib)
        bound = memory_group("api-server", int(api_server_gib * 1024) * _MIB)
        api_server = groups.enter_context(bound)
        api_server.add(pid)
        token = running.token
        site = Site(
            running,
            seed,
            admin=Caller(running.server, running.ca_file, token()),
            editor=Caller(running.server, running.ca_file, token("edit-user")),
        )
        tokens = [token("edit-user"), _tenants(site)]
        runner = account(site.admin, HONEST, "runner")
        honest = Caller(running.server, running.ca_file, runner)
        _in_force(site)

        def start(replica: Replica) -> Replica:
            reports.append(take_reports(replica))
            operators.append(groups.enter_context(memory_group(replica.name, limit)))
            replica.start()
            assert replica.process is not None
            operators[-1].add(replica.process.pid)
            return replica

        replicas = Replicas(site, operator_kubeconfig(running), _SETTINGS, start)
        processes.callback(replicas.end)
        until(lambda: any(replica.synced() for replica in replicas.all), "somebody leads")
        audit = running.folder / "logs" / "audit.log"
        yield Stand(site, honest, tokens, replicas, reports, operators, audit, api_server, pid)


def take_reports(replica: Replica) -> str:
    """Have a replica that is to start listen for reports on loopback; where."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    replica.settings |= {"report_port": str(port), "report_host": "127.0.0.1"}
    replica.settings["report_url"] = f"http://127.0.0.1:{port}/reports"
    return f"127.0.0.1:{port}"


def chart_limit_mib() -> int:
    """The operator's memory limit in the chart's values."""
    values = yaml.safe_load((ROOT / "charts" / "gpu-scheduler" / "values.yaml").read_text())
    text = values["resources"]["limits"]["memory"]
    return int(text[:-2]) * {"Mi": 1, "Gi": 1024}[text[-2:]]


def _restart_api_server(running: Running, gib: float) -> int:
    """With the audit of one user, a bound on its heap, and an etcd that does not fill; its pid."""
    (running.folder / "audit-policy.yaml").write_text(_AUDIT_POLICY)
    argv = running.state.services[_API_SERVER].argv
    running.stop_process(_API_SERVER)
    env = shutil.which("env") or "/usr/bin/env"
    heap = f"GOMEMLIMIT={int(gib * 1024 * 0.85)}MiB"
    more = ("--etcd-compaction-interval=60s", "--audit-log-mode=blocking")
    kept = [part for part in argv if not part.startswith("--audit-log-mode")]
    running.run_process(_API_SERVER, (env, "GOGC=100", heap, *kept, *more))
    running.wait_ready()
    return running.processes[_API_SERVER].pid


def _tenants(site: Site) -> str:
    """The tenant that attacks and the other one; a token of an account that attacks."""
    admin = site.admin
    everywhere = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/local-edit-user"
    assert admin.send("DELETE", everywhere).ok  # it edits in its namespaces alone
    token = tenant(admin, HOME, COMPAT, ELSEWHERE, quota=2, limit=LIMIT_GPUS)
    user = {"kind": "User", "name": "edit-user", "apiGroup": "rbac.authorization.k8s.io"}
    for namespace in (HOME, COMPAT, ELSEWHERE):
        let_edit(admin, namespace, user)
    Tenant(admin, HONEST).create(quota=8)
    return token


def tenant(
    admin: Caller, home: str, compat: str, elsewhere: str, *, quota: float, limit: float
) -> str:
    """The namespaces of a tenant, which are ``Scene``'s; a token of an account that edits there.

    What it may ask the device plugin for is bounded as in any cluster: nothing elsewhere.
    """
    for name in (home, compat, elsewhere):
        labels = {"pod-security.kubernetes.io/enforce": "baseline"}
        labels |= {"gpu-scheduler.io/compat": "hami"} if name == compat else {}
        body = {"metadata": {"name": name, "labels": labels}}
        assert admin.create("/api/v1/namespaces", body).ok
    made = Tenant(admin, home).project(home, namespaces=[home, compat], quota=quota, limit=limit)
    assert made.ok, made
    for name, count in ((home, "8"), (elsewhere, "0")):
        hard = {"requests.nvidia.com/gpu": count}
        body = {"metadata": {"name": "plugin"}, "spec": {"hard": hard}}
        assert admin.create(f"/api/v1/namespaces/{name}/resourcequotas", body).ok
    for name in (home, compat, elsewhere):
        at = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        until(lambda at=at: admin.get(at).ok, f"{name} has an account for its pods")
    return account(admin, home, "worst", compat, elsewhere)


def account(admin: Caller, namespace: str, name: str, *also: str) -> str:
    """A ServiceAccount that may edit in its namespace and ``also`` in others; a token of it."""
    at = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    assert admin.create(at, {"metadata": {"name": name}}).ok
    for each in (namespace, *also):
        let_edit(admin, each, {"kind": "ServiceAccount", "name": name, "namespace": namespace})
    spec: dict[str, Any] = {"spec": {"expirationSeconds": 24 * 3600}}
    answer = admin.create(f"{at}/{name}/token", spec)
    assert answer.ok, answer
    return str(answer.body["status"]["token"])


def _in_force(site: Site) -> None:
    """Until the API server knows the policies, and what the attackers may do."""
    until(
        lambda: site.editor.may("create", "gpujobs", HOME, group="gpu-scheduler.io"),
        "the chart's role is part of edit",
    )
    at = f"/api/v1/namespaces/{HOME}/pods?dryRun=All"
    silent = on_gpus.pod("silent", **on_gpus.NVIDIA)
    forged = on_gpus.pod("forged", notes={"gpu-scheduler.io/allocation": "{}"})
    for body in (silent, forged):
        until(
            lambda body=body: "ValidatingAdmissionPolicy" in site.admin.create(at, body).message,
            "the chart's policies are in force",
        )
