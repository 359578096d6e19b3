"""Where a job's pods failed is remembered, and for longer each time."""

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.state.jobs.failed_nodes import FailedNodes

KEY = JobKey("team-a/job")


def test_each_time_it_goes_wrong_again_the_node_is_avoided_for_twice_as_long() -> None:
    nodes, now = FailedNodes(), 0.0
    for seconds in (10.0, 20.0, 40.0):
        nodes.note(KEY, "a", now, 10.0, "no")
        assert nodes.next_expiry() == now + seconds
        assert nodes.expire(now + seconds - 0.1) == set()
        assert nodes.expire(now + seconds) == {KEY}
        now += seconds
    for _ in range(10):
        nodes.note(KEY, "a", now, 10.0, "no")
    assert nodes.next_expiry() == now + 640.0


def test_what_was_said_stays_while_the_node_is_avoided_and_is_bounded() -> None:
    nodes = FailedNodes()
    nodes.note(KEY, "a", 0.0, 10.0, "x" * 1000)
    nodes.note(KEY, "b", 0.0, 20.0, "")
    assert set(nodes.of(KEY)) == {"a", "b"} and nodes.of(KEY)["b"] == ""
    assert len(nodes.of(KEY)["a"]) < 400
    nodes.expire(10.0)
    assert nodes.of(KEY) == {"b": ""}


def test_a_job_that_is_gone_is_forgotten() -> None:
    nodes = FailedNodes()
    nodes.note(KEY, "a", 0.0, 10.0, "no")
    nodes.forget(lambda key: key != KEY)
    assert nodes.of(KEY)
    nodes.forget(lambda key: True)
    assert nodes.of(KEY) == {} and nodes.next_expiry() is None
    nodes.note(KEY, "a", 0.0, 10.0, "no")
    assert nodes.next_expiry() == 10.0
