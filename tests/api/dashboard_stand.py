"""An operator with a dashboard that asks anew every few seconds, and the chart's roles for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.api.conftest import administrator
from tests.api.replica import CALM_LEASE, Replica
from tests.api.site import Site

from cluster import Running

CHART = Path(__file__).parents[2] / "charts" / "gpu-scheduler"
PROGRAM = Path(__file__).with_name("hasty_dashboard_operator.py")
ON = {**CALM_LEASE, "dashboard_actions": "true"}
VIEWER, EDITOR = "gpu-scheduler-viewer", "gpu-scheduler-editor"
ALL = "gpu-scheduler-dashboard-viewer"
"""An account in the operator's namespace that sees all."""


def make_roles(running: Running) -> None:
    """As the chart has them."""
    roles = running.helm(
        *("template", "gpu-scheduler", str(CHART), "-n", "gpu-scheduler"),
        *("--set", "dashboard.enabled=true"),
        *("--show-only", "templates/rbac-users.yaml"),
        *("--show-only", "templates/rbac-dashboard.yaml"),
    ).stdout
    running.kubectl("apply", "-f", "-", input=roles)


@contextmanager
def dashboard_on(
    running: Running, port: int, program: Path = PROGRAM, **settings: str
) -> Iterator[Site]:
    """One that leads on a cluster; ``settings``: beside ``ON``."""
    make_roles(running)
    chosen = {**ON, "dashboard_port": str(port), **settings}
    replica = Replica(running, "replica", chosen, program).start()
    try:
        replica.wait_leading()
        yield Site(running, administrator(running), replica)
    finally:
        if replica.alive():
            replica.stop()
