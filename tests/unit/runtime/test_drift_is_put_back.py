"""What somebody else changes in our Jobs is put back, or the GPUJob says so."""

from typing import Any

import pytest
from tests.unit.runtime.fake_client import CONFLICT, Sent
from tests.unit.runtime.jobs.test_reconcile import KEY, Case
from tests.unit.runtime.virtual_loop import clock, virtual
from tests.unit.state.builders import make_job
from tests.unit.state.test_cluster_state import make_cluster_state
from tests.unit.sweeps.runtime.cases import KEY as SWEEP
from tests.unit.sweeps.runtime.cases import segment_job
from tests.unit.sweeps.runtime.test_segments import Making

from gpu_scheduler.api.names import FIRST_TRIAL, LABEL_JOB, NARROWED
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.kube.objects import Job
from gpu_scheduler.runtime.informers.event_handlers import JobHandler
from gpu_scheduler.runtime.jobs.creation import FoundJob, FoundMeta, NotCreatableError, create_job


class Server(Case):
    """A job of five pods, two at once, and an API server that takes what is written."""

    def __init__(self) -> None:
        super().__init__(parallelism=2, completions=5)
        self.there: dict[str, Any] = {"parallelism": 2, "completions": 5, "suspend": False}
        self.version = 1
        self.client.reply = self._take
        self.state.job_changed(self.job())

    def job(self, **also: Any) -> Job:
        return make_job(version=self.version, **self.there, **also)

    def edit(self, **changed: Any) -> None:
        """Somebody else changes the Job."""
        self.there |= changed
        self.version += 1
        self.state.job_changed(self.job())

    def _take(self, sent: Sent) -> Any:
        if sent.method == "POST":
            return CONFLICT
        if sent.method == "PATCH":
            self.there |= sent.body["spec"]
            self.version += 1
        return self.job()

    @property
    def written(self) -> list[Any]:
        return [sent.body["spec"] for sent in self.client.of("PATCH")]

    @property
    def complaint(self) -> str:
        return self.state.gpujobs[KEY].complaint


@pytest.mark.parametrize(
    ("change", "written"),
    [
        ({"parallelism": 5}, [{"parallelism": 2}]),
        ({"suspend": True}, [{"suspend": False}]),
        (
            {"completions": 1, "parallelism": 1},
            [{"completions": 5, "parallelism": 5}, {"parallelism": 1}, {"parallelism": 2}],
        ),
        (
            {"completions": 9, "parallelism": 9},
            [{"completions": 5, "parallelism": 5}, {"parallelism": 2}],
        ),
    ],
    ids=["wider", "suspended", "fewer", "more"],
)
def test_what_an_editor_changed_is_put_back(change: dict[str, Any], written: list[Any]) -> None:
    @virtual
    async def run() -> None:
        case = Server()
        case.edit(**change)
        await case.handle()
        assert case.written == written
        assert case.there == {"parallelism": 2, "completions": 5, "suspend": False}
        assert case.complaint == "" and list(case.state.jobs.believed) == ["job-uid"]

    run()


@virtual
async def test_that_a_job_was_narrowed_stands_on_it_and_nowhere_else() -> None:
    case = Server()
    case.state.decisions.narrow(case.state.jobs.believed["job-uid"], 0)
    await case.handle()
    narrower, wider = (sent.body for sent in case.client.of("PATCH"))
    assert narrower["spec"] == {"parallelism": 0}
    assert narrower["metadata"]["annotations"] == {NARROWED: "true"}
    assert narrower["metadata"]["resourceVersion"] == "1", "as it was when that was decided"
    assert case.state.decisions.narrowed == {}
    assert wider["spec"] == {"parallelism": 2}, "its pods have places again"


