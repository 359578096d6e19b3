"""What a GPUProject's status says: a pure function of what the operator knows.

Asked by the status writer for every project whenever a plan may have changed, hence cheap: sums
that the state keeps, and one pass over all waiting jobs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpu_scheduler.api.condition import ConditionType, StatusBody, StatusCondition, condition
from gpu_scheduler.api.gpuproject import GPUProjectStatus, JobCounts, ModelHoldings
from gpu_scheduler.core.model.request import ProjectName, WaitingJob
from gpu_scheduler.core.model.units import gpu_from_milli
from gpu_scheduler.core.model.wording import names
from gpu_scheduler.runtime.common.last_plan import LastPlan
from gpu_scheduler.runtime.informers.custom_resources import GPUPROJECTS
from gpu_scheduler.runtime.status.overview import Overview, survey
from gpu_scheduler.runtime.status.status_writer import StoreStatuses
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.owners import Claim
from gpu_scheduler.state.jobs.projects import ProjectRecord


@dataclass(frozen=True, slots=True)
class ProjectFigures:
    """What is known of a project beside its object.

    Attributes:
        allocated_milli: what it holds.
        fair_share_milli: what it should hold.
        waiting: jobs that wait and can start.
        never: how many more wait that cannot start as they are.
        running_jobs: how many run.
        by_model: what it holds of models that its quota names.
        broken: why it may not get its quota although it asks for it.
        quarantine: why the planner has quarantined it.
        missing: namespaces that it owns and that do not exist; None: nobody knows yet.
    """

    allocated_milli: int
    fair_share_milli: int = 0
    waiting: Sequence[WaitingJob] = ()
    never: int = 0
    running_jobs: int = 0
    by_model: Sequence[ModelHoldings] = ()
    broken: str = ""
    quarantine: str = ""
    missing: Sequence[str] | None = None


def project_status(
    record: ProjectRecord,
    figures: ProjectFigures,
    *,
    conflicts: tuple[Claim, ...],
    before: StatusBody,
    now: str,
) -> GPUProjectStatus:
    """The status that a project should have (``before``: the one it has, as JSON)."""
    jobs, allocated_milli = figures.waiting, figures.allocated_milli
    pending = sum(pod.pod_shape.nominal_milli for job in jobs for pod in job.pods)
    return GPUProjectStatus(
        observed_generation=record.generation,
        allocated_gpu=gpu_from_milli(allocated_milli),
        borrowed_gpu=gpu_from_milli(max(0, allocated_milli - record.project.quota_milli)),
        fair_share_gpu=gpu_from_milli(figures.fair_share_milli),
        by_model=list(figures.by_model),
        pending_gpu=gpu_from_milli(pending),
        jobs=JobCounts(running=figures.running_jobs, pending=len(jobs) + figures.never),
        conditions=_conditions(record, figures, conflicts, before, now),
    )


class ProjectStatuses(StoreStatuses):
    """What all GPUProjects are to say; ``Statuses`` of the writer."""

    kind = GPUPROJECTS

    def __init__(
        self,
        state: ClusterState,
        plan: LastPlan,
        *,
        namespaces_known: Callable[[], bool] = lambda: False,
        now: Callable[[], str],
    ) -> None:
        """``namespaces_known``: whether all of them have been told; ``now`` dates conditions."""
        super().__init__(state.projects)
        self._state = state
        self._plan = plan
        self._namespaces_known = namespaces_known
        self._now = now
        self._seen: tuple[int, Mapping[ProjectName, int], bool] = (-1, {}, False)
        self._overview: Overview | None = None

    def touched(self) -> Iterable[str]:
        """All of them, if a plan may have changed; none before the first one."""
        known = self._namespaces_known()
        seen = (self._state.changes.version, self._plan.shares_milli, known)
        if not self._plan.cycles:
            return ()
        if seen != self._seen:
            self._seen = seen
            self.store.touched.update(self.store.records)
        return self.store.take_touched()

    def prepare(self) -> None:
        """One look for all projects that are due."""
        self._overview = survey(self._state, self._plan.shares_by_model_milli, self._plan.waits)

    def status(self, key: str) -> tuple[StatusBody, StatusBody]:
        """See ``Statuses``."""
        name, before = ProjectName(key), self.store.statuses.get(key, {})
        record: ProjectRecord = self.store.records[key]
        overview = self._overview or survey(self._state)
        status = project_status(
            record,
            ProjectFigures(
                allocated_milli=overview.allocated_milli.get(name, 0),
                fair_share_milli=self._plan.shares_milli.get(name, 0),
                waiting=overview.waiting.get(name, ()),
                never=overview.never.get(name, 0),
                running_jobs=overview.running.get(name, 0),
                broken=overview.promise.broken(record.project),
                by_model=overview.by_model.get(name, ()),
                quarantine=self._plan.quarantine.project(name),
                missing=self._missing(record),
            ),
            conflicts=self.store.conflicts(name),
            before=before,
            now=self._now(),
        )
        return before, status.to_json()

    def _missing(self, record: ProjectRecord) -> list[str] | None:
        """Others than it owns are their owner's to speak of."""
        if not self._namespaces_known():
            return None
        owner, there = self._state.projects.owner, self._state.namespaces.existing
        owned = (each for each in record.namespaces if owner(each) == record.project.name)
        return [each for each in owned if each not in there]


def _conditions(
    record: ProjectRecord,
    figures: ProjectFigures,
    conflicts: tuple[Claim, ...],
    before: StatusBody,
    now: str,
) -> list[StatusCondition]:
    problem = record.problem or "; ".join(
        f"spec.namespaces: {c.name} belongs to GPUProject {c.owner} already; remove it here "
        "or there"
        for c in conflicts[:5]
    )
    broken = "" if record.problem else figures.broken
    wanted = [
        ("Accepted", not problem, "Invalid" if problem else "Accepted", problem),
        (ConditionType.QUOTA_COVERED, not broken, "Overcommitted" if broken else "Covered", broken),
    ]
    kind = ConditionType.NAMESPACES_EXIST
    if figures.missing is not None:
        gone = _no_namespace(figures.missing)
        reason = "NamespaceNotFound" if gone else "AllExist"
        wanted.append((kind, not gone, reason, gone))
    elif told := next((c for c in before.get("conditions") or () if c.get("type") == kind), None):
        said = str(told.get("reason") or ""), str(told.get("message") or "")
        wanted.append((kind, not said[1], *said))
    if figures.quarantine:
        wanted.append((ConditionType.SET_ASIDE, True, "UnexpectedError", figures.quarantine))
    return [condition(*w, judged=(record.generation, now), before=before) for w in wanted]


def _no_namespace(missing: Sequence[str]) -> str:
    """What is said of namespaces that do not exist; empty: there are none."""
    if not missing:
        return ""
    those, them = ("does", "it") if len(missing) == 1 else ("do", "them")
    return (
        f"spec.namespaces: {names(missing)} {those} not exist; create {them}, or correct the name: "
        "kubectl edit gpuproject"
    )
