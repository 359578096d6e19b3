"""An operator with a dashboard that asks anew every few seconds, and the chart's roles for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.api.chart_roles import with_roles
from tests.api.conftest import administrator
from tests.api.replica import CALM_LEASE, Replica
from tests.api.site import Site

from cluster import Running

PROGRAM = Path(__file__).with_name("hasty_dashboard_operator.py")
ON = {**CALM_LEASE, "dashboard_actions": "true"}
VIEWER, EDITOR = "gpu-scheduler-viewer", "gpu-scheduler-editor"
ALL = "gpu-scheduler-dashboard-viewer"
"""An account in the operator's namespace that sees all."""


@contextmanager
def dashboard_on(
    running: Running, port: int, program: Path = PROGRAM, **settings: str
) -> Iterator[Site]:
    """One that leads on a cluster; ``settings``: beside ``ON``."""
    admin = administrator(running)
    chosen = {**ON, "dashboard_port": str(port), **settings}
    with with_roles(running, admin, dashboard=True):
        replica = Replica(running, "replica", chosen, program).start()
        try:
            replica.wait_leading()
            yield Site(running, admin, replica)
        finally:
            if replica.alive():
                replica.stop()
