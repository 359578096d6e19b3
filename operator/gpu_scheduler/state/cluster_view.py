"""What the operator knows of the cluster, for reading: the planner's input, and who is whose.

Invariant: nothing here changes anything but caches, and what is to be told again. ``cluster_state``
keeps it up to date.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import partial

from gpu_scheduler.api.gpujob import Phase
from gpu_scheduler.api.parts import is_gang
from gpu_scheduler.api.share_request import ShareRequest
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.quota import ceiling_milli
from gpu_scheduler.core.model.request import Gang, JobKey, PodUID, Project, ProjectName, WaitingJob
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.affinity.placed_pods import PlacedPodStore
from gpu_scheduler.state.changes import Changes
from gpu_scheduler.state.decisions import Decisions
from gpu_scheduler.state.jobs.beginnings import Beginnings
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord
from gpu_scheduler.state.jobs.own_jobs import JobStore
from gpu_scheduler.state.jobs.projects import ProjectStore
from gpu_scheduler.state.nodes.classes import ClassStore
from gpu_scheduler.state.nodes.ledger import Ledger
from gpu_scheduler.state.nodes.node_store import NodeStore
from gpu_scheduler.state.pods.bereft import BereftPods
from gpu_scheduler.state.pods.counting import PodCount, counted, parallelism_of, shrinks
from gpu_scheduler.state.pods.pod import PodRecord, Stage
from gpu_scheduler.state.pods.pod_store import PodStore
from gpu_scheduler.state.pods.shares import ShareGroups
from gpu_scheduler.state.queue.gangs import gang_of
from gpu_scheduler.state.queue.moves import Moves
from gpu_scheduler.state.queue.prospective import ProspectivePod, most_prospective, prospective_pods
from gpu_scheduler.state.queue.running_pods import RunningPodStore
from gpu_scheduler.state.queue.waiting import PendingPods


class ClusterView:
    """Pods, nodes, jobs and projects, and what follows from them."""

    def __init__(
        self,
        holders_in: str = "",
        *,
        consolidation: bool = False,
        now: Callable[[], float] | None = None,
        lacks: Callable[[Pod, ShareRequest], str] = lambda pod, asked: "",
    ) -> None:
        """Start knowing nothing.

        Args:
            holders_in: see ``state.pods.pod.record``.
            consolidation: pods may move.
            now: epoch seconds, only ever more; None: what is shown is no cluster of this moment,
                and its stamps are right.
            lacks: what a pod that asks by itself lacks of what makes it ours; empty = nothing.
        """
        self._pods = PodStore(holders_in)
        self._gpujobs: dict[JobKey, GPUJobRecord] = {}
        self._leaving: set[PodUID] = set()
        self._terminating: set[str] = set()
        # For others to read. What they write goes through the methods below.
        self.pods: Mapping[PodUID, PodRecord] = self._pods.known
        self.placeholders: Mapping[PodUID, PodRecord] = self._pods.placeholders
        self.gpujobs: Mapping[JobKey, GPUJobRecord] = self._gpujobs
        self._shares = ShareGroups()
        self.groups: Mapping[JobKey, GPUJobRecord] = self._shares.records  # of pods without GPUJob
        self.leaving: Set[PodUID] = self._leaving  # their eviction was decided here
        self.terminating: Set[str] = self._terminating  # namespaces: nothing can be made there
        self.job_store = JobStore()
        self.jobs: Mapping[str, JobRecord] = self.job_store.believed  # by uid
        self.ledger = Ledger()
        self.projects = ProjectStore()
        self.classes = ClassStore()
        self.nodes = NodeStore(self.ledger)
        self.agents = self.nodes.agents
        self.beginnings = Beginnings(now)
        self.waiting = PendingPods(self.beginnings)
        self.changes = Changes(self.waiting)
        self.running_pods = RunningPodStore(Moves(on=consolidation), self.beginnings)
        self.bereft = BereftPods(
            self.job_store, self._gpujobs, self.running_pods.set_following, self.agents.note_news
        )
        self._placed_pods = PlacedPodStore(self.projects.owner)
        self.decisions = Decisions(
            self.ledger, self._placed_pods, self.waiting, self.changes, self._gpujobs
        )
        self.vanished: dict[JobKey, list[JobRecord]] = {}  # Jobs that the watch shows no more
        self.trials_left: Callable[[GPUJobRecord], int | None] = lambda job: None
        self.lacks = lacks

    def snapshot(self) -> Cluster:
        """The cluster as it stands, assumed allocations included. Not a copy: read only."""
        cluster = self.ledger.cluster
        cluster.allocated_milli = self.projects.holdings(self.ledger.held_milli)
        cluster.catalogue = self.classes.catalogue
        self._placed_pods.begin()
        cluster.placed_pods = self._placed_pods
        cluster.names = self._shares.names
        cluster.held_by_model = self.projects.holdings_by_model(self.ledger.held_by_model)
        return cluster

    def planner_projects(self) -> dict[ProjectName, Project]:
        """Quotas by project."""
        found = ((name, self.planner_project(name)) for name in self.projects.records)
        return {name: project for name, project in found if project is not None}

    def planner_project(self, name: ProjectName) -> Project | None:
        """The quota of one project; None where it cannot be used."""
        record = self.projects.records[name]
        return None if record.problem else self.classes.resolve_quota(record.project)

    def waiting_jobs(self) -> list[WaitingJob]:
        """Jobs with pods that need a decision."""
        found = (self.waiting_job(key) for key in self.waiting.keys())
        return [job for job in found if job is not None]

    def waiting_job(self, key: JobKey) -> WaitingJob | None:
        """One of them; None when none of its pods needs a decision."""
        job = self.work(key)
        if job is None or job.spec is None or job.deleting or job.spec.suspend or job.problem:
            return None
        project = self.projects.owner(job.namespace)
        if project is None or (key in self.decisions.nominated and is_gang(job.spec)):
            return None  # a gang is placed in one piece: it has its places, and its pods come
        if self.waiting.has_pods(key) and any(map(self.shrinks, self.jobs_of(key))):
            return None  # what got a place now might be deleted with what has none
        prospective = partial(self._prospective, job, project)
        return self.waiting.job(job, project, lambda: self.gang(job), prospective)

    def work(self, key: JobKey) -> GPUJobRecord | None:
        """A GPUJob, or a group of pods without one."""
        return self._gpujobs.get(key) or self.groups.get(key)

    def name_of(self, key: JobKey) -> str:
        """What a GPUJob, or a group of pods without one, is called in sentences."""
        return self._shares.names.get(key, key)

    def _member_changed(self, pod: PodRecord | None) -> bool:
        """Whether it is one of a GPUJob, or of a group."""
        key = self.job_of(pod) if pod is not None else None
        if key is not None:
            self.changes.members_changed(key)
        return key is not None

    def _touch_pods(self, pods: Iterable[PodUID]) -> None:
        known = [self.pods[uid] for uid in pods if uid in self.pods]
        self.changes.touch_statuses(key for key in map(self.job_of, known) if key is not None)
        self.agents.note_news(pod.uid for pod in known)

    def job_of(self, pod: PodRecord) -> JobKey | None:
        """The GPUJob that a pod belongs to, or its group, as far as known."""
        job = self.jobs.get(pod.job_uid)
        return job.owner if job else None

    def gpujob_of(self, pod: PodRecord) -> GPUJobRecord | None:
        """The GPUJob of a pod; None where that is not known, or there is none."""
        return self.work_of(pod) if pod.share is None else None

    def work_of(self, pod: PodRecord) -> GPUJobRecord | None:
        """The GPUJob of a pod, or its group; not a later GPUJob of that name."""
        own = self.jobs.get(pod.job_uid)
        work = self.work(own.owner) if own is not None else None
        return work if own is not None and work is not None and work.uid == own.owner_uid else None

    def records(self, key: JobKey) -> Iterator[PodRecord]:
        """The pods of a GPUJob."""
        for job in self.jobs_of(key):
            yield from self._pods.of_job(job.uid)

    def pods_of(self, job_uid: str) -> Iterator[PodRecord]:
        """The pods of a Job."""
        return self._pods.of_job(job_uid)

    def count(self, job_uid: str) -> PodCount:
        """The pods of a Job, as they count for its controller."""
        return counted(self._pods.of_job(job_uid), self.decisions.assumed)

    def shrinks(self, own: JobRecord) -> bool:
        """Whether the controller of a Job may yet delete pods of it: none of them gets a place."""
        if own.owner not in self._gpujobs:
            return False  # pods that ask by themselves: nobody's width says how many there are
        asked, decided = self.decisions.widening.get(own.uid, 0), own.uid in self.decisions.narrowed
        known = max(self._pods.number_of(own.uid), own.active)
        if not (own.narrowed or decided) and known <= parallelism_of(own):
            return False  # without a look at each pod
        count = self.count(own.uid)
        return shrinks(own, count, asked) or (decided and count.unplaced > 0)

    def gang(self, job: GPUJobRecord) -> Gang | None:
        """The gang that a GPUJob is, as its pods stand; None when they start one by one."""
        jobs, pods = self.jobs_of(job.key), self.records(job.key)
        return gang_of(
            job.spec, jobs, pods, self.decisions.assumed.keys(), self._leaving, self.ledger
        )

    def jobs_of(self, key: JobKey) -> Iterable[JobRecord]:
        """The Jobs of a GPUJob; not those of an earlier one of the same name."""
        owner = self.work(key)
        known = self.job_store.of(key)
        return [job for job in known if owner is None or job.owner_uid == owner.uid]

    def _is_over(self, job: GPUJobRecord) -> bool:
        """Whether it makes no more pods; a sweep that has ended may get more trials."""
        if not job.finished or job.status.get("phase") == Phase.FAILED:
            return job.finished
        return not self.trials_left(job)

    def _prospective(self, job: GPUJobRecord, project: ProjectName) -> list[ProspectivePod]:
        if job.templates is None or job.key in self.decisions.withheld or self._is_over(job):
            return []
        record = self.projects.records[project]
        return prospective_pods(
            job,
            self.jobs_of(job.key),
            self.records(job.key),
            self.decisions.nominated.of(job.key),
            left=self.trials_left(job),
            most=partial(most_prospective, self.ledger.cluster, ceiling_milli(record.project)),
        )

    def _makes_room(self, old: PodRecord | None) -> bool:
        """Whether a pod that is no more had kept its GPUJob from having another one planned."""
        key = self.job_of(old) if old is not None and old.stage is not Stage.ENDED else None
        return key is not None and self.waiting.is_open(key)
