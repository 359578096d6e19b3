from tests.perf.procfs import busy_seconds
from tests.perf.queue_stand import used_since

STAT = "cpu  100 20 30 4000 500 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n"


def test_waiting_for_a_disk_is_not_being_busy_and_stolen_time_is() -> None:
    assert busy_seconds(STAT) * 100 == 100 + 20 + 30 + 6 + 7 + 8


def test_what_none_of_ours_used_was_used_by_others() -> None:
    before = {"operator": 10.0, "etcd": 5.0, "machine": 100.0}
    now = {"operator": 12.0, "etcd": 5.5, "machine": 110.0}
    assert used_since(before, now) == {"operator": 2.0, "etcd": 0.5, "others": 7.5}


def test_an_operator_that_was_started_again_counts_from_its_start() -> None:
    before = {"operator": 10.0, "machine": 100.0}
    assert used_since(before, {"operator": 3.0, "machine": 105.0})["operator"] == 3.0
