"""Who may view one namespace sees what its own work does, and of others nothing by any path.

By token, by client certificate and by a program that logs in; and who shows nothing at all. The
paths are not listed here: they are found, see ``everywhere``.
"""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.api import pod_tokens
from tests.api.chart_roles import with_roles
from tests.api.conftest import administrator
from tests.api.everywhere import (
    Resource,
    applications,
    ask,
    listeners,
    of_operator,
    ports_of,
    resources,
    routes,
)
from tests.api.free_port import free_port
from tests.api.logins import WAYS, Login, logins
from tests.api.replica import CALM_LEASE
from tests.api.site import Site, site_on, team_on
from tests.api.tenant import Json, Tenant, until
from tests.api.test_checkpoints import FOLDER
from tests.api.test_usage import ON_IT, workload
from tests.api.usage_agent import NAME as AGENT
from tests.api.usage_agent import UsageAgent, usage_agent
from tests.unit.agent.builders import orders
from tests.unit.agent.fake_driver import gpu
from tests.unit.agent.history.test_recorder import Node
from tests.unit.agent.test_process import running as running_agent
from tests.unit.agent.until import until as soon

from cluster import Running
from gpu_scheduler.api.orders import OrderedContainer, OrderedPod
from gpu_scheduler.usage.key import UsageKeys

SCRAPES = "the-token-of-scrapes"
PEAK_MIB = 12_347  # of the other's; no other figure has these digits
OWN, THEIRS = "ours-to-see", "theirs-to-hide"
_OF_ALL = {"clustertrustbundles"}
"""Kubernetes 1.37 shows them to every service account."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Two tenants at work, and those who may view the first one's namespace.

    Attributes:
        ports: of the operator, by setting.
        mine: tenant that may be seen.
        other: tenant that may not.
        pods: of both, in this order.
        people: by each way, and nobody.
        secrets: of the other, which nothing may tell them; its project is named as its namespace.
    """

    site: Site
    ports: dict[str, int]
    mine: Tenant
    other: Tenant
    pods: tuple[Json, Json]
    people: dict[str, Login]
    secrets: dict[str, str]

    def ordered(self) -> list[OrderedPod]:
        """Both pods as an agent is told of them, on its first device."""
        found = []
        for number, (tenant, name) in enumerate(((self.mine, OWN), (self.other, THEIRS))):
            meta = self.pods[number]["metadata"]
            held = OrderedContainer(0, "main", {gpu(0): 20_000}, f"{number}" * 64, promised=True)
            found.append(
                OrderedPod(
                    meta["uid"],
                    tenant.name,
                    meta["name"],
                    (held,),
                    job=name,
                    project=tenant.name,
                    work=uid(tenant, name),
                )
            )
        return found

    def told(self, text: str) -> list[str]:
        """Which secrets a text tells."""
        return [what for what, secret in self.secrets.items() if secret in text]


