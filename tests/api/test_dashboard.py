"""The dashboard on a real API server: tokens and rights of its users, also as they change.

One operator for all, which asks for rights every few seconds in place of every minute.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.api.caller import Caller
from tests.api.cli.program import gpu_here, write_kubeconfig
from tests.api.dashboard_stand import ALL, EDITOR, ON, PROGRAM, VIEWER, dashboard_on
from tests.api.dashboard_user import DashboardUser, account, bind, token
from tests.api.free_port import free_port
from tests.api.logins import WAYS, logins
from tests.api.replica import Replica
from tests.api.site import Site, Team
from tests.api.tenant import Tenant, until

from cluster import Running
from gpu_scheduler.api.names import REPORT_AUDIENCE
from gpu_scheduler.dashboard.pages import PAGES

PORT, OTHER_PORT = free_port(), free_port()


@pytest.fixture(scope="module")
def site(control_plane: Running) -> Iterator[Site]:
    with dashboard_on(control_plane, PORT) as made:
        yield made


@dataclass
class Scene:
    """Two tenants with a job each, and a user who may view the first."""

    admin: Caller
    one: Tenant
    other: Tenant
    of: tuple[str, str]
    binding: str
    user: DashboardUser
    root: DashboardUser


@pytest.fixture
def scene(site: Site, team: Team) -> Scene:
    one, other = team(quota=1), team(quota=1)
    for tenant in (one, other):
        tenant.submit(f"job-of-{tenant.name}", gpu=0.5)
        tenant.wait_placed(f"job-of-{tenant.name}")
    of = (one.name, "reader")
    shown = account(site.admin, *of)
    binding = bind(site.admin, one.name, of, VIEWER)
    root = token(site.admin, "gpu-scheduler", ALL)
    return Scene(
        site.admin,
        one,
        other,
        of,
        binding,
        DashboardUser(shown, PORT),
        DashboardUser(root, PORT),
    )


def names(shown: Any) -> set[str]:
    return {row["ref"]["namespace"] for row in shown["rows"]}


def gpu_of(tenant: Tenant) -> dict[str, str]:
    """The node of a tenant's only pod, and the index of its GPU there."""
    (allocation,) = tenant.allocations(f"job-of-{tenant.name}")
    (device,) = allocation.devices
    return {"node": allocation.node, "index": device.device}  # no agent has told another id


def test_each_sees_what_is_theirs_on_every_page(scene: Scene) -> None:
    mine, hidden = f"job-of-{scene.one.name}", scene.other.name
    until(lambda: mine in scene.user.get("jobs").text, "the own job is shown")
    part = {"namespace": scene.one.name, "kind": "GPUJob", "name": mine, **gpu_of(scene.one)}
    foreign = {"namespace": hidden, "kind": "GPUJob", "name": f"job-of-{hidden}"}
    foreign |= gpu_of(scene.other)
    for page in PAGES:
        own = scene.user.get(page.path.format(**part))
        assert own.status in (200, 404), (page.path, own.text)
        assert hidden not in own.text, page.path
        theirs = scene.user.get(page.path.format(**foreign))
        assert hidden not in theirs.text, page.path
        if "{namespace}" in page.path:
            assert theirs.status == 404
    assert names(scene.user.get("jobs").body) == {scene.one.name}
    both = {scene.one.name, hidden}
    until(lambda: both <= names(scene.root.get("jobs").body), "a picture may be a second old")
    me = scene.user.get("me").body
    assert (me["all"], me["namespaces"]) == (False, [scene.one.name])
    assert scene.root.get("me").body["all"]
    with scene.user.live("/jobs") as stream:
        name, shown = stream.event()
        assert name == "view" and names(shown) == {scene.one.name}
    node = scene.root.get("gpus").body["nodes"][0]["name"]
    answer = scene.root.send("POST", "what-if", {"likeNode": node, "nodes": 1})
    assert answer.status == 200, answer.text
    answer = scene.user.send("POST", "what-if", {"project": hidden, "quota": 2})
    assert answer.status == 400 and "there is no project" in answer.text


@pytest.mark.parametrize("wrong", ["", "made-up", "eyJhbGciOiJSUzI1NiJ9.e30.x"])
def test_nobody_else_sees_anything(scene: Scene, wrong: str) -> None:
    stranger = DashboardUser(wrong, PORT)
    for path in (*(page.path for page in PAGES), "me", "stream?view=/jobs", "logs/a/b", "x"):
        answer = stranger.get(path)
        assert answer.status == 401 and set(answer.body) == {"error"}


