import pytest

from gpu_scheduler.kube import unexpected as module
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.web.collector import unexpected_errors


def test_an_exception_is_logged_with_its_object_and_counted_by_loop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = module.counts["binder"]
    try:
        raise KeyError("no such thing")
    except KeyError:
        unexpected("binder", "team-a/frac05-0")
    assert module.counts["binder"] == before + 1
    assert "team-a/frac05-0" in caplog.text
    assert "no such thing" in caplog.text
    samples = {s.labels["loop"]: s.value for s in unexpected_errors().samples}
    assert samples["binder"] == before + 1