@pytest.fixture(scope="module")
def scene(control_plane: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("people")
    (folder / "scrapes").write_text(SCRAPES)
    agent_port, ports = free_port(), {setting: free_port() for setting in of_operator()}
    settings = {
        **CALM_LEASE,
        "usage_seconds": "1",
        "agent_port": str(agent_port),
        "scrape_token_file": str(folder / "scrapes"),
        "report_url": f"http://127.0.0.1:{ports['report_port']}/reports",
        **{setting.replace("_port", "_host"): "127.0.0.1" for setting in ports},
        **{setting: str(port) for setting, port in ports.items()},
    }
    with (
        with_roles(control_plane, administrator(control_plane)),
        site_on(control_plane, settings) as site,
        team_on(site) as team,
    ):
        mine, other = team(quota=1), team(quota=1)
        pods = work(mine, OWN), work(other, THEIRS)
        uids = uid(mine, OWN), uid(other, THEIRS)

        def knows(agent: UsageAgent) -> None:
            agent.runs(pods[0], uids[0], busy=0.0, seconds=7200, mib=4000)
            agent.runs(pods[1], uids[1], busy=0.7, seconds=600, mib=PEAK_MIB)

        with (
            logins(control_plane, site.admin, mine.name, folder) as three,
            usage_agent(site.admin, agent_port, knows=knows),
        ):
            until(lambda: workload(mine)["advice"], "there is advice")
            until(lambda: workload(other)["memoryMiB"]["peak"] == PEAK_MIB, "its peak is known")
            nobody = Login(control_plane.server, control_plane.ca_file)
            people = {**dict(zip(WAYS, three, strict=True)), "nobody": nobody}
            meta = pods[1]["metadata"]
            secrets = {
                "namespace and project": other.name,
                "job": THEIRS,
                "pod": meta["name"],
                "pod's UID": meta["uid"],
                "job's UID": uids[1],
                "figure": str(PEAK_MIB),
            }
            yield Scene(site, ports, mine, other, pods, people, secrets)


def work(tenant: Tenant, name: str) -> Json:
    tenant.submit(name, gpu=0.5, template=ON_IT, checkpoint=FOLDER)
    (pod,) = until(lambda: tenant.pods(name), "it has a pod")
    tenant.wait_phase(name, "Running")
    found: Json = pod
    return found


def uid(tenant: Tenant, name: str) -> str:
    return str(tenant.job(name)["metadata"]["uid"])


@pytest.mark.parametrize("way", WAYS)
def test_a_tenant_is_shown_its_own_work(scene: Scene, way: str) -> None:
    def said(*words: str) -> str:
        done = scene.people[way].gpu(*words, "-n", scene.mine.name)
        assert done.returncode == 0, done
        assert not scene.told(done.stdout + done.stderr), done
        return done.stdout

    (job,) = json.loads(said("top", "jobs", "-o", "json"))["jobs"]
    assert (job["name"], job["use"]["memoryMiB"]["peak"]) == (OWN, 4000)
    assert job["use"]["advice"][0]["rule"] == "GPU_IDLE"
    assert OWN in said("top", "jobs")
    report = json.loads(said("report", OWN, "-o", "json"))
    assert (report["gpuHoursHeld"], report["utilizationPercentMean"]) == (1.0, 0)
    assert "1.0" in said("report", OWN)
    (advised,) = json.loads(said("advise", "-o", "json"))["advised"]
    assert (advised["name"], advised["advice"][0]["rule"]) == (OWN, "GPU_IDLE")
    assert "GPU_IDLE" in said("advise")


@pytest.mark.parametrize("way", WAYS)
def test_of_others_the_commands_say_nothing(scene: Scene, way: str) -> None:
    there = ("-n", scene.other.name)
    for words in (
        ("top", "jobs", *there),
        ("report", THEIRS, *there),
        ("advise", *there),
        ("advise", THEIRS, *there),
        ("idle", *there),
        ("advise", "-A"),
        ("idle", "-A"),
    ):
        done = scene.people[way].gpu(*words, "-o", "json")
        assert done.returncode != 2, done  # it was asked for
        named = {"namespace and project"} if scene.other.name in words else set()  # they said it
        named |= {"job"} if THEIRS in words else set()
        assert not {*scene.told(done.stdout + done.stderr)} - named, done


@pytest.mark.parametrize("way", [*WAYS, "nobody"])
def test_the_api_server_tells_them_nothing_of_others(scene: Scene, way: str) -> None:
    wrong: list[tuple[str, int, list[str]]] = []
    asked = set()
    with scene.people[way].asking() as get:
        for resource in resources(scene.site.admin):
            for path, may in paths_of(scene, resource):
                status, text = get(path)
                told = scene.told(text)
                # A refusal repeats the path.
                if [what for what in told if scene.secrets[what] not in path]:
                    wrong.append((path, status, told))
                if status != 403 and not may:
                    wrong.append((path, status, told))
                if may and resource.ours:
                    asked.add(resource.plural)
                    assert (status == 200) == (way != "nobody"), (path, status, text)
    assert not wrong
    assert {"gpujobs", "gpuusages"} <= asked


def paths_of(scene: Scene, resource: Resource) -> Iterator[tuple[str, bool]]:
    """Where objects of a resource are read, and whether who views our namespace may."""
    there = scene.other.name
    if "list" in resource.verbs:
        yield resource.path(), resource.plural in _OF_ALL
        if resource.namespaced:
            yield resource.path(scene.mine.name), True
            yield resource.path(there), False
    if resource.ours:
        assert "get" in resource.verbs, f"{resource}: say how it is asked"
        if "watch" in resource.verbs:
            where = resource.path(there) if resource.namespaced else resource.path()
            yield f"{where}?watch=true&timeoutSeconds=1", False
        yield from objects_of(scene, resource)
    elif resource.plural == "pods" and "get" in resource.verbs:
        yield resource.path(there, scene.pods[1]["metadata"]["name"]), False
        yield resource.path("gpu-scheduler", AGENT), False


def objects_of(scene: Scene, resource: Resource) -> Iterator[tuple[str, bool]]:
    """Each object that there is."""
    listed = Resource(resource.base, resource.plural, "", resource.namespaced, frozenset())
    for body in scene.site.admin.get(listed.path()).body["items"]:
        meta = body["metadata"]
        namespace = meta.get("namespace", "")
        yield resource.path(namespace, meta["name"]), namespace == scene.mine.name


def test_all_that_listens_is_asked_here(scene: Scene) -> None:
    """An application or a socket that is new has to be asked, or to be shown to be none of it."""
    dashboard = "web/dashboard/app.py"  # of which tests/unit/web/dashboard asks every route
    assert applications() == {"web/admin.py", "web/reports.py", dashboard}
    unix = "web/dump_socket.py"  # that its own user alone may open: its tests show it
    assert listeners() == {"web/bounded.py", unix}
    assert scene.site.replica.process is not None
    assert ports_of(scene.site.replica.process.pid) == set(scene.ports.values())


@pytest.mark.parametrize("way", [*WAYS, "nobody"])
def test_the_operators_ports_tell_them_nothing_of_others(scene: Scene, way: str) -> None:
    (mine, theirs), person = scene.pods, scene.people[way]
    values = {
        "pod": (theirs["metadata"]["uid"], mine["metadata"]["uid"]),
        "sweep": (uid(scene.other, THEIRS),),
        "trial": ("0",),
        "token": ("0" * 32,),
    }
    # Their own, and those that their own pod may have.
    tokens = {person.token, ""} | (
        {pod_tokens.projected(scene.site.admin, mine), pod_tokens.token(scene.site.admin, mine, "")}
        if way != "nobody"
        else set()
    )
    for setting, found in of_operator().items():
        for route in found:
            for path in route.paths(values):
                for token in tokens:
                    for each in (path, f"{path}?namespace={scene.mine.name}"):
                        status, text = ask(scene.ports[setting], route.method, each, token)
                        assert not scene.told(text), (route, token, status, text)
    _, shown = ask(scene.ports["admin_port"], "GET", "/metrics", SCRAPES)
    assert "namespace and project" in scene.told(shown), "to scrapes it is shown"


async def test_an_agents_port_tells_them_nothing_of_others(scene: Scene, tmp_path: Path) -> None:
    keys, port = UsageKeys(), free_port()

    async def at_port(method: str, path: str, token: str) -> tuple[int, str]:
        return await asyncio.to_thread(ask, port, method, path, token)

    told = orders(*scene.ordered(), usage_digest=keys.digest("this agent"))
    before = Node(tmp_path)  # an agent before it: an empty history has no look for ten seconds
    before.look(30)
    before.recorder.close()
    folder = {"history_folder": str(tmp_path), "history_megabytes": 2}
    listening = {"admin_port": port, "admin_host": "127.0.0.1"}
    async with running_agent(tmp_path, told=told, **folder, **listening) as stage:
        key = keys.header("this agent").removeprefix("Bearer ")
        await soon(lambda: bool(stage.statuses()))

        def told_to_its_leader() -> bool:
            status, text = ask(port, "GET", "/usage", key)
            return status == 200 and {"pod's UID", "job's UID"} <= {*scene.told(text)}

        await asyncio.to_thread(until, told_to_its_leader, "its leader is told")
        given = {person.token for person in scene.people.values()}
        given |= {keys.digest("this agent"), keys.header("another agent").removeprefix("Bearer ")}
        for route in routes(stage.node.application()):
            for path in route.paths({}):
                for token in given:
                    said = await at_port(route.method, path, token)
                    assert not scene.told(said[1]), (route, token, said)
