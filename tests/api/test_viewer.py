"""Who may only look at a namespace changes nothing there: every endpoint, method and token tried.

What a viewer has: whatever stands in the objects that the role `view` shows, its own credentials,
and tokens of pods in a namespace of its own. The operator's ports are open to everybody.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.api import pod_tokens
from tests.api.caller import Caller
from tests.api.chart_roles import with_roles
from tests.api.pod_tokens import changed, signed, token
from tests.api.replica import CALM_LEASE
from tests.api.site import Site, site_on, team_on
from tests.api.tenant import GROUP, Json, Tenant, template, until
from tests.api.test_checkpoints import FOLDER, running, saved
from tests.api.test_sweep_reports import BAD, GOOD, free_port, listed

from cluster import Running
from gpu_scheduler.api.names import CHECKPOINT_URL, REPORT_URL

API = "https://kubernetes.default.svc"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
KINDS = (
    *(f"/api/v1/namespaces/%s/{kind}" for kind in ("pods", "configmaps", "events", "services")),
    "/apis/batch/v1/namespaces/%s/jobs",
    f"{GROUP}/namespaces/%s/gpujobs",
)
REPORT = json.dumps({"step": 1, "metrics": {"loss": 9e9}})


@dataclass(frozen=True, slots=True)
class Scene:
    """A namespace at which somebody may look, and one of its own."""

    site: Site
    tenant: Tenant
    viewer: Caller
    training: Json  # the pod of a job with a checkpoint
    trial: Json  # of a sweep with early stopping; there is a better one
    sources: Iterator[int]
    admin_port: int

    def ask(self, method: str, url: str, given: str, body: str) -> int:
        """The status; each token comes from an address of its own, so none is in another's way."""
        where = urlsplit(url)
        assert where.hostname is not None
        source = (f"127.0.1.{next(self.sources) % 200 + 1}", 0)
        connection = HTTPConnection(where.hostname, where.port, 10, source)
        try:
            headers = {"Authorization": f"Bearer {given}"} if given else {}
            connection.request(method, where.path, body, headers)
            return connection.getresponse().status
        finally:
            connection.close()

    def versions(self) -> dict[str, str]:
        """Of all objects of the namespace, and its project."""
        found = {}
        for kind in KINDS:
            for each in self.tenant.admin.get(kind % self.tenant.name).body["items"]:
                found[f"{kind}/{each['metadata']['name']}"] = each["metadata"]["resourceVersion"]
        return found

    def shown(self) -> str:
        """All that the viewer may read there, and the logs of the operator."""
        answers = [self.viewer.get(kind % self.tenant.name) for kind in KINDS]
        assert [answer.status for answer in answers] == [200] * len(KINDS)
        logs = "".join(path.read_text() for path in self.site.running.folder.glob("replica*.log"))
        assert logs
        return json.dumps([answer.body for answer in answers]) + logs


@pytest.fixture(scope="module")
def scene(control_plane: Running) -> Iterator[Scene]:
    port, admin_port = free_port(), free_port()
    settings = {
        **CALM_LEASE,
        "report_port": str(port),
        "report_host": "127.0.0.1",
        "report_url": f"http://127.0.0.1:{port}/reports",
        "admin_port": str(admin_port),
        "admin_host": "127.0.0.1",
    }
    with (
        site_on(control_plane, settings) as site,
        with_roles(control_plane, site.admin),
        team_on(site) as team,
    ):
        tenant = team(quota=4)
        look(tenant)
        tenant.submit("training", gpu=1, checkpoint=FOLDER, template=template())
        sweep = listed(GOOD, BAD, type="asha", reductionFactor=2)
        tenant.submit("search", gpu=1, parallelism=2, sweep=sweep, template=template())
        (training,) = running(tenant, "training")
        trial, _ = running(tenant, "search", 2)
        until(lambda: settled(tenant), "the statuses say so, and stay as they are")
        viewer = Caller(site.running.server, site.running.ca_file, site.running.token("view-user"))
        yield Scene(site, tenant, viewer, training, trial, count(), admin_port)


