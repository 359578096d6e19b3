from gpu_scheduler.agent.foreign import UNNAMED_SECONDS, Lasting
from gpu_scheduler.api.gpunode import ForeignProcess


def process(pid: int) -> ForeignProcess:
    return ForeignProcess(pid=pid, name="x", used_mib=64)


def test_a_stranger_is_reported_from_the_second_look_on() -> None:
    lasting = Lasting()
    assert lasting.update({"a": [process(1)]}) == {}
    assert lasting.update({"a": [process(2), process(1)]}) == {"a": [process(1)]}
    assert lasting.update({"a": [process(2), process(1)]}) == {"a": [process(1), process(2)]}
    assert lasting.update({}) == {}
    assert lasting.update({"a": [process(1)]}) == {}


def test_it_counts_per_device() -> None:
    lasting = Lasting()
    lasting.update({"a": [process(1)]})
    assert lasting.update({"b": [process(1)]}) == {}


def test_a_process_of_a_pod_that_was_not_named_yet_is_given_time() -> None:
    lasting = Lasting()
    for now in range(0, int(UNNAMED_SECONDS), 3):
        assert lasting.update({"a": [process(1)]}, {1}, now) == {}
    assert lasting.update({"a": [process(1)]}, {1}, UNNAMED_SECONDS) == {"a": [process(1)]}
    assert lasting.update({"a": [process(2)]}, {2}, 100.0) == {}
    assert lasting.update({"a": [process(2)]}, (), 103.0) == {"a": [process(2)]}, "it was named"
