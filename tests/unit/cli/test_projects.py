"""Projects: their table, one that is made, and all about one."""

import json
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from tests.unit.cli.node_objects import GPUJOBS, PODS, PROJECTS, pod
from tests.unit.cli.objects_server import Objects
from tests.unit.cli.use_cluster import Call

from gpu_scheduler.cli.root import app

Body = dict[str, Any]


def project(name: str, quota: float = 4, status: Body | None = None, **spec: Any) -> Body:
    return {
        "apiVersion": "gpu-scheduler.io/v1alpha1",
        "kind": "GPUProject",
        "metadata": {"name": name},
        "spec": {"quota": quota, "namespaces": [name], **spec},
        **({"status": status} if status is not None else {}),
    }


STATUS = {
    "allocatedGPU": "1.5",
    "borrowedGPU": "0.5",
    "pendingGPU": "2",
    "fairShareGPU": "1",
    "jobs": {"running": 2, "pending": 1},
}


@pytest.fixture
def objects() -> Objects:
    there = [project("team-a", 1, STATUS), project("young")]
    return Objects({PROJECTS: there, PODS: [], GPUJOBS: []})


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("   ") if cell.strip()]


def test_the_table_has_quotas_and_what_is_in_use(call: Call) -> None:
    head, first, second = call("projects").output.splitlines()
    assert cells(head) == ["NAME", "QUOTA", "ALLOCATED", "BORROWED", "PENDING", "JOBS"]
    assert cells(first) == ["team-a", "1", "1.5", "0.5", "2", "2 running, 1 pending"]
    assert cells(second) == ["young", "4", "-", "-", "-", "0 running, 0 pending"]


def test_limits_and_problems_have_columns_where_there_are_any(call: Call, objects: Objects) -> None:
    bad = [{"type": "Accepted", "status": "False", "reason": "NamespaceTaken", "message": "no"}]
    typo = [{"type": "NamespacesExist", "status": "False", "reason": "NamespaceNotFound"}]
    good = [{"type": "Accepted", "status": "True", "reason": "Accepted"}]
    objects.lists[PROJECTS] = [
        project("a", limit=6, status={"conditions": good}),
        project("b", status={"conditions": bad}),
        project("c", status={"conditions": typo}),
    ]
    head, first, second, third = call("projects").output.splitlines()
    assert cells(third)[-1] == "NamespaceNotFound"
    assert cells(head)[-2:] == ["LIMIT", "PROBLEM"]
    assert cells(first)[-1] == "6"
    assert cells(second)[-2:] == ["-", "NamespaceTaken"]


def test_wide_names_and_json(call: Call) -> None:
    assert "NAMESPACES" in call("projects", "-o", "wide").output
    assert call("projects", "-o", "name").output == (
        "gpuproject.gpu-scheduler.io/team-a\ngpuproject.gpu-scheduler.io/young\n"
    )
    assert len(json.loads(call("projects", "-o", "json").output)["items"]) == 2


def test_without_a_project_it_says_how_to_make_one(call: Call, objects: Objects) -> None:
    objects.lists[PROJECTS] = []
    result = call("projects")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "kubectl gpu project create NAME --quota N" in result.stderr


def test_a_project_is_printed_and_nobody_is_asked() -> None:
    options = ["--quota", "2.5", "--limit", "4", "-n", "a", "-n", "b", "--weight", "3"]
    result = CliRunner(env={"KUBECONFIG": "/nowhere"}).invoke(
        app, ["project", "create", "team", *options, "--dry-run", "client", "-o", "yaml"]
    )
    assert result.exit_code == 0, result.output
    assert yaml.safe_load(result.output) == {
        "apiVersion": "gpu-scheduler.io/v1alpha1",
        "kind": "GPUProject",
        "metadata": {"name": "team"},
        "spec": {"namespaces": ["a", "b"], "quota": 2.5, "limit": 4, "weight": 3},
    }


def test_a_project_is_created_for_the_namespace_of_its_name(call: Call, objects: Objects) -> None:
    result = call("project", "create", "team-b", "--quota", "2")
    assert (result.exit_code, result.output) == (
        0,
        "gpuproject.gpu-scheduler.io/team-b created\n",
    )
    ((path, body),) = objects.created
    assert path == PROJECTS
    assert body["spec"] == {"namespaces": ["team-b"], "quota": 2}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--quota", "many"], "--quota many: a number of GPUs"),
        (["--quota", "nan"], "--quota nan: a number of GPUs"),
        (["--quota", "-1"], "--quota -1: a number of GPUs"),
        (["--quota", "0.1234"], "at most three decimals"),
        (["--quota", "2", "--limit", "1"], "--limit 1: less than --quota 2"),
        (["--quota", "2", "-n", "No_Name"], "namespaces"),
        (["--quota", "2000000"], "quota"),
    ],
)
def test_what_is_no_project_is_refused_before_it_is_sent(
    call: Call, objects: Objects, options: list[str], says: str
) -> None:
    result = call("project", "create", "x", *options)
    assert (result.exit_code, objects.created) == (2, [])
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


def test_all_about_a_project(call: Call, objects: Objects) -> None:
    waiting = {
        "metadata": {"name": "later", "namespace": "team-a"},
        "status": {
            "phase": "Pending",
            "gpu": "0/2",
            "reason": "WaitingForQuota",
            "message": "needs 2 GPUs",
            "queuePosition": 1,
        },
    }
    alone = pod("web", "", labels={"gpu-scheduler.io/share": "true", "gpu-scheduler.io/gpu": "1"})
    alone["metadata"]["annotations"] = {}
    alone["status"] = {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "reason": "Fragmented", "message": "in pieces"}],
    }
    objects.lists |= {GPUJOBS: [waiting], PODS: [pod("x-0", "n", ("0", 500), job="x"), alone]}
    text = call("project", "describe", "team-a").output
    lines = {cells(line)[0]: cells(line)[1:] for line in text.splitlines() if line}
    assert "Quota:       1\n" in text and "Fair share:  1\n" in text
    assert lines["team-a/x"] == ["0.5", "1"]
    assert lines["team-a/later"] == ["2", "WaitingForQuota", "needs 2 GPUs"]
    assert lines["team-a/web"] == ["1", "Fragmented", "in pieces"]


def test_a_project_that_nobody_has_looked_at_says_so(call: Call) -> None:
    text = call("project", "describe", "young").output
    assert "the operator has not looked at it yet: kubectl gpu check" in text


def test_a_project_whose_namespaces_may_not_be_read(call: Call, objects: Objects) -> None:
    own = "/apis/gpu-scheduler.io/v1alpha1/namespaces/team-a/gpujobs"
    objects.forbidden |= {"/api/v1/namespaces/team-a/pods", own}
    result = call("project", "describe", "team-a")
    assert result.exit_code == 0
    assert "may not be read in its namespaces" in result.output


def test_a_project_that_is_not_there_names_those_that_are(call: Call) -> None:
    result = call("project", "describe", "nobody")
    assert result.exit_code == 1
    assert "there is no project nobody; there are team-a, young" in result.stderr
