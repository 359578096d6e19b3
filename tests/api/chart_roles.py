"""What people may do on a cluster, as the chart has it, for as long as a test needs it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.api.caller import Caller
from tests.api.tenant import until

from cluster import Running

CHART = Path(__file__).parents[2] / "charts" / "gpu-scheduler"
VIEW = "/apis/rbac.authorization.k8s.io/v1/clusterroles/view"


@contextmanager
def with_roles(running: Running, admin: Caller, *, dashboard: bool = False) -> Iterator[None]:
    """Who may view a namespace may view what of ours is in it; ``dashboard``: its account too."""
    asked = ["--show-only", "templates/rbac-users.yaml"]
    if dashboard:
        asked += ["--show-only", "templates/rbac-dashboard.yaml", "--set", "dashboard.enabled=true"]
    roles = running.helm("template", "gpu-scheduler", str(CHART), "-n", "gpu-scheduler", *asked)
    running.kubectl("apply", "-f", "-", input=roles.stdout)
    try:
        until(lambda: _view_has_ours(admin), "the role view has what of ours it may view")
        yield
    finally:
        running.kubectl("delete", "-f", "-", input=roles.stdout)
        until(lambda: not _view_has_ours(admin), "the role view is as it was")


def _view_has_ours(admin: Caller) -> bool:
    rules = admin.get(VIEW).body["rules"]
    return any("gpu-scheduler.io" in rule.get("apiGroups", ()) for rule in rules)
