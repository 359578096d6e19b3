"""Looking at a real control plane: the GPUs, the projects, the installation, what a job took."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.api.cli.program import gpu, gpu_here, refused, write_kubeconfig
from tests.api.conftest import administrator
from tests.api.replica import operating
from tests.api.tenant import Tenant, until
from tests.unit.cli.installation import well

from cluster import Running
from gpu_scheduler.cli.checks.facts import PART_OF, CheckState
from gpu_scheduler.cli.checks.table import findings

CHART = Path(__file__).parents[3] / "charts" / "gpu-scheduler"
ADMISSION, MAP = "admissionregistration.k8s.io", "MutatingAdmissionPolicy"


@pytest.fixture(scope="module")
def scheduled(control_plane: Running) -> Iterator[Running]:
    with operating(control_plane):
        yield control_plane


@pytest.fixture
def busy(tenant: Tenant) -> Tenant:
    """With jobs of 0.5 and 0.3 on one GPU, and one that can never fit its project."""
    tenant.set_project(quota=1, limit=1)
    for name, share in (("frac05", 0.5), ("frac03", 0.3)):
        tenant.submit(name, gpu=share)
        tenant.wait_placed(name)
    tenant.submit("later", gpu=1)
    tenant.wait_reason("later", "WaitingForQuota")
    return tenant


@pytest.fixture
def somebody(scheduled: Running, tenant: Tenant, tmp_path: Path) -> Path:
    """A kubeconfig of an account that may look at its own namespace alone."""
    own = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{tenant.name}"
    account = {"kind": "ServiceAccount", "name": "default", "namespace": tenant.name}
    for path, body in (
        (
            f"{own}/roles",
            {
                "metadata": {"name": "look"},
                "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}],
            },
        ),
        (
            f"{own}/rolebindings",
            {
                "metadata": {"name": "look"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "Role",
                    "name": "look",
                },
                "subjects": [account],
            },
        ),
    ):
        assert tenant.admin.create(path, body).ok
    path = f"/api/v1/namespaces/{tenant.name}/serviceaccounts/default/token"
    token = tenant.admin.create(path, {"spec": {}}).body["status"]["token"]
    return write_kubeconfig(
        tmp_path / "somebody",
        {"token": token},
        server=scheduled.server,
        **{"certificate-authority": str(scheduled.ca_file)},
    )


def test_a_gpu_has_its_holders(scheduled: Running, busy: Tenant) -> None:
    done = gpu(scheduled.kubeconfig, "top", "gpus")
    assert done.returncode == 0, done.stderr
    (line,) = [each for each in done.stdout.splitlines() if "frac05" in each]
    assert "A100  █████▓▓▓░░ 0.80  " in line
    assert line.index("frac05 0.50") < line.index("frac03 0.30")
    assert (
        "0.8 of 8 GPUs is allocated; what they do is not known. Seven whole GPUs are free."
        in done.stdout
    )
    found = json.loads(gpu_here(scheduled.kubeconfig, "top", "jobs", "-o", "json").stdout)
    held = {job["name"]: job["milliGPU"] for job in found["jobs"] if job["namespace"] == busy.name}
    assert held == {"frac05": 500, "frac03": 300}


def test_an_output_without_blocks_gets_letters(scheduled: Running, busy: Tenant) -> None:
    done = gpu(scheduled.kubeconfig, "top", "gpus", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "#####===-- 0.80" in done.stdout


def test_a_project_and_what_it_holds(scheduled: Running, busy: Tenant) -> None:
    until(lambda: busy.project_status()["allocatedGPU"] == "0.8", "its status says so")
    done = gpu_here(scheduled.kubeconfig, "projects")
    (row,) = [each for each in done.stdout.splitlines() if each.startswith(busy.name)]
    assert row.split()[:4] == [busy.name, "1", "0.8", "0"]
    done = gpu_here(scheduled.kubeconfig, "project", "describe", busy.name)
    assert done.returncode == 0, done.stderr
    assert f"{busy.name}/frac05" in done.stdout
    (row,) = [each for each in done.stdout.splitlines() if f"{busy.name}/later" in each]
    assert "WaitingForQuota" in row


def test_a_project_can_be_made_and_a_bad_one_not(scheduled: Running, tenant: Tenant) -> None:
    name = f"{tenant.name}-more"
    options = ["--quota", "0.5", "--limit", "2", "--namespace", name]
    done = gpu_here(scheduled.kubeconfig, "project", "create", name, *options)
    assert done.returncode == 0, done.stderr
    path = f"/apis/gpu-scheduler.io/v1alpha1/gpuprojects/{name}"
    try:
        spec = tenant.admin.get(path).body["spec"]
        assert (spec["quota"], spec["limit"], spec["namespaces"]) == (0.5, 2, [name])
        said = refused(gpu_here(scheduled.kubeconfig, "project", "create", name, *options))
        assert "already exists" in said
    finally:
        assert tenant.admin.send("DELETE", path).ok
    dry = gpu_here(scheduled.kubeconfig, "project", "create", name, *options, "--dry-run", "server")
    assert dry.returncode == 0, dry.stderr
    assert tenant.admin.get(path).status == 404
    bad = ["No_Name", "--quota", "1", "-n", "a"]
    said = refused(gpu_here(scheduled.kubeconfig, "project", "create", *bad))
    assert "No_Name" in said


def test_what_a_job_took(scheduled: Running, busy: Tenant) -> None:
    def report() -> dict[str, Any]:
        done = gpu_here(scheduled.kubeconfig, "report", "frac05", "-n", busy.name, "-o", "json")
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    found = until(lambda: (r := report())["gpuHoursHeld"] is not None and r, "it holds a GPU")
    assert 0 <= found["queuedSeconds"] < 60
    assert not found["waits"]
    waits = json.loads(
        gpu_here(scheduled.kubeconfig, "report", "later", "-n", busy.name, "-o", "json").stdout
    )
    assert (waits["waits"], waits["gpuHoursHeld"]) == (True, None)
    assert waits["state"] == "Pending, WaitingForQuota"


def test_the_installation_is_looked_at(scheduled: Running, tenant: Tenant) -> None:
    done = gpu_here(scheduled.kubeconfig, "check", "-o", "json")
    found = {each["name"]: each for each in json.loads(done.stdout)["checks"]}
    assert found["CRDs"]["state"] == "OK", found["CRDs"]
    assert found["leader"]["state"] == "OK", found["leader"]
    assert found["operator"]["state"] == "WARN" and "outside" in found["operator"]["what"]
    assert found["node labels"]["state"] == "OK"
    assert (found["RuntimeClass"]["state"], done.stderr) == ("WARN", "")
    assert done.returncode == int(any(e["state"] == "MISSING" for e in found.values()))


def test_who_may_look_at_one_namespace(scheduled: Running, busy: Tenant, somebody: Path) -> None:
    for what in ("gpus", "jobs"):
        done = gpu_here(somebody, "top", what, "-n", busy.name)
        assert done.returncode == 0, done.stderr
        assert "frac05" in done.stdout and "0.50" in done.stdout
        assert f"0.80 GPUs held: namespace {busy.name} alone is shown, as you may" in done.stdout
    assert "gpuprojects" in gpu_here(somebody, "top", "projects", "-n", busy.name).stdout
    assert "gpuprojects" in refused(gpu_here(somebody, "projects"))
    done = gpu_here(somebody, "check", "-o", "json")
    checks = json.loads(done.stdout)["checks"]
    assert {each["state"] for each in checks} <= {"UNKNOWN", "WARN"}, checks
    assert done.returncode == 0
    report = gpu_here(somebody, "report", "frac05", "-n", busy.name)
    assert report.returncode == 0, report.stderr


def test_who_may_see_the_inventory_sees_own_shares(
    scheduled: Running, busy: Tenant, somebody: Path
) -> None:
    admin = administrator(scheduled)
    rbac, name = "/apis/rbac.authorization.k8s.io/v1", f"{busy.name}-inventory"
    kinds = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
    role = {"metadata": {"name": name}, "rules": [kinds]}
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": busy.name}],
    }
    assert admin.create(f"{rbac}/clusterroles", role).ok
    assert admin.create(f"{rbac}/clusterrolebindings", binding).ok
    try:
        done = gpu_here(somebody, "top", "gpus", "-n", busy.name)
        assert done.returncode == 0, done.stderr
        assert "frac05 0.50  frac03 0.30" in done.stdout
        assert f"shares of other namespaces than {busy.name} (not yours)" in done.stdout
    finally:
        for plural in ("clusterrolebindings", "clusterroles"):
            assert admin.send("DELETE", f"{rbac}/{plural}/{name}").ok


def test_what_the_chart_installs_lacks_nothing(control_plane: Running) -> None:
    shown = control_plane.helm(
        *("template", "gpus", str(CHART), "-n", "gpus", "--api-versions", f"{ADMISSION}/v1/{MAP}")
    ).stdout
    kinds: dict[str, list[dict[str, Any]]] = {}
    for body in filter(None, yaml.safe_load_all(shown)):
        kinds.setdefault(body["kind"], []).append(body)
    (deployment,), (daemonset,) = kinds["Deployment"], kinds["DaemonSet"]
    deployment["status"] = {"readyReplicas": 2}
    daemonset["status"] = {"numberReady": 1, "desiredNumberScheduled": 1}
    facts = replace(
        well(),
        crds=kinds["CustomResourceDefinition"],
        deployments=[deployment],
        daemonsets=[daemonset],
        validating=kinds["ValidatingAdmissionPolicy"],
        validating_bindings=kinds["ValidatingAdmissionPolicyBinding"],
        mutating=kinds[MAP],
        mutating_bindings=kinds[f"{MAP}Binding"],
    )
    assert [each for each in findings(facts) if each.state is not CheckState.OK] == []
    assert {body["metadata"]["labels"][PART_OF] for body in (deployment, daemonset)} == {
        "gpu-scheduler"
    }
    bare = replace(facts, validating_bindings=kinds["ValidatingAdmissionPolicyBinding"][1:])
    assert any(each.state is CheckState.MISSING for each in findings(bare))