def settled(tenant: Tenant) -> bool:
    """Whether everybody has written that all pods run."""
    jobs = [tenant.batch_job(name)["status"]["ready"] for name in ("training", "search-s0")]
    pods = [tenant.status(name)["pods"]["running"] for name in ("training", "search")]
    return jobs == pods == [1, 2]


def look(tenant: Tenant) -> None:
    """Let `view-user` look at the namespace."""
    group = "rbac.authorization.k8s.io"
    body = {
        "metadata": {"name": "view"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "view-user"}],
    }
    path = f"/apis/{group}/v1/namespaces/{tenant.name}/rolebindings"
    assert tenant.admin.create(path, body).ok


@pytest.fixture(scope="module")
def tokens(scene: Scene) -> Iterator[dict[str, str]]:
    """Everything with which a viewer may try."""
    admin, pod, folder = scene.tenant.admin, scene.training, scene.site.running.folder
    mine = Tenant(admin).create()
    body = {"metadata": {"name": "mine"}, "spec": template()["spec"]}
    path = f"/api/v1/namespaces/{mine.name}/pods"
    own = admin.create(path, body).body
    going = admin.create(path, {**body, "metadata": {"name": "going"}}).body
    of_gone = token(admin, going)
    assert admin.send("DELETE", f"{path}/going?gracePeriodSeconds=0").ok
    good = pod_tokens.projected(admin, pod)  # of which these are made; the viewer cannot have it
    past: Json = {"iat": 1_700_000_000, "nbf": 1_700_000_000, "exp": 1_700_000_600}
    uid = {"uid": pod["metadata"]["uid"], "name": pod["metadata"]["name"]}
    bound = {"namespace": scene.tenant.name, "pod": uid}
    yield {
        "none": "",
        "its own, for the API server": scene.site.running.token("view-user"),
        "nonsense": "x" * 5000,
        "of its ServiceAccount, for the API server": token(admin, own, API, bound=False),
        "of its ServiceAccount, for reports": token(admin, own, bound=False),
        "of a pod of its own": token(admin, own),
        "of a pod that is gone": of_gone,
        "made to be the pod's": changed(token(admin, own), **{"kubernetes.io": bound}),
        "the pod's, for the API server": token(admin, pod, API),
        "the pod's, for the API server, made to be for us": changed(
            token(admin, pod, API), aud=["gpu-scheduler.io/reports"]
        ),
        "the pod's, for somebody else": token(admin, pod, "vault"),
        "the pod's, that has expired": signed(good, folder, **past),
        "the pod's, with another signature": good[:-8] + "AAAAAAAA",
        "of another pod there": pod_tokens.projected(admin, scene.trial),
    }
    assert admin.send("DELETE", f"/api/v1/namespaces/{mine.name}").ok


def endpoints(scene: Scene) -> dict[str, str]:
    """All addresses at which the operator listens, those that stand on pods and those before."""
    base = scene.training["metadata"]["annotations"][CHECKPOINT_URL].rsplit("/", 2)[0]
    uid = scene.training["metadata"]["uid"]
    admin = f"http://127.0.0.1:{scene.admin_port}"
    return {
        "a checkpoint": f"{base}/checkpoints/{uid}",
        "a trial": f"{base}/trials/{scene.trial['metadata']['uid']}",
        "a trial that is none": f"{base}/trials/{uid}",
        "no pod": f"{base}/checkpoints/x",
        "an earlier checkpoint": f"{base}/checkpoints/{uid}/{'0' * 32}",
        "an earlier trial": f"{base}/{scene.tenant.job('search')['metadata']['uid']}/0/{'0' * 32}",
        "nothing": base,
        **{path: admin + path for path in ("/healthz", "/readyz", "/metrics", "/", "/debug")},
    }


