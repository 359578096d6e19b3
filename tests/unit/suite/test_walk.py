import sys

from tests.suite.walk import traced


def test_a_job_is_followed_from_its_event_to_its_status() -> None:
    trace, phase = traced()
    assert phase == "Running" and sys.getprofile() is None
    assert trace.files >= {
        "runtime/informers/custom_resources.py",
        "jobs/render.py",
        "core/fit/placement.py",
        "runtime/binding/binder.py",
        "runtime/status/status_writer.py",
    }
    files = [file for file, _ in trace.functions]
    assert files.index("jobs/render.py") < files.index("runtime/binding/binder.py")
