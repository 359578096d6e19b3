import sys

from tests.suite.walk import NumberTrace, Trace, traced


def test_a_job_is_followed_from_its_event_to_its_status() -> None:
    trace = Trace()
    assert traced(trace) == "Running" and sys.getprofile() is None
    assert trace.files >= {
        "runtime/informers/custom_resources.py",
        "jobs/render.py",
        "core/fit/placement.py",
        "runtime/binding/binder.py",
        "runtime/status/status_writer.py",
    }
    files = [file for file, _ in trace.functions]
    assert files.index("jobs/render.py") < files.index("runtime/binding/binder.py")


def test_the_part_of_a_gpu_is_followed_from_its_field_to_what_is_given_out() -> None:
    trace = NumberTrace()
    assert traced(trace) == "Running"
    files = [file for file, _ in trace.functions]
    assert files[0] == "api/model.py" and set(files) > {
        "core/model/units.py",
        "core/model/decision.py",
        "runtime/status/job_status.py",
    }
