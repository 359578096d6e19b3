"""What-ifs of the dashboard: the difference that a change makes, and nobody else's work in it."""

from dataclasses import replace
from typing import Any

import pytest
import yaml
from tests.unit.builders import ClusterBuilder, job, pod_shape, project, projects

from gpu_scheduler.api.names import API_VERSION
from gpu_scheduler.core.model.request import JobKey, WaitingJob
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.dashboard.views import WhatIfAnswer, WhatIfQuestion
from gpu_scheduler.dashboard.visible import Visible
from gpu_scheduler.dashboard.what_if import WhatIfTask
from gpu_scheduler.simulate.cluster_objects import SimulationError
from gpu_scheduler.simulate.dashboard_what_if import STARTS, PlannedInput, answer

OWNERS = {"ns": "team-a", "other": "team-b"}


def waits(name: str, gpus: int, namespace: str = "ns", team: str = "team-a") -> WaitingJob:
    found = job(name, pod_shape(1000, count=gpus), project=team)
    return replace(found, key=JobKey(f"{namespace}/{name}"))


def given(*jobs: WaitingJob, free: int = 2, quota_milli: int = 100_000) -> PlanInput:
    """One node with so many free GPUs."""
    teams = projects(
        project("team-a", quota_milli, weight=0), project("team-b", quota_milli, weight=0)
    )
    return PlanInput(ClusterBuilder().node("dell-1", free).obj(), teams, jobs)


def ask(
    question: WhatIfQuestion,
    now: PlanInput,
    namespaces: tuple[str, ...] | None = None,
    inventory: bool = True,
    **more: Any,
) -> WhatIfAnswer:
    visible = Visible(None if namespaces is None else frozenset(namespaces), inventory)
    task = WhatIfTask(question=question, visible=visible, owners=OWNERS, **more)
    return answer(task, PlannedInput(now))


def results(found: WhatIfAnswer) -> dict[str, str]:
    return {row.name: row.result for row in found.rows}


def lead(found: WhatIfAnswer) -> str:
    return "".join(piece.text for piece in found.lead.first)


def manifest(name: str = "new", namespace: str = "ns", **spec: Any) -> WhatIfQuestion:
    body = {
        "apiVersion": API_VERSION,
        "kind": "GPUJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"gpu": 1, "image": "example/x:1", **spec},
    }
    return WhatIfQuestion(manifest=yaml.safe_dump(body))


def test_a_pasted_job_that_fits_would_start() -> None:
    found = ask(manifest(), given())
    assert results(found) == {"ns/new": STARTS}
    assert lead(found) == "It would start now."


def test_a_pasted_job_that_does_not_fit_is_told_why() -> None:
    found = ask(manifest(gpu=4), given(free=4, quota_milli=1000))
    assert found.rows[0].result == "ExceedsQuota" and found.rows[0].message
    assert lead(found).startswith("It would wait: ")


def test_a_pasted_job_of_several_pods_says_how_many_start() -> None:
    found = ask(manifest(parallelism=3, completions=3), given(free=2))
    assert [(row.result, row.message, row.pods) for row in found.rows] == [
        (STARTS, "2 of 3 pods", 3)
    ]


def test_shapes_are_those_of_the_cluster() -> None:
    classes = {"a100": {"match": "a100", "shapes": {"large": 2}}}
    body = yaml.safe_load(manifest(shape="large").manifest)
    del body["spec"]["gpu"]
    question = WhatIfQuestion(manifest=yaml.safe_dump(body))
    assert results(ask(question, given(), classes=classes)) == {"ns/new": STARTS}
    found = ask(question, given())
    assert found.rows[0].result == "Invalid" and "shape" in found.rows[0].message


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (WhatIfQuestion(manifest="a: ["), "the manifest"),
        (WhatIfQuestion(manifest="kind: Secret"), "paste a GPUJob"),
        (manifest(namespace="other"), "you may not see"),
        (manifest(name="waits"), "there is a job"),
        (manifest(gpus=1), "there is no such field"),
        (WhatIfQuestion(), "ask for one of"),
        (WhatIfQuestion(like_node="dell-1", nodes=0), "nodes: 1 to"),
        (WhatIfQuestion(like_node="dell-1", nodes=65), "nodes: 1 to"),
        (WhatIfQuestion(like_node="dell-9", nodes=1), "there is no node"),
        (WhatIfQuestion(project="team-a"), "quota: 0 to"),
        (WhatIfQuestion(project="team-a", quota=float("nan")), "quota: 0 to"),
        (WhatIfQuestion(project="team-x", quota=1.0), "there is no project"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_words(question: WhatIfQuestion, words: str) -> None:
    with pytest.raises(SimulationError, match=words):
        ask(question, given(waits("waits", 9)), namespaces=("ns",))


def test_one_more_node_starts_what_waits_for_it() -> None:
    now = given(waits("large", 4), waits("huge", 40), free=4)
    now = replace(now, cluster=ClusterBuilder().node("dell-1", 4).held("dell-1/0", 500).obj())
    found = ask(WhatIfQuestion(like_node="dell-1", nodes=1), now)
    assert results(found) == {"ns/large": STARTS}
    assert lead(found) == "1 more job would start now, with 4 GPUs."


def test_nodes_that_help_nobody_are_said_to() -> None:
    found = ask(WhatIfQuestion(like_node="dell-1", nodes=3), given(waits("huge", 40)))
    assert (found.rows, lead(found)) == ((), "No job that waits would start because of it.")


def test_a_larger_quota_starts_what_waits_for_it() -> None:
    now = given(waits("a", 2), waits("b", 1, "other", "team-b"), free=3, quota_milli=1000)
    found = ask(WhatIfQuestion(project="team-a", quota=2.0), now)
    assert results(found) == {"ns/a": STARTS}


def test_work_of_others_is_a_number() -> None:
    now = given(waits("mine", 4), waits("secret", 4, "other", "team-b"), free=4)
    now = replace(now, cluster=ClusterBuilder().node("dell-1", 4).held("dell-1/0", 500).obj())
    question = WhatIfQuestion(like_node="dell-1", nodes=2)
    whole = ask(question, now)
    assert set(results(whole)) == {"ns/mine", "other/secret"} and whole.omitted == 0
    found = ask(question, now, namespaces=("ns",))
    assert set(results(found)) == {"ns/mine"} and found.omitted == 1
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    "question",
    [WhatIfQuestion(like_node="dell-1", nodes=1), WhatIfQuestion(project="team-b", quota=2.0)],
)
def test_who_sees_neither_nodes_nor_other_projects_may_not_ask_of_them(
    question: WhatIfQuestion,
) -> None:
    with pytest.raises(SimulationError, match="there is no"):
        ask(question, given(), namespaces=("ns",), inventory=False)
    ask(question, given(), namespaces=("ns",), inventory=True)


def test_the_dump_is_left_as_it_was() -> None:
    now = given(waits("large", 4))
    before = repr(now.cluster)
    ask(WhatIfQuestion(like_node="dell-1", nodes=2), now)
    assert repr(now.cluster) == before
