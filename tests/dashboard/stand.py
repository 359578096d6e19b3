"""What the browser tests run on: a real control plane, the operator with the dashboard, work.

Who starts it gets one file that nobody else can read: addresses, tokens by who they are of, and the
secret of the control port (see ``Stand.actions``), by which a test has something happen.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.api.conftest import own_cluster
from tests.api.dashboard_scene import EVIL, Scene, scene_on, settings
from tests.api.dashboard_stand import ALL, EDITOR, VIEWER, dashboard_on
from tests.api.dashboard_user import account, bind, token
from tests.api.free_port import free_port
from tests.api.replica import LEASE_NAMESPACE, ROOT
from tests.api.site import Site
from tests.api.tenant import Tenant, until
from tests.api.usage_agent import usage_agent
from tests.dashboard.control import control_of
from tests.dashboard.expiring import expiring
from tests.dashboard.kubelet import kubelet_with

PROGRAM = Path(__file__).with_name("asking_operator.py")
PAGES = ROOT / "dashboard" / "dist"
LOG = f"first line\n{EVIL}\nlast line\n"


@dataclass(slots=True)
class Stand:
    """Cluster, operator and work."""

    site: Site
    scene: Scene
    port: int
    _accounts: int = 0

    def tokens(self) -> dict[str, str]:
        """By who has them: all, one namespace's reader and editor, a guest, one with no rights."""
        admin, vision, guests = self.site.admin, self.scene.vision.name, self.scene.guests.name
        found = {
            "all": token(admin, LEASE_NAMESPACE, ALL),
            "reader": account(admin, vision, "reader"),
            "editor": account(admin, vision, "editor"),
            "guest": account(admin, guests, "guest"),
            "nobody": account(admin, guests, "nobody"),
        }
        bind(admin, vision, (vision, "reader"), VIEWER)
        for role in (VIEWER, EDITOR):
            bind(admin, vision, (vision, "editor"), role)
        bind(admin, guests, (guests, "guest"), "edit")  # with logs; the chart adds what is ours
        return found

    def actions(self) -> Mapping[str, Callable[..., Any]]:
        """What a test may have happen; each returns when it has."""
        return {
            "submit": self._submit,
            "remove": lambda namespace, name: self._tenant(namespace).remove(name),
            "job": lambda namespace, name: self._tenant(namespace).job(name),
            "stop": self.site.replica.kill,
            "start": self.site.restart,
            "expiring": self._expiring,
            "account": self._account,
            "delete-account": self._delete_account,
        }

    def _tenant(self, namespace: str) -> Tenant:
        return Tenant(self.site.admin, namespace)

    def _submit(self, namespace: str, name: str, spec: dict[str, Any]) -> None:
        tenant = self._tenant(namespace)
        tenant.submit(name, **spec)
        until(lambda: tenant.status(name).get("phase"), "it has a phase")

    def _expiring(self, seconds: float) -> str:
        """A token that sees all, for so long."""
        made = token(self.site.admin, LEASE_NAMESPACE, ALL)
        return expiring(self.site.running, made, seconds)

    def _account(self) -> dict[str, str]:
        """A new one that may view the first namespace: its name and token."""
        self._accounts += 1
        name, vision = f"short-{self._accounts}", self.scene.vision.name
        made = account(self.site.admin, vision, name)
        bind(self.site.admin, vision, (vision, name), VIEWER)
        return {"name": name, "token": made}

    def _delete_account(self, name: str) -> None:
        path = f"/api/v1/namespaces/{self.scene.vision.name}/serviceaccounts/{name}"
        assert self.site.admin.send("DELETE", path).ok


@contextmanager
def stand() -> Iterator[Path]:
    """One that is ready; the file that says how to use it."""
    port, agent_port = free_port(), free_port()
    with (
        own_cluster("dashboard") as running,
        dashboard_on(
            running, port, PROGRAM, dashboard_folder=str(PAGES), **settings(agent_port)
        ) as site,
        kubelet_with(running, site.admin, LOG),
        usage_agent(site.admin, agent_port) as agent,
        scene_on(site.admin, agent) as scene,
    ):
        made = Stand(site, scene, port)
        with control_of(made.actions()) as control:
            handed = running.folder / "dashboard-stand.json"
            handed.touch(mode=0o600)
            handed.write_text(
                json.dumps(
                    {
                        "base": f"http://127.0.0.1:{port}",
                        "control": control.address,
                        "secret": control.secret,
                        "tokens": made.tokens(),
                        "evil": EVIL,
                    }
                )
            )
            yield handed