@virtual
async def test_only_a_job_that_becomes_wider_counts_by_what_is_being_written() -> None:
    case, seen = Server(), list[tuple[Any, dict[str, int]]]()
    takes = case.client.reply

    def take(sent: Sent) -> Any:
        if sent.method == "PATCH":
            seen.append((sent.body["spec"], dict(case.state.decisions.widening)))
        return takes(sent)

    case.client.reply = take
    case.state.decisions.narrow(case.state.jobs.believed["job-uid"], 1)
    await case.handle()
    assert seen == [({"parallelism": 1}, {}), ({"parallelism": 2}, {"job-uid": 2})]
    assert case.state.decisions.widening == {}


@pytest.mark.parametrize("change", [{"parallelism": 4}, {"completions": 3}, {"suspend": True}])
def test_each_such_change_is_looked_at_at_once(change: dict[str, Any]) -> None:
    state, told = make_cluster_state(), list[JobKey]()
    handler = JobHandler(state, told.append)
    handler.changed(make_job(version=2))
    told.clear()
    handler.changed(make_job(version=3, **change))
    assert told == [KEY]


@virtual
async def test_two_who_write_the_same_field_do_not_keep_each_other_busy_and_the_job_says_so() -> (
    None
):
    case = Server()
    for _ in range(200):
        case.edit(parallelism=5)
        await case.handle()
    assert len(case.written) < 10, "no time has passed"
    assert "spec.parallelism: somebody else changes it in Job job again and again" in case.complaint
    assert "put back to 2" in case.complaint
    start = clock()
    while clock() < start + 600:
        case.edit(parallelism=5)
        await case.handle()
        await case.keys_within(1)
    assert len(case.written) < 25, "at most once a minute in the end"


@virtual
async def test_it_says_so_no_more_when_the_other_has_let_it_be() -> None:
    case = Server()
    for _ in range(5):
        case.edit(parallelism=5)
        await case.handle()
    assert case.complaint
    while await case.keys_within(130):
        await case.handle()
    assert (case.complaint, case.there["parallelism"]) == ("", 2)


@virtual
async def test_changes_of_the_gpujob_itself_are_no_struggle() -> None:
    case = Server()
    spec = case.state.gpujobs[KEY].spec
    assert spec is not None
    for number in range(50):
        case.state.gpujobs[KEY].spec = spec.model_copy(update={"suspend": number % 2 == 0})
        await case.handle()
    assert (len(case.written), case.complaint) == (50, "")


@pytest.mark.parametrize("completions", [1, 5], ids=["too small", "put back after the verdict"])
def test_a_job_that_ended_too_small_is_no_success_and_cannot_be_put_back(completions: int) -> None:
    @virtual
    async def run() -> None:
        case = Server()
        case.there |= {"completions": completions, "parallelism": 1}
        case.version += 1
        ended = case.job(ended="Complete", succeeded=1)
        case.state.job_changed(ended)
        case.client.reply = lambda sent: CONFLICT if sent.method == "POST" else ended
        await case.handle()
        assert case.client.of("PATCH") == []
        assert "it ended with 1 completions, and 5 belong to it; delete it" in case.complaint

    run()


@virtual
async def test_labels_that_an_editor_took_away_come_back_with_the_size() -> None:
    case = Case(parallelism=2, completions=5)
    bare = make_job(version=2, completions=9, parallelism=9, labelled=False)
    case.answers = {
        "POST": CONFLICT,
        "GET": bare,
        "PATCH": make_job(version=3, completions=5, parallelism=2),
    }
    await case.handle()
    assert [sent.body for sent in case.client.of("PATCH")] == [
        {"metadata": {"labels": {LABEL_JOB: "job"}, "uid": "job-uid"}},
        {"spec": {"completions": 5, "parallelism": 5}, "metadata": {"uid": "job-uid"}},
        {"spec": {"parallelism": 2}, "metadata": {"uid": "job-uid"}},
    ]
    assert case.problem == ""


@virtual
async def test_a_job_that_somebodys_finalizer_keeps_is_told_of() -> None:
    case = Case()
    meta = FoundMeta(
        **{
            name: getattr(make_job(deleting=True).metadata, name)
            for name in ("name", "namespace", "uid", "deletion_timestamp", "owner_references")
        },
        finalizers=("foregroundDeletion", "example.com/keep"),
    )
    case.answers = {"POST": CONFLICT, "GET": FoundJob(meta)}
    await case.handle()
    assert "Job job is being deleted, and is kept by the finalizer example.com/keep" in case.problem
    assert await case.keys_within(31) == [30.0]