FORMS = {"none", "its own, for the API server", "nonsense", "of its ServiceAccount, for reports"}
FOR_OTHERS = {"of a pod of its own", "of a pod that is gone", "the pod's, for somebody else"}
FOR_OTHERS |= {"of another pod there", "the pod's, for the API server"}


def expected(endpoint: str, method: str, given: str) -> set[int]:
    if endpoint in ("/healthz", "/readyz", "/metrics"):
        return {200} if method in ("GET", "HEAD") else {405}
    if endpoint in ("/", "/debug", "nothing"):
        return {404}
    if method != "POST":
        return {405}
    if endpoint == "no pod" or endpoint.startswith("an earlier"):
        return {410}
    if endpoint == "a trial that is none":
        return {403}
    if endpoint == "a trial" and given == "of another pod there":
        return {200}  # its own: that the table can tell
    if given in FORMS or given == "of its ServiceAccount, for the API server":
        return {401}
    if given in FOR_OTHERS or endpoint == "a trial":
        return {403}
    return {401}  # so says the API server


def test_whoever_looks_on_changes_nothing_with_whatever_token(
    scene: Scene, tokens: dict[str, str]
) -> None:
    before = scene.versions()
    wrong: list[Any] = []
    for endpoint, url in endpoints(scene).items():
        body = REPORT if "trial" in endpoint else ""
        for name, given in tokens.items():
            for method in METHODS:
                if endpoint == "a trial" and name == "of another pod there" and method == "POST":
                    continue  # it is the trial itself, and reports below
                status = scene.ask(method, url, given, body)
                if status not in expected(endpoint, method, name):
                    wrong.append((endpoint, method, name, status))
    assert not wrong
    assert saved(scene.tenant, scene.training) == ""
    assert scene.versions() == before
    assert reported(scene) == {200}, "the pods themselves may"
    assert saved(scene.tenant, scene.training) != ""


def reported(scene: Scene) -> set[int]:
    """What the pods are answered that speak for themselves."""
    statuses = set()
    for pod, key in ((scene.training, CHECKPOINT_URL), (scene.trial, REPORT_URL)):
        url = pod["metadata"]["annotations"][key]
        body = REPORT if key == REPORT_URL else ""
        given = pod_tokens.projected(scene.tenant.admin, pod)
        statuses.add(scene.ask("POST", url, given, body))
    return statuses


def test_what_stands_in_objects_and_logs_opens_nothing(scene: Scene) -> None:
    before, shown = scene.versions(), scene.shown()
    urls = set(re.findall(r"http://127\.0\.0\.1:\d+/reports/[\w/.-]+", shown))
    assert len(urls) == 3, "the addresses of three pods"
    words = {each for each in re.findall(r"[\w.-]{16,}", shown) if not each.startswith("sha256")}
    assert scene.training["metadata"]["uid"] in words
    assert not [each for each in words if re.fullmatch(r"[\w-]{8,}\.[\w-]{40,}\.[\w-]{40,}", each)]
    for url in urls:
        assert scene.ask("POST", url, "", "") == 401
        for word in sorted(words)[:50]:
            assert scene.ask("POST", url, word, "") == 401
    assert scene.versions() == before


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("create", "serviceaccounts/token"),
        ("get", "secrets"),
        ("list", "secrets"),
        ("create", "pods/exec"),
        ("create", "pods/attach"),
        ("get", "pods/proxy"),
        ("create", "services/proxy"),
        ("create", "pods/ephemeralcontainers"),
        ("patch", "pods"),
        ("patch", "pods/status"),
        ("create", "pods/eviction"),
    ],
)
def test_the_role_makes_no_token_and_reaches_no_pod(scene: Scene, verb: str, resource: str) -> None:
    assert scene.viewer.may("list", "pods", scene.tenant.name)
    assert not scene.viewer.may(verb, resource, scene.tenant.name)
