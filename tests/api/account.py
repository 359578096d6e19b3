"""The operator's account on a cluster of this tier: what the chart makes for it, and a token of it.

The replicas of these tests run with it, so that every test shows that roles and policies leave the
operator what it does. Left out are the policies for what people write, which would refuse it before
the operator can judge it. Called when a cluster is made.
"""

from pathlib import Path

import yaml
from tests.api.caller import Caller

from cluster import Running
from cluster.credentials import render_kubeconfig
from cluster.programs import KUBERNETES_MINOR

CHART = Path(__file__).parents[2] / "charts" / "gpu-scheduler"
RELEASE = "gpu-scheduler"  # also its namespace, and the account's name
NAMESPACE = f"/api/v1/namespaces/{RELEASE}"
IMAGE = ("example/operator", "v1")
OF_PEOPLE = {
    "admission-agent.yaml",
    "admission-claims.yaml",
    "admission-devices.yaml",
    "admission-share-requests.yaml",
    "admission-shares.yaml",
    "admission-sweeps.yaml",
}
OTHERS = ("serviceaccount", "rbac-operator", "rbac-holders", "priorityclass")
# Where these are away the chart has no policy of endings, and no pod asks for a share by itself.
HAS_MUTATING_POLICIES = KUBERNETES_MINOR >= 36
VALUES = (
    "admission.trustedUsers={admin}",  # tests write allocations to play somebody else
    "admission.devices.enabled=false",
    "sweeps.readLogs=true",
    "holders.enabled=true",
    "agent.history.enabled=true",
    "dashboard.enabled=true",
    f"image.repository={IMAGE[0]}",
    f"image.tag={IMAGE[1]}",
)


def kubeconfig(running: Running) -> Path:
    """With a token of the operator's account."""
    return running.folder / "operator.kubeconfig"


def operator(running: Running) -> Caller:
    """Whoever has the token."""
    user = yaml.safe_load(kubeconfig(running).read_text())["users"][0]["user"]
    return Caller(running.server, running.ca_file, user["token"])


def make(running: Running) -> None:
    """Make the account, and wait until its bounds are in force."""
    policies = {path.name for path in (CHART / "templates").glob("admission-*.yaml")} - OF_PEOPLE
    if not HAS_MUTATING_POLICIES:
        policies -= {"admission-endings.yaml"}
    files = [*(f"{name}.yaml" for name in OTHERS), *sorted(policies)]
    only = [part for file in files for part in ("--show-only", f"templates/{file}")]
    values = [part for value in VALUES for part in ("--set", value)]
    mutating = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
    served = ("--api-versions", mutating) if HAS_MUTATING_POLICIES else ()
    made = running.helm("template", RELEASE, str(CHART), "-n", RELEASE, *served, *only, *values)
    running.kubectl("apply", "-f", "-", input=made.stdout)
    token = running.kubectl("create", "token", RELEASE, "-n", RELEASE, "--duration=24h")
    path = kubeconfig(running)
    path.touch(mode=0o600)
    path.write_text(
        render_kubeconfig(
            name=running.name,
            server=running.server,
            ca_file=running.ca_file,
            token=token.stdout.strip(),
        )
    )
    holder_of_token = operator(running)
    pod = {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
    bounds = {"pods": pod, "configmaps": {"metadata": {"name": "x"}}}

    def bounded() -> bool:
        answers = (holder_of_token.create(f"{NAMESPACE}/{kind}", bounds[kind]) for kind in bounds)
        return all("ValidatingAdmissionPolicy" in answer.message for answer in answers)

    running.wait_for("kube-apiserver", bounded)
