from datetime import UTC, datetime, timedelta, timezone

from tests.unit.jobs.pods import make_pod

from gpu_scheduler.jobs.evict import evict, mark_disrupted, mark_pruned, mark_time_limit

POD = make_pod().metadata
NOW = datetime(2026, 3, 1, 12, 0, 0, 5, tzinfo=UTC)


def test_eviction_is_for_exactly_this_pod() -> None:
    write = evict(POD)
    assert (write.method, write.path) == (
        "POST",
        "/api/v1/namespaces/team-a/pods/frac05-0-x/eviction",
    )
    assert write.body["apiVersion"] == "policy/v1"
    assert write.body["deleteOptions"] == {"preconditions": {"uid": "uid-1"}}
    assert evict(POD, grace_seconds=0).body["deleteOptions"]["gracePeriodSeconds"] == 0


def test_disrupted_pods_get_the_condition_that_the_job_ignores() -> None:
    write = mark_disrupted(POD, "OutOfcpu", "the node is full", NOW)
    assert (write.method, write.path) == (
        "PATCH",
        "/api/v1/namespaces/team-a/pods/frac05-0-x/status",
    )
    assert write.content_type == "application/strategic-merge-patch+json"
    assert write.body == {
        "metadata": {"uid": "uid-1"},
        "status": {
            "conditions": [
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "OutOfcpu",
                    "message": "the node is full",
                    "lastTransitionTime": "2026-03-01T12:00:00Z",
                }
            ]
        },
    }


def test_time_limit_has_a_condition_of_its_own() -> None:
    condition = mark_time_limit(POD, "ran 3600 s", NOW).body["status"]["conditions"][0]
    assert condition["type"] == "gpu-scheduler.io/TimeLimitExceeded"
    assert condition["reason"] == "TimeLimitExceeded"


def test_a_trial_that_was_told_to_stop_has_a_condition_of_its_own() -> None:
    condition = mark_pruned(POD, "hopeless", NOW).body["status"]["conditions"][0]
    assert condition["type"] == "gpu-scheduler.io/Pruned"
    assert condition["message"] == "hopeless"


def test_times_are_written_in_utc() -> None:
    later = NOW.astimezone(timezone(timedelta(hours=2)))
    assert mark_time_limit(POD, "", later).body == mark_time_limit(POD, "", NOW).body