@virtual
async def test_a_job_that_is_just_going_is_waited_for() -> None:
    case = Case()
    case.answers = {"POST": CONFLICT, "GET": make_job(deleting=True)}
    await case.handle()
    assert case.problem == "" and len(await case.keys_within(1)) == 1


def with_two_jobs() -> Making:
    """A sweep of five trials in two Jobs: three, and two that were added later."""
    case = Making(completions=5)
    case.job(number=0, first=0, size=3, version=2)
    case.job(number=1, first=3, size=2, version=3)
    return case


@virtual
async def test_a_segment_of_a_sweep_gets_its_trials_back() -> None:
    case = with_two_jobs()
    case.version = 20
    case.state.job_changed(segment_job(0, 0, 1, version=11, parallelism=1))
    await case.follow()
    written = [sent.body["spec"] for sent in case.client.of("PATCH")]
    assert written[0] == {"completions": 3, "parallelism": 3}
    assert case.client.of("POST") == [], "no other Job takes the trials that it lacks"


@pytest.mark.parametrize("size", [1, 3], ids=["too small", "put back after the verdict"])
def test_a_segment_that_ended_too_small_is_told_of(size: int) -> None:
    @virtual
    async def run() -> None:
        case = with_two_jobs()
        case.state.job_changed(segment_job(0, 0, size, version=11, ended="Complete", succeeded=1))
        await case.follow()
        said = case.segments.complaint(case.state.gpujobs[SWEEP])
        assert said.startswith("Job job-s0 ended with 1 of its 3 trials")

    run()


@virtual
async def test_a_segment_that_was_widened_into_the_next_loses_to_it() -> None:
    case = with_two_jobs()
    case.state.job_changed(segment_job(0, 0, 5, version=11))
    assert [job.name for job in case.state.workloads.jobs(SWEEP)] == ["job-s1"]


@virtual
async def test_a_job_whose_first_trial_was_changed_is_told_of() -> None:
    """Whoever believes it runs other trials in its pods."""
    case = Making(completions=2500)
    changed = segment_job(1, 999, 1000, version=5)
    case.client.reply = lambda sent: CONFLICT if sent.method == "POST" else changed
    with pytest.raises(NotCreatableError, match="its first trial is 999, and should be"):
        await create_job(
            case.client,  # type: ignore[arg-type]
            case.state.gpujobs[SWEEP],
            {
                "metadata": {"name": "job-s1", "annotations": {FIRST_TRIAL: "1000"}},
                "spec": {"completions": 1000},
            },
        )


@virtual
async def test_a_job_whose_template_was_changed_while_it_was_suspended_stays_so_and_says_so() -> (
    None
):
    case = Server()
    case.edit(suspend=True)
    template = {"spec": {"nodeSelector": {"disk": "slow"}}}
    case.client.reply = lambda sent: {"spec": {"template": template}}
    await case.handle()
    assert case.methods == ["GET"]
    assert case.complaint.startswith("spec.template.spec.nodeSelector: somebody else changed it in")
    assert "kubectl delete job job" in case.complaint
    case.client.reply = case._take
    assert await case.keys_within(31) == [30.0]
    await case.handle()
    assert (case.complaint, case.there["suspend"]) == ("", False)


@virtual
async def test_so_does_a_segment_of_a_sweep() -> None:
    case = with_two_jobs()
    case.state.job_changed(segment_job(0, 0, 3, version=11, suspend=True))
    template = {"spec": {"tolerations": [{"operator": "Exists"}]}}
    case.client.reply = lambda sent: {"spec": {"template": template}}
    await case.follow()
    assert case.client.of("PATCH", "/job-s0") == []
    said = case.segments.complaint(case.state.gpujobs[SWEEP])
    assert said.startswith("spec.template.spec.tolerations: somebody else changed it in Job job-s0")
