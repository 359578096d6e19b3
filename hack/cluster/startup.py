"""Starts the control plane of a cluster in the order in which its parts need each other."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from cluster import control_plane, credentials
from cluster.api_client import ApiClient, Object
from cluster.commands import run
from cluster.control_plane import Plan
from cluster.running import Running
from cluster.settings import Settings

# What the users with stock roles may do, in every namespace.
_BINDINGS = {"edit-user": "edit", "view-user": "view"}
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def start_control_plane(running: Running, settings: Settings) -> None:
    """Starts every program and returns when pods can be created and scheduled.

    Raises:
        ClusterError: a program ended or was not ready in time, or a CRD was refused.
    """
    folder = running.folder
    plan = Plan(folder, running.state.ports, settings)
    _run(running, "etcd", control_plane.etcd(plan))
    run([running.binary("certs"), folder], "certificates could not be made")
    credentials.write_tokens(folder)
    credentials.write_kubeconfigs(folder, name=running.name, server=running.server)
    if settings.audit:
        (folder / "audit-policy.yaml").write_text(control_plane.AUDIT_POLICY)
    _run(running, "kube-apiserver", control_plane.api_server(plan))
    running.wait_ready()
    _define(running, settings.crds)
    _run(running, "kube-controller-manager", control_plane.controller_manager(plan))
    _run(running, "kube-scheduler", control_plane.scheduler(plan))
    _run(running, "kwok", control_plane.kwok(plan))
    with running.client() as client:
        for user, role in _BINDINGS.items():
            client.create(
                "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", _bind(user, role)
            )
        # Pods need their namespace's service account, which a controller creates.
        running.wait_for(
            "kube-controller-manager",
            partial(client.is_ok, "/api/v1/namespaces/default/serviceaccounts/default"),
        )
    with ApiClient(f"https://127.0.0.1:{plan.ports.scheduler}", ca_file=running.ca_file) as client:
        running.wait_for("kube-scheduler", partial(client.is_ok, "/readyz"))


def _run(running: Running, name: str, arguments: tuple[str, ...]) -> None:
    running.run_process(name, (str(running.binary(name)), *arguments))


def _define(running: Running, crds: Sequence[Path]) -> None:
    """Creates CRDs and waits until discovery, from which controllers learn of kinds, has them."""
    bodies = [body for path in crds for body in yaml.safe_load_all(path.read_text()) if body]
    with running.client() as client:
        for body in bodies:
            client.create(_CRDS, body)
        for body in bodies:
            running.wait_for("kube-apiserver", partial(_is_served, client, body["spec"]))


def _is_served(client: ApiClient, spec: Any) -> bool:
    group, version, plural = spec["group"], spec["versions"][0]["name"], spec["names"]["plural"]
    groups: Any = client.get("/apis")["groups"]
    if not any(each["name"] == group for each in groups):
        return False
    resources: Any = client.get(f"/apis/{group}/{version}")["resources"]
    return any(each["name"] == plural for each in resources)


def _bind(user: str, role: str) -> Object:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"local-{user}"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
