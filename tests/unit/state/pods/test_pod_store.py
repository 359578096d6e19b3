from tests.unit.state.builders import make_pod

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.state.pods.pod_store import PodStore


def seen(store: PodStore, **facts: object) -> str:
    """The uid of a pod whose news the store has taken over; empty when they were old."""
    record = store.read(make_pod(**facts))  # type: ignore[arg-type]
    if record is None:
        return ""
    store.upsert(record)
    return record.uid


def test_a_pod_is_its_jobs_until_it_is_gone_and_leaves_nothing() -> None:
    store = PodStore("")
    uid = PodUID(seen(store))
    (pod,) = store.known.values()
    assert [each.uid for each in store.of_job(pod.job_uid)] == [uid]
    assert store.drop(uid, gone=True) is pod
    assert store.known == {} and store._of_job == {}
    assert seen(store) == "", "what is said of one that is gone is old"


def test_one_that_was_dismissed_may_be_seen_again() -> None:
    store = PodStore("")
    uid = PodUID(seen(store))
    store.drop(uid, gone=False)
    assert seen(store) == uid
