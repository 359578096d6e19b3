from tests.unit.state.builders import make_pod

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.state.pods.pod_book import PodBook


def seen(book: PodBook, **facts: object) -> str:
    """The uid of a pod whose news the book has taken over; empty when they were old."""
    record = book.read(make_pod(**facts))  # type: ignore[arg-type]
    if record is None:
        return ""
    book.upsert(record)
    return record.uid


def test_a_pod_is_its_jobs_until_it_is_gone_and_leaves_nothing() -> None:
    book = PodBook("")
    uid = PodUID(seen(book))
    (pod,) = book.known.values()
    assert [each.uid for each in book.of_job(pod.job_uid)] == [uid]
    assert book.drop(uid, gone=True) is pod
    assert book.known == {} and book._of_job == {}
    assert seen(book) == "", "what is said of one that is gone is old"


def test_one_that_was_dismissed_may_be_seen_again() -> None:
    book = PodBook("")
    uid = PodUID(seen(book))
    book.drop(uid, gone=False)
    assert seen(book) == uid
