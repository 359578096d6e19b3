"""Everything the operator knows, kept up to date by watch events and by its own decisions.

Between a decision and its echo in the watch an assumed allocation counts: ``decisions`` charges it,
the pod's next event with a node confirms it, ``forget`` takes it back. An event older than what is
known of a pod is ignored. Single-threaded: called from one event loop.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from functools import partial

from gpu_scheduler.api.gpujob import Phase
from gpu_scheduler.api.parts import is_gang
from gpu_scheduler.api.share_request import ShareRequest
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.quota import ceiling_milli
from gpu_scheduler.core.model.request import Gang, JobKey, PodUID, Project, ProjectName, WaitingJob
from gpu_scheduler.kube.objects import DeviceClass, Job, Pod
from gpu_scheduler.state.affinity.placed_pods import PlacedPodStore
from gpu_scheduler.state.affinity.pod_affinity import pod_affinity_of
from gpu_scheduler.state.changes import Changes
from gpu_scheduler.state.decisions import Decisions
from gpu_scheduler.state.jobs.beginnings import Beginnings
from gpu_scheduler.state.jobs.doubts import About
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord, job_record
from gpu_scheduler.state.jobs.own_jobs import JobStore
from gpu_scheduler.state.jobs.projects import ProjectRecord, ProjectStore
from gpu_scheduler.state.namespaces import NamespaceStore
from gpu_scheduler.state.nodes.classes import ClassRecord, ClassStore, resolve_models
from gpu_scheduler.state.nodes.ledger import Ledger, charge
from gpu_scheduler.state.nodes.node_store import NodeStore
from gpu_scheduler.state.pods.bereft import BereftPods
from gpu_scheduler.state.pods.counting import PodCount, counted, parallelism_of, shrinks
from gpu_scheduler.state.pods.device_classes import BEYOND_US, DeviceClassStore, asked, beyond_us
from gpu_scheduler.state.pods.pod import PodRecord, Stage, without_stranger
from gpu_scheduler.state.pods.pod_store import PodStore
from gpu_scheduler.state.pods.shares import ShareGroups
from gpu_scheduler.state.queue.gangs import gang_of
from gpu_scheduler.state.queue.moves import Moves
from gpu_scheduler.state.queue.prospective import ProspectivePod, most_prospective, prospective_pods
from gpu_scheduler.state.queue.running_pods import RunningPodStore
from gpu_scheduler.state.queue.waiting import PendingPods
from gpu_scheduler.state.workloads import Workloads

TrialsLeft = Callable[[GPUJobRecord], int | None]
"""How many trials of a GPUJob have not ended; None where it is no sweep."""


class ClusterState:
    """Pods, nodes, jobs and projects, and what follows from them."""

    def __init__(
        self,
        holders_in: str = "",
        *,
        consolidation: bool = False,
        now: Callable[[], float] | None = None,
        lacks: Callable[[Pod, ShareRequest], str] = lambda pod, asked: "",
        trials_left: TrialsLeft = lambda job: None,
    ) -> None:
        """Start knowing nothing.

        Args:
            holders_in: see ``state.pods.pod.record``.
            consolidation: pods may move.
            now: epoch seconds, only ever more; None: what is shown is no cluster of this moment,
                and its stamps are right.
            lacks: what a pod that asks by itself lacks of what makes it ours; empty = nothing.
            trials_left: see ``TrialsLeft``.
        """
        # For others to read. What they write goes through the methods below.
        self.pods = PodStore(holders_in)
        self.jobs = JobStore()
        self.groups = ShareGroups()  # of pods without GPUJob
        self.workloads = Workloads(self.groups, self.jobs, self.pods)
        self.gpujobs: Mapping[JobKey, GPUJobRecord] = self.workloads.gpujobs
        self.namespaces = NamespaceStore()
        self.ledger = Ledger()
        self.projects = ProjectStore()
        self.classes = ClassStore()
        self.nodes = NodeStore(self.ledger, self.pods.known, self._node_refreshed, self._touch_pods)
        self.beginnings = Beginnings(now)
        self.device_classes = DeviceClassStore()
        self.waiting = PendingPods(self.beginnings, self.device_classes)
        self.changes = Changes(self.waiting)
        self.running_pods = RunningPodStore(Moves(on=consolidation), self.beginnings)
        self.bereft = BereftPods(
            self.jobs, self.gpujobs, self.running_pods.set_following, self.nodes.agents.note_news
        )
        self._placed_pods = PlacedPodStore(self.projects.owner)
        self.decisions = Decisions(
            self.ledger, self._placed_pods, self.waiting, self.changes, self.gpujobs
        )
        self._trials_left = trials_left
        self.lacks = lacks

    def snapshot(self) -> Cluster:
        """The cluster as it stands, assumed allocations included. Not a copy: read only."""
        cluster = self.ledger.cluster
        cluster.allocated_milli = self.projects.holdings(self.ledger.held_milli)
        cluster.catalogue = self.classes.catalogue
        self._placed_pods.begin()
        cluster.placed_pods = self._placed_pods
        cluster.names = self.groups.names
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
        job = self.workloads.get(key)
        if job is None or job.spec is None or job.deleting or job.spec.suspend or job.problem:
            return None
        project = self.projects.owner(job.namespace)
        if project is None or (key in self.decisions.nominated and is_gang(job.spec)):
            return None  # a gang is placed in one piece: it has its places, and its pods come
        if self.waiting.has_pods(key) and any(map(self.shrinks, self.workloads.jobs(key))):
            return None  # what got a place now might be deleted with what has none
        prospective = partial(self._prospective, job, project)
        return self.waiting.job(job, project, lambda: self.gang(job), prospective)

    def _member_changed(self, pod: PodRecord | None) -> bool:
        """Whether it is one of a GPUJob, or of a group."""
        key = self.workloads.key_of(pod) if pod is not None else None
        if key is not None:
            self.changes.members_changed(key)
        return key is not None

    def _touch_pods(self, pods: Iterable[PodUID]) -> None:
        known = [self.pods.known[uid] for uid in pods if uid in self.pods.known]
        keys = map(self.workloads.key_of, known)
        self.changes.touch_statuses(key for key in keys if key is not None)
        self.nodes.agents.note_news(pod.uid for pod in known)

    def count(self, job_uid: str) -> PodCount:
        """The pods of a Job, as they count for its controller."""
        return counted(self.pods.of_job(job_uid), self.decisions.assumed)

    def shrinks(self, own: JobRecord) -> bool:
        """Whether the controller of a Job may yet delete pods of it: none of them gets a place."""
        if own.owner not in self.gpujobs:
            return False  # pods that ask by themselves: no parallelism says how many there are
        asked, decided = self.decisions.widening.get(own.uid, 0), own.uid in self.decisions.narrowed
        known = max(self.pods.number_of(own.uid), own.active)
        if not (own.narrowed or decided) and known <= parallelism_of(own):
            return False  # without a look at each pod
        count = self.count(own.uid)
        return shrinks(own, count, asked) or (decided and count.unplaced > 0)

    def gang(self, job: GPUJobRecord) -> Gang | None:
        """The gang that a GPUJob is, as its pods stand; None when they start one by one."""
        jobs, pods = self.workloads.jobs(job.key), self.workloads.pods(job.key)
        return gang_of(
            job, jobs, pods, self.decisions.assumed.keys(), self.pods.leaving, self.ledger
        )

    def _is_over(self, job: GPUJobRecord) -> bool:
        """Whether it makes no more pods; a sweep that has ended may get more trials."""
        if not job.finished or job.status.get("phase") == Phase.FAILED:
            return job.finished
        return not self._trials_left(job)

    def _prospective(self, job: GPUJobRecord, project: ProjectName) -> list[ProspectivePod]:
        if job.templates is None or job.key in self.decisions.inadmissible or self._is_over(job):
            return []
        record = self.projects.records[project]
        return prospective_pods(
            job,
            self.workloads.jobs(job.key),
            self.workloads.pods(job.key),
            self.decisions.nominated.of(job.key),
            left=self._trials_left(job),
            most=partial(most_prospective, self.ledger.cluster, ceiling_milli(record.project)),
        )

    def _makes_room(self, old: PodRecord | None) -> bool:
        """Whether a pod that is no more had kept its GPUJob from having another one planned."""
        if old is None or old.stage is Stage.ENDED:
            return False
        key = self.workloads.key_of(old)
        return key is not None and self.waiting.is_open(key)

    def pod_changed(self, pod: Pod) -> PodRecord | None:
        """Take over a pod's news; None when it is older than what is known, or the pod is gone."""
        new = self.pods.read(pod)
        if new is None:
            return None
        old = self.pods.known.get(new.uid)
        self._join(new, pod)
        new = without_stranger(new, self.jobs.believed.get(new.job_uid))
        self._left(self.pods.upsert(new))
        if new.stage is Stage.ENDED or new.node:
            self.decisions.assumed.pop(new.uid, None)
        self.changes.replan(charge(self.ledger, new, pod) | self._seat(new, pod))
        self.running_pods.moves.see(new, pod)
        self._occupy(new)
        if new.stage is Stage.WAITING and new.uid not in self.decisions.assumed:
            self.changes.replan(self.waiting.put(new, pod, self.jobs.believed.get(new.job_uid)))
        else:
            self.changes.replan(self.waiting.drop(new.uid))
        self._member_changed(new)
        if new.names_us and self.workloads.key_of(new) is None:
            self.changes.ownerless(new.uid)
        self.changes.replan(new.stage is Stage.ENDED and self._makes_room(old))
        return new

    def pod_gone(self, uid: PodUID, *, for_good: bool = True) -> None:
        """Forget a pod that is gone; what is said of it later is old.

        Not ``for_good``: it has ended, and nothing of it need be known.
        """
        old = self.pods.drop(uid, gone=for_good)
        self.decisions.assumed.pop(uid, None)
        self.running_pods.forget(uid)
        self.bereft.forget(uid)
        self.beginnings.forget(uid)
        waited, held = self.waiting.drop(uid), self.ledger.release_pod(uid)
        self.changes.replan(waited | held | self._placed_pods.drop(uid))
        self._left(old)
        self.changes.replan(self._makes_room(old))

    def job_changed(self, job: Job) -> JobRecord | None:
        """Take over a Job's news; None when it is not a GPUJob's, or old."""
        new, uid = job_record(job), job.metadata.uid
        if new is not None and self.jobs.outdates(new):
            return None
        if self.bereft.job_seen(uid, ours=new is not None):
            self._occupy_by(uid)
        return None if new is None else self._judge_job(new)

    def job_gone(self, uid: str) -> JobKey | None:
        """Forget a Job, and say whose it was; its pods are forgotten when they are gone."""
        old = self.jobs.depart(uid)
        self.bereft.job_gone(uid)
        self._occupy_by(uid)
        if old is None:
            return None
        self.decisions.let_be(uid)
        if self.gpujobs.get(old.owner) is not None and not old.ended:
            self.jobs.deleted.setdefault(old.owner, []).append(old)
        self.decisions.give_back(old.owner)
        self.changes.members_changed(old.owner)
        # Its pods may run on as nobody's, so that no news of theirs bring the next plan.
        self.changes.replan(self.waiting.disown(uid) | self.waiting.is_open(old.owner))
        self.changes.touch(old.owner)
        return old.owner

    def gpujob_changed(self, job: GPUJobRecord) -> None:
        """Take over a GPUJob's news."""
        old = self.gpujobs.get(job.key)
        if old is not None and old.uid == job.uid:
            job.began = old.began
        elif job.began is None:
            job.began = self.beginnings.order(job.created_seconds)
        self.workloads.gpujobs[job.key] = job
        self.waiting.doubts.see(job, new=old is None)
        if old is None:
            said = str(job.status.get("message") or "")
            self.waiting.looked.read(job.key, (job.uid, job.generation), said)
        self.waiting.set_open(job.key, job.templates is not None and not self._is_over(job))
        if old is None or old.judged != job.judged:
            self.waiting.forget_job(job.key)
            self.decisions.give_back(job.key)
            self.changes.replan()
            self.changes.touch(job.key)
            for own in self.jobs.claims(job.key):
                self._judge_job(own)
                self._occupy_by(own.uid)

    def gpujob_gone(self, key: JobKey) -> None:
        """Forget a GPUJob."""
        self.jobs.forget(key)
        self.decisions.inadmissible.pop(key, None)
        self.waiting.set_open(key, False)
        self.decisions.give_back(key)
        if self.workloads.gpujobs.pop(key, None) is not None:
            self.changes.replan()
            for own in self.jobs.of(key):
                self._occupy_by(own.uid)

    def project_changed(self, project: ProjectRecord) -> None:
        """Take over a project's news; its namespaces' jobs may now be valid, or no longer."""
        self._projects_settled(self.projects.put(project))

    def project_gone(self, name: ProjectName) -> None:
        """Forget a project."""
        self._projects_settled(self.projects.drop(name))

    def class_changed(self, record: ClassRecord) -> tuple[JobKey, ...]:
        """Take over a GPUClass's news; the jobs that now mean something else."""
        return self._classes_settled() if self.classes.put(record) else ()

    def class_gone(self, name: str) -> tuple[JobKey, ...]:
        """Forget a GPUClass; the jobs that now mean something else."""
        return self._classes_settled() if self.classes.drop(name) else ()

    def device_class_changed(self, found: DeviceClass) -> tuple[JobKey, ...]:
        """Take over a DeviceClass's news; the GPUJobs that now have to be accepted otherwise."""
        return self._served_otherwise(self.device_classes.put(found))

    def device_class_gone(self, name: str) -> tuple[JobKey, ...]:
        """Forget a DeviceClass; the GPUJobs that now have to be accepted otherwise."""
        return self._served_otherwise(self.device_classes.drop(name))

    def pod_group_said(self, namespace: str, name: str) -> None:
        """A PodGroup says something else than before, or is no more."""
        key = self.groups.resize(namespace, name)
        if key is not None:
            self.jobs.enter(self.groups.own(key))
            self.waiting.forget_job(key)
            self.changes.touch(key)
            self.changes.replan()

    def _served_otherwise(self, resources: Set[str]) -> tuple[JobKey, ...]:
        if not resources:
            return ()
        for record, pod in self.waiting.served_otherwise():
            if record.share is not None:
                self.groups.set_problem(record.job_uid, record.uid, BEYOND_US, self._beyond_us(pod))
        self.changes.replan()
        found = []
        for job in self.gpujobs.values():
            if any(resources & asked(pod) for pod in (job.templates or {}).values()):
                self.accept(job, None)
                found.append(job.key)
        return tuple(found)

    def accept(self, job: GPUJobRecord, templates: Mapping[str, Pod] | None) -> None:
        """Plan pods of a GPUJob before they exist; ``templates``: by role, None = not any more."""
        job.templates = templates
        self.waiting.set_open(job.key, templates is not None and not self._is_over(job))
        self.changes.touch(job.key)
        self.changes.replan()

    def forget(self, uid: PodUID, pod: Pod | None) -> None:
        """Take back a decision whose write failed; ``pod`` as just read, None = gone."""
        if uid not in self.decisions.assumed:
            return
        self.decisions.take_back(uid)
        self.pods.leaving.discard(uid)
        self.changes.replan()
        if pod is None:
            self.pod_gone(uid)
            return
        known, version = self.pods.known.get(uid), int(pod.metadata.resource_version or 0)
        if known is None or known.version > version:
            return
        if known.version == version and known.stage is Stage.WAITING:
            # It may be slim, so that nothing else is to be read off it: the record stands.
            self.changes.replan(self.waiting.put(known, pod, self.jobs.believed.get(known.job_uid)))
            self._member_changed(known)
        else:
            self.pod_changed(pod)

    def set_leaving(self, uid: PodUID, leaving: bool) -> None:
        """Note that a pod's eviction was decided, or given up: what it holds will be free."""
        (self.pods.leaving.add if leaving else self.pods.leaving.discard)(uid)
        self.running_pods.set_evicting(uid, leaving)
        self.changes.replan(self._member_changed(self.pods.known.get(uid)))

    def spare(self, uid: PodUID, spared: bool) -> None:
        """Choose this pod for no eviction, until further notice."""
        self.running_pods.set_spared(uid, spared)
        self.changes.replan(spared)

    def give_up_on(self, uid: PodUID) -> None:
        """A pod that leaves, or was to go with its owner, does not: its room is not counted on."""
        if self.bereft.leave(uid):
            self._occupy(self.pods.known[uid])
        else:
            self.running_pods.give_up_on(uid)
        self.changes.replan()

    def _judge_job(self, new: JobRecord) -> JobRecord | None:
        """Believe a Job, or not (None)."""
        old = self.jobs.believed.get(new.uid)
        for lost in self.jobs.judge(new, self.gpujobs.get(new.owner)):
            self.changes.replan(1 + self.waiting.disown(lost.uid))
            self._occupy_by(lost.uid)
        self.changes.members_changed(new.owner)
        if new.uid not in self.jobs.believed:
            return None
        if old is None:
            for pod in self.pods.part_strangers(new):
                self._member_changed(pod)
                self.changes.replan(self.waiting.drop(pod.uid))
        if self.waiting.is_open(new.owner):
            self.changes.replan(old is None or old.makes != new.makes)
        if self.waiting.has_pods(new.owner):
            self.changes.replan(old is None or old.shrinking != new.shrinking)
        self.changes.replan(self.waiting.adopt(new))
        if old is None or old.moves != new.moves:
            self._occupy_by(new.uid)
            self.changes.replan(bool(new.moves or old is not None))  # who may move now is another
        return new

    def _join(self, new: PodRecord, pod: Pod) -> None:
        """Put a pod that asks by itself into its group."""
        if new.share is None:
            return
        old = self.pods.known.get(new.uid)
        if old is None or old.stage is not new.stage:
            self.projects.touch(new.namespace)  # it counts those that run
        if new.warnings or self.nodes.agents.reports(new):
            self.nodes.agents.note_news([new.uid])
        problem, request = new.share.problem, new.share.request
        if request is not None and new.stage is Stage.WAITING:
            problem = self.lacks(pod, request) or self._beyond_us(pod) or self.groups.unmounted(pod)
        own, changed = self.groups.put(pod, new.share, problem)
        if old is None and new.stage is Stage.WAITING and new.unscheduled is not None:
            about = About(own.uid, 0, alike=self.groups.records[own.owner].alike)
            self.waiting.doubts.read(own.owner, about, new.unscheduled.message)
        if changed:
            group = self.groups.records.get(own.owner)
            if group is not None and group.began is None:
                group.began = self.beginnings.order(group.created_seconds)
            self.jobs.enter(own)
            self.waiting.forget_job(own.owner)
            self.changes.replan()

    def _beyond_us(self, pod: Pod) -> str:
        return beyond_us(pod, self.device_classes, self.nodes.advertised)

    def _left(self, old: PodRecord | None) -> None:
        """A pod is gone, or is another Job's now."""
        self._member_changed(old)
        if old is None or old.share is None:
            return
        group = self.groups.drop(old.job_uid, old.uid)
        if group is not None:
            self.jobs.leave(group.uid)

    def _node_refreshed(self, name: str) -> None:
        """Its devices may have other names now, and what is held on them with them."""
        self.changes.replan()
        self.waiting.all_changed()
        for key in self.decisions.nominated.on(name):
            self.decisions.give_back(key)
        for held in tuple(self.running_pods.on(name)):
            self._occupy(self.pods.known[held.uid])

    def _seat(self, new: PodRecord, pod: Pod) -> bool:
        """Count a pod for rules about others; True when somebody has any about it."""
        if new.stage is not Stage.ENDED and new.node:
            affinity = pod_affinity_of(pod)
            return self._placed_pods.put(new.uid, affinity, new.node, ending=new.deleting)
        return new.uid not in self.decisions.assumed and self._placed_pods.drop(new.uid)

    def _occupy(self, pod: PodRecord) -> None:
        """Tell the planner what a pod holds, or that it holds nothing."""
        held = self.ledger.held(pod.uid)
        job, project = self.workloads.of(pod), self.projects.owner(pod.namespace)
        holds = held is not None and bool(held.devices) and pod.uid not in self.decisions.assumed
        self.bereft.see(pod, holds=holds, owned=job is not None)
        if held is None or not holds:
            self.running_pods.drop(pod.uid)
        elif job is None or pod.share is not None:
            self.running_pods.occupy(pod, held, job, project)
        else:
            self.running_pods.hold(pod, held, self.jobs.believed[pod.job_uid], job, project)

    def _occupy_by(self, job_uid: str) -> None:
        for pod in self.pods.of_job(job_uid):
            self._occupy(pod)

    def _classes_settled(self) -> tuple[JobKey, ...]:
        self.changes.replan()
        jobs = self.gpujobs.values()
        changed = tuple(job.key for job in jobs if resolve_models(job, self.classes))
        for key in changed:
            self.waiting.forget_job(key)
            self.decisions.give_back(key)
            for own in self.workloads.jobs(key):
                self._occupy_by(own.uid)
        self.changes.touch_statuses(changed)
        return changed

    def _projects_settled(self, changed: bool) -> None:
        if not changed:
            return
        self.changes.replan()
        self.waiting.all_changed()
        for pod in self.pods.known.values():
            if pod.allocation is not None:
                self._occupy(pod)
        self.changes.touch_statuses(self.gpujobs)
