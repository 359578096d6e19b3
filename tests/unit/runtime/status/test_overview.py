"""One look at what all projects hold, wait for and are promised."""

import pytest
from tests.unit.builders import project
from tests.unit.state.builders import (
    half,
    make_gpujob,
    make_job,
    make_node,
    make_pod,
    make_project,
)
from tests.unit.state.pods.test_shares import asking
from tests.unit.state.pods.test_shares import state as shares

from gpu_scheduler.api.names import GANG_SIZE, LABEL_GANG
from gpu_scheduler.core.model.decision import Reason, Wait
from gpu_scheduler.core.model.request import PodUID, ProjectName
from gpu_scheduler.runtime.informers.custom_resources import gpuclass_record, project_record
from gpu_scheduler.runtime.status.overview import Promise, survey
from gpu_scheduler.state.cluster_state import ClusterState


def test_jobs_are_counted_for_the_project_that_owns_their_namespace() -> None:
    state = ClusterState()
    state.nodes.changed(make_node("a", 2))
    state.project_changed(make_project("team", "x", "y"))
    for number, namespace in enumerate(("x", "y", "nobody")):
        status = {"phase": "Running"} if namespace != "y" else {}
        state.gpujob_changed(
            make_gpujob("job", uid=f"g{number}", namespace=namespace, status=status)
        )
        job = f"j{number}"
        state.job_changed(make_job(uid=job, owner_uid=f"g{number}", namespace=namespace))
        devices = half() if namespace == "x" else ()
        state.pod_changed(
            make_pod(
                uid=f"p{number}",
                namespace=namespace,
                job=job,
                node="a" if devices else "",
                devices=devices,
            )
        )
    seen = survey(state)
    assert dict(seen.allocated_milli) == {"team": 500}
    assert {name: [w.key for w in jobs] for name, jobs in seen.waiting.items()} == {
        "team": ["y/job"]
    }
    assert dict(seen.running) == {"team": 1}
    assert seen.promise == Promise(1, 8000, 2000)


@pytest.mark.parametrize(
    ("reason", "asks"),
    [(Reason.WAITING_FOR_GPU, 1), (Reason.UNSATISFIABLE, 0), (Reason.EXCEEDS_QUOTA, 0)],
)
def test_a_job_that_can_never_start_is_pending_and_asks_for_nothing(
    reason: Reason, asks: int
) -> None:
    state = ClusterState()
    state.project_changed(make_project())
    state.gpujob_changed(make_gpujob())
    state.job_changed(make_job())
    state.pod_changed(make_pod())
    key = make_gpujob().key
    seen = survey(state, waits={key: Wait(key, reason, "why", 1)})
    assert len(seen.waiting.get(ProjectName("team-a"), ())) == asks
    assert seen.never.get(ProjectName("team-a"), 0) == 1 - asks


@pytest.mark.parametrize(
    ("phase", "deleting", "pending"),
    [("Pending", False, 1), ("Running", False, 0), ("Failed", False, 0), ("Pending", True, 0)],
)
def test_a_job_that_its_owner_has_to_mend_is_pending_too(
    phase: str, deleting: bool, pending: int
) -> None:
    state = ClusterState()
    state.project_changed(make_project())
    state.gpujob_changed(make_gpujob(gpu="a lot", status={"phase": phase}, deleting=deleting))
    assert survey(state).never.get(ProjectName("team-a"), 0) == pending


@pytest.mark.parametrize(
    ("quota_milli", "in_all", "says"),
    [
        (2000, 8000, ""),
        (0, 9000, ""),
        (9000, 9000, "spec.quota: 9 is promised and the cluster has 8 GPUs"),
        (
            2000,
            12_000,
            "spec.quota: 3 projects are promised 12 in all and the cluster has 8 GPUs; if all ask"
            " for theirs at once, the share of this one is 1.333 of its 2",
        ),
    ],
)
def test_a_promise_that_cannot_be_kept_is_told(quota_milli: int, in_all: int, says: str) -> None:
    assert Promise(3, in_all, 8000).broken(project(quota_milli=quota_milli)) == says


def test_models_of_a_quota_are_counted_by_class_or_part_of_the_product_name() -> None:
    state = ClusterState()
    state.nodes.changed(make_node("a", 2))  # two A100s
    meta = {"name": "team", "uid": "t", "creationTimestamp": "2026-01-01T00:00:00Z"}
    quota = {"namespaces": ["team"], "quota": 2, "quotaByModel": {"big": 1, "A30": 0.5}}
    state.project_changed(project_record({"metadata": meta, "spec": quota}))
    big = {"name": "big", "uid": "c", "creationTimestamp": "2026-01-01T00:00:00Z"}
    state.class_changed(gpuclass_record({"metadata": big, "spec": {"match": "A100"}}))
    state.gpujob_changed(make_gpujob("job", namespace="team"))
    state.job_changed(make_job(namespace="team"))
    state.pod_changed(make_pod(namespace="team", node="a", devices=half()))
    name = ProjectName("team")
    assert state.planner_projects()[name].quota_by_model == {"a100": 1000, "a30": 500}
    assert [
        (m.model, m.quota_gpu, m.allocated_gpu, m.fair_share_gpu)
        for m in survey(state, {"a100": {name: 750}}).by_model[name]
    ] == [("A30", "0.5", "0", "0"), ("big", "1", "0.5", "0.75")]
    state.pod_gone(PodUID("uid-job-0"))
    assert survey(state).by_model[name][1].allocated_gpu == "0"


def test_pods_that_ask_by_themselves_count_as_those_of_gpujobs_do() -> None:
    """Each for a job, and a gang of them for one."""
    state = shares()
    state.pod_changed(asking("web-1", node="a", devices=half(), phase="Running"))
    state.pod_changed(asking("web-2", node="a", devices=half(), phase="Pending"))
    state.pod_changed(asking("web-3"))
    for name in ("x", "y"):
        member = asking(name, {GANG_SIZE: "2"}, labels={LABEL_GANG: "ring"})
        state.pod_changed(member)
    seen, team = survey(state), ProjectName("team-a")
    assert dict(seen.allocated_milli) == {team: 1000}
    assert dict(seen.running) == {team: 1}
    assert sorted(job.key for job in seen.waiting[team]) == ["team-a/gang ring", "team-a/pod web-3"]


def test_a_project_is_written_anew_when_such_a_pod_starts_to_run_or_ends() -> None:
    state = shares()
    state.pod_changed(asking("web-1", node="a", devices=half(), version=2))
    for version, phase in ((3, "Running"), (4, "Failed")):
        state.projects.take_touched()
        pod = asking("web-1", node="a", devices=half(), version=version, phase=phase, ran=True)
        state.pod_changed(pod)
        assert list(state.projects.take_touched()) == ["team-a"], phase
        state.pod_changed(pod)
        assert list(state.projects.take_touched()) == [], "this says nothing new"
