"""What the GPUJobs of a namespace say has so much room, and what has none is read later."""

from collections.abc import Iterator

import pytest
from tests.unit.state.builders import gpujob_body, make_project

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.runtime.informers import spec_room
from gpu_scheduler.runtime.informers.custom_resources import CustomResources
from gpu_scheduler.state.cluster_state import ClusterState

EACH = 6000  # bytes, more than half of the room


class Intake(CustomResources):
    """Takes GPUJobs of two namespaces in, one of them with a project."""

    def __init__(self) -> None:
        self.state, self.lists = ClusterState(), 0
        super().__init__(self.state, changed=lambda key: None, read_again=self._list)
        self.state.project_changed(make_project())
        self._versions = iter(range(1, 1000))

    def _list(self) -> None:
        self.lists += 1

    def put(self, name: str, text: str, namespace: str = "team-a", generation: int = 1) -> None:
        body = gpujob_body(
            name,
            uid=f"uid-{namespace}-{name}",
            namespace=namespace,
            generation=generation,
            version=next(self._versions),
            args=[text * EACH],
        )
        self.gpujob(body)

    def kept(self, namespace: str = "team-a") -> dict[str, bool]:
        found = self.state.gpujobs.values()
        return {job.name: job.spec is not None for job in found if job.namespace == namespace}


@pytest.fixture
def intake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Intake]:
    monkeypatch.setattr(spec_room, "MOST_BYTES", 10_000)
    monkeypatch.setattr(spec_room, "MOST_BYTES_WITHOUT_PROJECT", 10)
    yield Intake()


def test_what_has_no_room_is_not_kept_and_says_so(intake: Intake) -> None:
    intake.put("one", "a")
    intake.put("two", "b")
    assert intake.kept() == {"one": True, "two": False}
    problem = intake.state.gpujobs[JobKey("team-a/two")].problem
    assert problem.startswith("spec: ") and "delete" in problem


def test_jobs_that_say_the_same_take_no_more_room(intake: Intake) -> None:
    for number in range(5):
        intake.put(f"job-{number}", "a")
    assert all(intake.kept().values())


def test_room_that_becomes_free_is_for_those_that_had_none(intake: Intake) -> None:
    intake.put("one", "a")
    intake.put("two", "b")
    intake.gpujob_gone("team-a", "one", "uid-team-a-one")
    assert intake.lists == 1
    intake.put("two", "b")  # as the list tells it: the same generation
    assert intake.kept() == {"two": True}
    intake.gpujob_gone("team-a", "two", "uid-team-a-two")
    assert intake.lists == 1, "nobody waits for room"


def test_what_is_changed_has_the_room_of_what_it_was(intake: Intake) -> None:
    intake.put("one", "a")
    intake.put("one", "b", generation=2)
    assert intake.kept() == {"one": True}
    intake.put("two", "b")
    assert intake.kept() == {"one": True, "two": True}


def test_without_a_project_hardly_anything_is_kept_until_it_has_one(intake: Intake) -> None:
    intake.put("job", "a", namespace="team-b")
    assert intake.kept("team-b") == {"job": False}
    assert "belongs to no project" in intake.state.gpujobs[JobKey("team-b/job")].problem
    intake.project(
        {
            "metadata": {"name": "b", "uid": "b", "resourceVersion": "9", "generation": 1},
            "spec": {"namespaces": ["team-b"], "quota": 1},
        }
    )
    assert intake.lists == 1
    intake.put("job", "a", namespace="team-b")
    assert intake.kept("team-b") == {"job": True}
