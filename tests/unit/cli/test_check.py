"""What an installation lacks: each check by itself, and all of them over HTTP."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.unit.cli.installation import (
    DEFINITIONS,
    NAMES,
    agents,
    bindings,
    lease,
    named,
    operator,
    project,
    well,
)
from tests.unit.cli.node_objects import NODES, gpunode, node
from tests.unit.cli.objects_server import Objects, serving

from gpu_scheduler import __version__
from gpu_scheduler.api.crd import KINDS
from gpu_scheduler.api.unstructured import Body
from gpu_scheduler.cli.checks import budgets, installation, on_nodes, policies
from gpu_scheduler.cli.checks.facts import Check, CheckInputs, CheckState
from gpu_scheduler.cli.checks.table import CHECKS, complete, findings
from gpu_scheduler.cli.root import app

OK, MISSING, WARN, UNKNOWN = CheckState.OK, CheckState.MISSING, CheckState.WARN, CheckState.UNKNOWN
CheckFunction = Callable[[CheckInputs], list[Check]]


def test_where_nothing_is_missing_all_is_ok() -> None:
    found = findings(well())
    assert [(each.name, each.state) for each in found if each.state is not OK] == []
    assert len(found) >= len(CHECKS) - 2
    assert complete(found)


def failed(name: str, said: str) -> Body:
    """A GPUNode whose self-test has failed."""
    body = gpunode(name, "GPU-0")
    body["status"] |= {"failedIsolation": ["interposer"], "selfTest": said}
    return body


def crds_without(*gone: str, field: str = "", more: str = "") -> list[Body]:
    """The CRDs without some, and GPUJobs without a field of their spec, or with one more."""
    found = [json.loads(json.dumps(d)) for d in DEFINITIONS]
    for body in found:
        if body["spec"]["names"]["plural"] == "gpujobs":
            schema = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            fields = schema["properties"]["spec"]["properties"]
            fields.pop(field, None)
            fields.update({more: {"type": "string"}} if more else {})
    return [body for body in found if body["spec"]["names"]["plural"] not in gone]


@pytest.mark.parametrize(
    ("check", "changed", "state", "says", "mend"),
    [
        (installation.crds, {"crds": None, "kinds": None}, MISSING, "nothing of", "kubectl apply"),
        (installation.crds, {"crds": crds_without("gpuclasses")}, MISSING, "gpuclasses", "crds/"),
        (installation.crds, {"crds": crds_without(field="gpu")}, WARN, "lacks spec.gpu", "crds/"),
        (installation.crds, {"crds": crds_without(more="later")}, WARN, "has spec.later", ""),
        (installation.crds, {"crds": None}, UNKNOWN, "are served", ""),
        (
            installation.crds,
            {"crds": None, "kinds": frozenset(["gpujobs"])},
            MISSING,
            "not served: gpuclasses",
            "crds/",
        ),
        (
            installation.operator,
            {"deployments": [], "leases": []},
            MISSING,
            "no Deployment",
            "helm install",
        ),
        (installation.operator, {"deployments": []}, WARN, "outside of the chart", ""),
        (installation.operator, {"deployments": None}, UNKNOWN, "may not read", "auth can-i"),
        (installation.operator, {"deployments": [operator(1)]}, WARN, "1 of 2", "describe pods"),
        (installation.operator, {"deployments": [operator(0)]}, MISSING, "0 of 2", "describe"),
        (installation.operator, {"deployments": [operator(0, 0)]}, MISSING, "0 of 0", "scale"),
        (installation.leader, {"leases": []}, MISSING, "nobody has ever led", "logs deployment/"),
        (
            installation.leader,
            {"leases": [lease("gpu-scheduler-leader", 90)]},
            MISSING,
            "for 90 s: nobody leads",
            "logs",
        ),
        (
            installation.leader,
            {"leases": [lease("gpu-scheduler-leader", holder="")]},
            MISSING,
            "given back",
            "logs",
        ),
        (
            installation.versions,
            {"deployments": [operator(image="x/gpu-scheduler:99.0.0-tpe")]},
            WARN,
            f"operator 99.0.0, agent {__version__}",
            "helm upgrade",
        ),
        (installation.versions, {"version": "0.3.0"}, WARN, "this program 0.3.0", ""),
        (
            installation.versions,
            {"deployments": [], "daemonsets": []},
            UNKNOWN,
            "nothing in the cluster",
            "",
        ),
        (on_nodes.labels, {"nodes": [], "gpunodes": []}, MISSING, "no node", "kubectl label"),
        (
            on_nodes.labels,
            {"nodes": [node("n1", **{"nvidia.com/gpu.present": "no"})]},
            WARN,
            "n1: no agent starts there",
            "kubectl label node n1 nvidia.com/gpu.present=true",
        ),
        (
            on_nodes.labels,
            {"daemonsets": [], "nodes": [node("n1", 0)], "gpunodes": []},
            MISSING,
            "no label nvidia.com/gpu.count",
            "agent.enabled=true",
        ),
        (on_nodes.agent, {"daemonsets": []}, WARN, "nobody notices", "agent.enabled=true"),
        (on_nodes.agent, {"daemonsets": [agents(1, 2)]}, WARN, "1 of 2 ready", "describe pods"),
        (on_nodes.agent, {"daemonsets": [agents(0, 2)]}, MISSING, "0 of 2 ready", "describe"),
        (on_nodes.agent, {"daemonsets": [agents(0, 0)]}, WARN, "no node has its label", ""),
        (on_nodes.reports, {"gpunodes": []}, MISSING, "no GPUNode: n1", "logs daemonset/"),
        (on_nodes.reports, {"gpunodes": [gpunode("n1")]}, MISSING, "find no GPU: n1", "logs"),
        (
            on_nodes.reports,
            {"leases": [lease("gpu-node-n1", 60)]},
            WARN,
            "silent, so these take no new pods: n1 (60 s)",
            "logs",
        ),
        (
            on_nodes.reports,
            {"gpunodes": [failed("n1", "interposer failed: got 320 MiB")]},
            WARN,
            "the self-test of isolation: interposer failed on 1 of 1 node, so no pod that shares "
            "a GPU behind it is placed there: n1 (interposer failed: got 320 MiB)",
            "kubectl -n gpus delete pods -l app.kubernetes.io/name=gpu-scheduler-agent "
            "--field-selector spec.nodeName=n1",
        ),
        (
            on_nodes.runtime_class,
            {"runtime_classes": []},
            MISSING,
            "no agent can start",
            "kubectl apply -f -",
        ),
        (
            on_nodes.runtime_class,
            {"runtime_classes": [], "daemonsets": [], "deployments": []},
            WARN,
            "pods get none",
            "kubectl apply -f -",
        ),
        (policies.validating, {"admission": frozenset()}, MISSING, "Kubernetes 1.30", ""),
        (policies.validating, {"validating": []}, WARN, "none is installed", "admission.enabled"),
        (
            policies.validating,
            {"validating": [named(n) for n in NAMES[1:]]},
            MISSING,
            "…-allocations",
            "helm upgrade",
        ),
        (
            policies.validating,
            {"validating_bindings": bindings(NAMES[1:])},
            MISSING,
            "not bound, so without effect: gpu-scheduler-allocations",
            "helm upgrade",
        ),
        (policies.mutating, {"admission": frozenset()}, WARN, "1.36", "kubectl gpu render"),
        (policies.mutating, {"mutating": []}, WARN, "is not installed", "shares.enabled=true"),
        (policies.mutating, {"mutating_bindings": []}, MISSING, "not bound", "helm upgrade"),
        (budgets.projects, {"projects": []}, MISSING, "no namespace may", "project create"),
        (budgets.projects, {"projects": None}, UNKNOWN, "GPUProjects", "auth can-i"),
        (
            budgets.projects,
            {"projects": [project("a", type="Accepted", status="False", message="taken")]},
            MISSING,
            "cannot be used: taken",
            "kubectl edit gpuproject a",
        ),
        (
            budgets.projects,
            {"projects": [project("team-a"), project("b", "team-a")]},
            MISSING,
            "team-a is in 2 projects: team-a, b",
            "edit gpuproject b",
        ),
        (
            budgets.projects,
            {"projects": [project("gone")]},
            WARN,
            "do not exist: gone",
            "create namespace gone",
        ),
        (
            budgets.quotas,
            {
                "quotas": [
                    {
                        "metadata": {"name": "q", "namespace": "team-a"},
                        "spec": {"hard": {"requests.nvidia.com/gpu": "1"}},
                    }
                ]
            },
            WARN,
            "team-a/q counts nvidia.com/gpu",
            "kubectl gpu projects",
        ),
    ],
)
def test_what_is_missing_is_said_with_what_mends_it(
    check: CheckFunction, changed: dict[str, Any], state: CheckState, says: str, mend: str
) -> None:
    facts = replace(well(), **changed)
    (found,) = [each for each in check(facts) if says in each.what]
    assert found.state is state
    assert mend in found.mend
    assert bool(mend) == bool(found.mend)
    assert complete(check(facts)) == (state is not MISSING)


def tainted(name: str, key: str, **metadata: Any) -> Body:
    """A node whose labels tell its GPUs, and that the agent does not tolerate."""
    found = node(name)
    found["metadata"] |= metadata
    return {**found, "spec": {"taints": [{"key": key, "value": "x", "effect": "NoSchedule"}]}}


def test_nodes_that_a_taint_keeps_agents_off_are_known_by_labels_and_the_chart_lets_them_in() -> (
    None
):
    agent: Any = agents()
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    agent["spec"]["template"]["spec"]["tolerations"] = tolerations
    nodes = [node("n1"), tainted("n2", "team"), tainted("n3", "nvidia.com/gpu")]
    found = on_nodes.reports(replace(well(), nodes=nodes, daemonsets=[agent]))
    assert [(each.state, each.what) for each in found] == [
        (
            WARN,
            "n2: the taint team=x:NoSchedule keeps agents away; their GPUs are those of labels, "
            "and nobody notices memory above a cap",
        ),
        (MISSING, "no GPUNode: n3; their agents have not reported"),
    ]
    wanted = [*tolerations, {"key": "team", "operator": "Exists"}]
    assert f"--set-json 'agent.tolerations={json.dumps(wanted)}'" in found[0].mend


def test_where_labels_tell_nothing_of_a_tainted_node_its_report_is_missing() -> None:
    bare = tainted("n2", "team", labels={"nvidia.com/gpu.present": "true"})
    (found,) = on_nodes.reports(replace(well(), nodes=[node("n1"), bare]))
    assert (found.state, found.what) == (
        MISSING,
        "no GPUNode: n2; their agents have not reported",
    )


@pytest.mark.parametrize("key", ["kwok.x-k8s.io/node", "team"])
def test_on_nodes_that_kwok_plays_no_agent_is_expected(key: str) -> None:
    fake: Any = [
        tainted(f"dell-{n}", key, annotations={"kwok.x-k8s.io/node": "fake"}) for n in (0, 1)
    ]
    found = findings(replace(well(), nodes=[node("n1"), *fake]))
    assert {each.state for each in found} == {OK}
    assert [each.what for each in found if each.name == "reports"] == [
        "dell-0, dell-1: played by kwok, so no agent runs; their GPUs are those of labels",
        "1 of 1 agents report",
    ]


@pytest.mark.parametrize("check", [check.load() for check in CHECKS.values()])
def test_who_may_read_nothing_learns_that_and_no_more(check: CheckFunction) -> None:
    kinds = frozenset(kind.plural for kind in KINDS)
    admission = frozenset(["validatingadmissionpolicies", "mutatingadmissionpolicies"])
    found = check(CheckInputs(kinds=kinds, admission=admission, version=__version__))
    assert {each.state for each in found} <= {UNKNOWN, WARN}


@pytest.mark.parametrize("check", [check.load() for check in CHECKS.values()])
@pytest.mark.parametrize("odd", [{}, {"metadata": None, "spec": [], "status": "x"}])
def test_odd_objects_break_no_check(check: CheckFunction, odd: dict[str, Any]) -> None:
    lists = [
        *("crds", "deployments", "daemonsets", "leases", "nodes", "gpunodes", "projects"),
        *("namespaces", "runtime_classes", "validating", "validating_bindings", "mutating"),
        *("mutating_bindings", "quotas", "pods"),
    ]
    assert isinstance(check(replace(well(), **{name: [odd] for name in lists})), list)


@pytest.fixture
def objects() -> Objects:
    return Objects({NODES: [node("n1")]})


@pytest.fixture
def check(objects: Objects, tmp_path: Path) -> Iterator[Callable[..., Result]]:
    with serving(objects, tmp_path) as kubeconfig:
        yield lambda *more: CliRunner(env={"KUBECONFIG": kubeconfig}).invoke(app, ["check", *more])


def test_an_empty_cluster_ends_with_1_and_says_what_to_do(check: Callable[..., Result]) -> None:
    result = check()
    assert (result.exit_code, result.stderr) == (1, "")
    lines = result.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("MISSING  operator"))
    assert lines[at + 1].strip() == (
        "helm install gpu-scheduler charts/gpu-scheduler -n gpu-scheduler --create-namespace"
    )


def test_json_has_the_same(check: Callable[..., Result]) -> None:
    result = check("-o", "json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["complete"]) == (1, False)
    assert {"state", "name", "what", "mend"} == set(found["checks"][0])


def test_the_operator_is_found_where_it_is(check: Callable[..., Result], objects: Objects) -> None:
    found = operator()
    assert isinstance(found, dict)
    found["metadata"]["labels"]["app.kubernetes.io/part-of"] = "gpu-scheduler"
    objects.lists["/apis/apps/v1/deployments"] = [found]
    assert "2 of 2 replicas ready: gpus/gpu-scheduler" in check().stdout
    assert "nobody has ever led in gpus" in check().stdout


def test_a_release_of_another_name_is_upgraded_by_it() -> None:
    found = operator(0)
    assert isinstance(found, dict)
    found["metadata"]["labels"]["app.kubernetes.io/instance"] = "mine"
    (said,) = policies.mutating(replace(well(), deployments=[found], mutating=[]))
    assert said.mend == (
        "helm upgrade mine charts/gpu-scheduler -n gpus --reset-then-reuse-values "
        "--set shares.enabled=true"
    )
