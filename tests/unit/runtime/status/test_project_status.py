from typing import Any

from tests.unit.builders import job, pod_shape
from tests.unit.state.builders import make_project

from gpu_scheduler.api.gpuproject import GPUProjectStatus
from gpu_scheduler.core.model.request import ProjectName, WaitingJob
from gpu_scheduler.runtime.status.project_status import ProjectFigures, project_status
from gpu_scheduler.state.jobs.owners import Claim
from gpu_scheduler.state.jobs.projects import ProjectRecord

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
CLAIM = Claim("lab", ProjectName("older"))


def status_of(
    record: ProjectRecord | None = None,
    *,
    allocated_milli: int = 0,
    waiting: tuple[WaitingJob, ...] = (),
    never: int = 0,
    conflicts: tuple[Claim, ...] = (),
    missing: tuple[str, ...] | None = None,
    broken: str = "",
    quarantine: str = "",
    before: dict[str, Any] | None = None,
    now: str = NOW,
) -> GPUProjectStatus:
    return project_status(
        record or make_project(quota_milli=2000, generation=4),
        ProjectFigures(
            allocated_milli=allocated_milli,
            waiting=waiting,
            never=never,
            running_jobs=2,
            broken=broken,
            quarantine=quarantine,
            missing=missing,
        ),
        conflicts=conflicts,
        before=before or {},
        now=now,
    )


def test_numbers() -> None:
    waiting = (job("a", pod_shape(300), 3), job("b", pod_shape(mib=1000)))
    status = status_of(allocated_milli=2500, waiting=waiting)
    assert (status.allocated_gpu, status.borrowed_gpu, status.pending_gpu) == ("2.5", "0.5", "0.9")
    assert (status.jobs.running, status.jobs.pending) == (2, 2)
    status = status_of(waiting=waiting, never=3)
    assert (status.pending_gpu, status.jobs.pending) == ("0.9", 5)
    assert status.observed_generation == 4


def test_nothing_is_borrowed_within_the_quota() -> None:
    assert status_of(allocated_milli=2000).borrowed_gpu == "0"


def test_a_claim_in_vain_is_told_with_the_owner() -> None:
    condition, _ = status_of(conflicts=(CLAIM,)).conditions
    assert (condition.status, condition.reason) == ("False", "Invalid")
    assert "spec.namespaces: lab belongs to GPUProject older" in condition.message


def test_a_problem_of_the_spec_comes_first() -> None:
    record = make_project(problem="spec.quota: must not be negative")
    condition, _ = status_of(record, conflicts=(CLAIM,)).conditions
    assert condition.message == "spec.quota: must not be negative"


def test_a_condition_keeps_its_time_until_it_changes() -> None:
    first = status_of(now=THEN)
    assert first.conditions[0].last_transition_time == THEN
    same = status_of(before=first.to_json())
    assert same == first
    refused = status_of(before=first.to_json(), conflicts=(CLAIM,))
    assert refused.conditions[0].last_transition_time == NOW


def test_a_sentence_that_is_too_long_for_the_api_is_cut() -> None:
    condition, _ = status_of(make_project(problem="x" * 100_000)).conditions
    assert 1000 < len(condition.message) <= 4096


def test_a_quota_that_may_not_be_had_is_told_with_numbers() -> None:
    covered = status_of().conditions[1]
    assert (covered.type, covered.status, covered.reason) == ("QuotaCovered", "True", "Covered")
    condition = status_of(broken="spec.quota: 12 is promised").conditions[1]
    assert (condition.status, condition.reason) == ("False", "Overcommitted")
    assert condition.message == "spec.quota: 12 is promised"


def test_a_namespace_that_does_not_exist_is_told_until_it_comes() -> None:
    record = make_project("lab", "lab", "lbas", generation=4)
    found = status_of(record, missing=("lbas",), now=THEN)
    (told,) = (c for c in found.conditions if c.type == "NamespacesExist")
    assert (told.status, told.reason) == ("False", "NamespaceNotFound")
    assert told.message.startswith("spec.namespaces: lbas does not exist; create it, or correct")
    assert found.conditions[0].status == "True", "the project can be used"
    unknown = status_of(record, missing=None, before=found.to_json())
    assert unknown.conditions[-1] == told, "after a change of leader, until that has looked"
    (told,) = (
        c
        for c in status_of(record, missing=(), before=found.to_json()).conditions
        if c.type == "NamespacesExist"
    )
    assert (told.status, told.reason, told.message) == ("True", "AllExist", "")


def test_where_nobody_has_looked_nothing_is_said_of_namespaces() -> None:
    assert "NamespacesExist" not in {c.type for c in status_of(missing=None).conditions}


def test_a_project_that_was_set_aside_says_so_for_as_long_as_it_is() -> None:
    first = status_of(quarantine="set aside: why", now=THEN)
    told = first.conditions[-1]
    assert (told.type, told.status, told.message) == ("SetAside", "True", "set aside: why")
    second = status_of(quarantine="set aside: again", before=first.to_json())
    assert second.conditions[-1].last_transition_time == THEN
    assert "SetAside" not in {c.type for c in status_of().conditions}