def test_a_token_and_a_program_that_gives_one_log_in_and_a_certificate_is_told_why_not(
    control_plane: Running, scene: Scene, tmp_path: Path
) -> None:
    mine = scene.one.name
    with logins(control_plane, scene.admin, mine, tmp_path) as ways:
        by = dict(zip(WAYS, ways, strict=True))
        for way in ("token", "program"):
            done = by[way].gpu("dashboard", "--print-token")
            assert done.returncode == 0, done
            user = DashboardUser(done.stdout.strip(), PORT)
            until(lambda user=user: names(user.get("jobs").body) == {mine}, f"by {way}")
        done = by["certificate"].gpu("dashboard", "--print-token")
        assert (done.returncode, done.stdout) == (1, ""), done
        assert done.stderr.count("\n") == 1
        assert "your kubeconfig has no token to log in with, and you may not" in done.stderr


def test_a_certificate_of_who_owns_the_operators_namespace_gets_a_token_that_sees_all(
    control_plane: Running, scene: Scene, tmp_path: Path
) -> None:
    pair = control_plane.folder / "apiserver-kubelet-client"
    files = {"client-certificate": f"{pair}.crt", "client-key": f"{pair}.key"}
    at = {"server": control_plane.server, "certificate-authority": str(control_plane.ca_file)}
    done = gpu_here(write_kubeconfig(tmp_path / "c", files, **at), "dashboard", "--print-token")
    assert done.returncode == 0, done
    user, all_of_them = DashboardUser(done.stdout.strip(), PORT), {scene.one.name, scene.other.name}
    until(lambda: all_of_them <= names(user.get("jobs").body), "a picture may be a second old")


def test_a_token_for_another_audience_is_none(scene: Scene) -> None:
    for_reports = token(scene.admin, *scene.of, audiences=[REPORT_AUDIENCE])
    assert DashboardUser(for_reports, PORT).get("jobs").status == 401


def test_rights_that_change_show_in_an_open_page(scene: Scene) -> None:
    other, shown = scene.other.name, [scene.one.name]

    def sees(*expected: str) -> None:
        while set(shown) != set(expected):
            name, view = stream.event()
            assert name == "view", view
            shown[:] = names(view)

    with scene.user.live("/jobs") as stream:
        bind(scene.admin, other, scene.of, VIEWER)
        sees(scene.one.name, other)
        assert scene.admin.send("DELETE", scene.binding).ok
        sees(other)
    until(lambda: names(scene.user.get("jobs").body) == {other}, "so does every other answer")


def test_a_token_that_has_gone_ends_an_open_page(scene: Scene) -> None:
    namespace, name = scene.of
    with scene.user.live("/jobs") as stream:
        assert stream.event()[0] == "view"
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}"
        assert scene.admin.send("DELETE", path).ok
        while (event := stream.event())[0] == "view":
            pass
        assert (event[0], event[1]["status"]) == ("end", 401)
    assert scene.user.get("jobs").status == 401


def test_who_may_not_change_a_job_does_not(scene: Scene) -> None:
    job = f"job-of-{scene.one.name}"
    path = f"jobs/{scene.one.name}/{job}/suspend"
    answer = scene.user.send("POST", path, {})
    assert answer.status == 403 and "cannot patch" in answer.body["error"]
    assert not scene.one.job(job)["spec"].get("suspend")
    bind(scene.admin, scene.one.name, scene.of, EDITOR)
    until(lambda: scene.user.send("POST", path, {}).status == 204, "an editor suspends it")
    scene.one.wait_phase(job, "Suspended")
    evil = scene.user.send("POST", path, {}, Origin="https://evil.test")
    assert evil.status == 403
    log = scene.user.get(f"logs/{scene.one.name}/{job}-0")
    assert log.status in (403, 404) and log.body["error"]


def test_a_stand_by_answers_nothing_and_another_leader_goes_on(site: Site, scene: Scene) -> None:
    settings = {**ON, "dashboard_port": str(OTHER_PORT)}
    standby = Replica(site.running, "stand-by", settings, PROGRAM).start()
    other = DashboardUser(scene.user.token, OTHER_PORT)

    def answered(user: DashboardUser) -> int:
        try:
            return user.get("jobs").status
        except OSError:
            return 0

    try:
        until(lambda: answered(other) == 503, "it stands by")
        assert "lead" in other.get("jobs").body["error"]
        with scene.user.live("/jobs") as stream:
            assert stream.event()[0] == "view"
            site.replica.kill()
            while (event := stream.event())[0] == "view":
                pass
            assert event == ("", None), "the page learns that it is alone"
        site.replica.forget()
        until(lambda: answered(other) == 200, "the stand-by leads")
        until(lambda: scene.one.name in names(other.get("jobs").body), "it is shown to others")
    finally:
        standby.stop()
        if not site.replica.alive():
            site.replica.start().wait_leading()
    until(lambda: answered(scene.user) == 200, "the page comes back")


def test_no_token_is_in_the_log(site: Site, scene: Scene) -> None:
    assert scene.user.get("jobs").status == 200
    told = site.replica.told()
    assert scene.user.token not in told and f"serviceaccount:{scene.one.name}" not in told
