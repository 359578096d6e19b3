"""Everything the operator knows, kept up to date by watch events and by its own decisions.

Between a decision and its echo in the watch an assumed allocation counts: ``assume`` charges it,
the pod's next event with a node confirms it, ``forget`` takes it back. An event older than what is
known of a pod is ignored. ``version`` grows with every change that could alter a plan; ``touched``
collects the jobs whose status may have changed. Single-threaded: called from one event loop.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Set
from operator import attrgetter

from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Assignment
from gpu_scheduler.core.model.request import Gang, JobKey, PodUID, Project, ProjectName, WaitingJob
from gpu_scheduler.kube.objects import Job, Node, Pod
from gpu_scheduler.state import devices
from gpu_scheduler.state.agents import Reports
from gpu_scheduler.state.charging import charge
from gpu_scheduler.state.classes import ClassBook, ClassRecord, resolve_models
from gpu_scheduler.state.gangs import gang_of
from gpu_scheduler.state.jobs import GPUJobRecord, JobRecord, job_record
from gpu_scheduler.state.ledger import Charge, Ledger
from gpu_scheduler.state.moves import Moves
from gpu_scheduler.state.neighbours import NeighbourBook
from gpu_scheduler.state.node_book import NodeBook
from gpu_scheduler.state.own_jobs import JobBook
from gpu_scheduler.state.peers import peers_of
from gpu_scheduler.state.pod_book import PodBook
from gpu_scheduler.state.pods import PodRecord, Stage, without_stranger
from gpu_scheduler.state.projects import ProjectBook, ProjectRecord
from gpu_scheduler.state.running_pods import RunningPodBook, running_pod
from gpu_scheduler.state.waiting import PendingPods

_judged = attrgetter("uid", "generation", "deleting", "problem")  # what a plan depends on


class ClusterState:
    """Pods, nodes, jobs and projects, and what follows from them."""

    def __init__(self, holders_in: str = "", *, consolidation: bool = False) -> None:
        """Start knowing nothing; ``holders_in``: see ``state.pods.record``."""
        self._pods = PodBook(holders_in)
        self._gpujobs: dict[JobKey, GPUJobRecord] = {}
        self._assumed: dict[PodUID, Assignment] = {}
        self._leaving: set[PodUID] = set()
        self._terminating: set[str] = set()
        self._touched: set[JobKey] = set()
        self._version = 0
        self.changed = asyncio.Event()  # wakes who plans, who clears it
        # For others to read. What they write goes through the methods below.
        self.pods: Mapping[PodUID, PodRecord] = self._pods.known
        self.placeholders: Mapping[PodUID, PodRecord] = self._pods.placeholders
        self.gpujobs: Mapping[JobKey, GPUJobRecord] = self._gpujobs
        self.assumed: Mapping[PodUID, Assignment] = self._assumed
        self.leaving: Set[PodUID] = self._leaving  # their eviction was decided here
        self.terminating: Set[str] = self._terminating  # namespaces: nothing can be made there
        self.touched: Set[JobKey] = self._touched
        self.job_book = JobBook()
        self.jobs: Mapping[str, JobRecord] = self.job_book.believed  # by uid
        self.ledger = Ledger()
        self.projects = ProjectBook()
        self.classes = ClassBook()
        self.nodes = NodeBook(self.ledger)
        self.agents = self.nodes.agents
        self.waiting = PendingPods()
        self.running_pods = RunningPodBook(Moves(on=consolidation))
        self._neighbours = NeighbourBook(self.projects.owner)

    @property
    def version(self) -> int:
        """Grows with every change that could alter a plan."""
        return self._version

    # --- what the planner reads ---

    def snapshot(self) -> Cluster:
        """The cluster as it stands, assumed allocations included. Not a copy: read only."""
        cluster = self.ledger.cluster
        cluster.allocated_milli = self.projects.holdings(self.ledger.held_milli)
        cluster.catalogue = self.classes.catalogue
        self._neighbours.begin()
        cluster.neighbours = self._neighbours
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
        job = self._gpujobs.get(key)
        if job is None or job.spec is None or job.deleting or job.spec.suspend or job.problem:
            return None
        project = self.projects.owner(job.namespace)
        return self.waiting.job(job, project, lambda: self.gang(job)) if project else None

    # --- watch events ---

    def pod_changed(self, pod: Pod) -> PodRecord | None:
        """Take over a pod's news; None when it is older than what is known, or the pod is gone."""
        new = self._pods.read(pod)
        if new is None:
            return None
        new = without_stranger(new, self.jobs.get(new.job_uid))
        self._member_changed(self._pods.upsert(new))
        if new.stage is Stage.ENDED or new.node:
            self._assumed.pop(new.uid, None)
        self.replan(charge(self.ledger, new, pod) | self._seat(new, pod))
        self.running_pods.moves.see(new, pod)
        self._occupy(new)
        if new.stage is Stage.WAITING and new.uid not in self._assumed:
            self.replan(self.waiting.put(new, pod, self.jobs.get(new.job_uid)))
        else:
            self.replan(self.waiting.drop(new.uid))
        self._member_changed(new)
        return new

    def pod_gone(self, uid: PodUID) -> None:
        """Forget a pod that is gone; what is said of it later is old."""
        self._drop_pod(uid, gone=True)

    def pod_dismissed(self, uid: PodUID) -> None:
        """Forget a pod that has ended and of which nothing need be known."""
        self._drop_pod(uid, gone=False)

    def node_changed(self, node: Node) -> None:
        """Take over a node's news."""
        self._node_refreshed(node.metadata.name, self.nodes.put(node))

    def node_gone(self, name: str) -> None:
        """Forget a node."""
        self._node_refreshed(name, self.nodes.drop(name))

    def gpunode_changed(
        self, name: str, found: tuple[devices.Device, ...], reports: Reports | None = None
    ) -> None:
        """Take over what the agent reports of a node: devices, and containers by pod."""
        changed, pods = self.agents.put(name, found, reports or {})
        if changed:
            self._node_refreshed(name, self.nodes.refresh(name))
            pods |= {pod.uid for pod in self.pods.values() if pod.node == name}
        self._touch_pods(pods)

    def gpunode_gone(self, name: str) -> None:
        """Fall back to the node's labels; what is held by UUID is on none of their devices."""
        pods = self.agents.drop(name)
        self._node_refreshed(name, self.nodes.refresh(name))
        self._touch_pods(pods)

    def agent_silent(self, node: str, why: str) -> None:
        """Note that a node's agent is not heard of (``why``), or that it is again (empty)."""
        if self.agents.set_silent(node, why):
            self._node_refreshed(node, self.nodes.refresh(node))
            self._touch_pods(pod.uid for pod in self.pods.values() if pod.node == node)

    def job_changed(self, job: Job) -> JobRecord | None:
        """Take over a Job's news; None when it is not a GPUJob's, or old."""
        new = job_record(job)
        return None if new is None or self.job_book.outdates(new) else self._judge_job(new)

    def job_gone(self, uid: str) -> JobKey | None:
        """Forget a Job, and say whose it was; its pods are forgotten when they are gone."""
        old = self.job_book.depart(uid)
        if old is None:
            return None
        self.replan(self.waiting.disown(uid))
        self._touched.add(old.owner)
        return old.owner

    def gpujob_changed(self, job: GPUJobRecord) -> None:
        """Take over a GPUJob's news."""
        old = self._gpujobs.get(job.key)
        self._gpujobs[job.key] = job
        if old is None or _judged(old) != _judged(job):
            self.waiting.forget_job(job.key)
            self.replan()
            self._touched.add(job.key)
            for own in self.job_book.claims(job.key):
                self._judge_job(own)
                self._occupy_by(own.uid)

    def gpujob_gone(self, key: JobKey) -> None:
        """Forget a GPUJob."""
        self.job_book.forget(key)
        if self._gpujobs.pop(key, None) is not None:
            self.replan()

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

    # --- our own decisions ---

    def assume(self, place: Assignment) -> None:
        """Charge a decision before its write; the pod no longer waits."""
        pod = self.pods[place.pod]
        need = self.waiting.resources(place.pod)
        self._assumed[place.pod] = place
        held = Charge(place.node, pod.namespace, *need, place.grants, pod.name)
        self.ledger.charge_pod(place.pod, held)
        peers = self.waiting.peers(place.pod)
        self.replan(self._neighbours.put(place.pod, peers, place.node, ending=False))
        self.waiting.drop(place.pod)
        self._members_changed(place.job)

    def forget(self, uid: PodUID, pod: Pod | None) -> None:
        """Take back a decision whose write failed; ``pod`` as just read, None = gone."""
        if self._assumed.pop(uid, None) is None:
            return
        self._leaving.discard(uid)
        self.replan()
        if pod is None:
            self.pod_gone(uid)
            return
        self.ledger.release_pod(uid)
        self._neighbours.drop(uid)
        known = self.pods.get(uid)
        if known is not None and known.version <= int(pod.metadata.resource_version or 0):
            self.pod_changed(pod)

    def set_leaving(self, uid: PodUID, leaving: bool) -> None:
        """Note that a pod's eviction was decided, or given up: what it holds will be free."""
        (self._leaving.add if leaving else self._leaving.discard)(uid)
        self.running_pods.set_evicting(uid, leaving)
        self.replan(self._member_changed(self.pods.get(uid)))

    def touch(self, key: JobKey) -> None:
        """A job's status may be another one, for a reason that is not kept here."""
        self._touched.add(key)

    def take_touched(self) -> Set[JobKey]:
        """The jobs whose status may be another one, each once."""
        taken = frozenset(self._touched)
        self._touched.clear()
        return taken

    def replan(self, changes: int = 1, *, wake: bool = True) -> None:
        """The next plan may be another one; ``wake``: False while a plan is under way."""
        self._version += changes
        if changes and wake:
            self.changed.set()

    def spare(self, uid: PodUID, spared: bool) -> None:
        """Choose this pod for no eviction, until further notice."""
        self.running_pods.set_spared(uid, spared)
        self.replan(spared)

    def give_up_on(self, uid: PodUID) -> None:
        """A pod that leaves does not go: what it holds is not counted on any more."""
        self.running_pods.give_up_on(uid)
        self.replan()

    def namespace_changed(self, name: str, *, terminating: bool) -> bool:
        """Note whether nothing can be made in a namespace any more; True when that is news."""
        news = terminating != (name in self._terminating)
        self._terminating ^= {name} if news else set()
        return news

    def job_of(self, pod: PodRecord) -> JobKey | None:
        """The GPUJob that a pod belongs to, as far as known."""
        job = self.jobs.get(pod.job_uid)
        return job.owner if job else None

    def gpujob_of(self, pod: PodRecord) -> GPUJobRecord | None:
        """The same as its record; None where that is not known."""
        key = self.job_of(pod)
        return self._gpujobs.get(key) if key is not None else None

    def records(self, key: JobKey) -> Iterator[PodRecord]:
        """The pods of a GPUJob."""
        for job in self.jobs_of(key):
            yield from self._pods.of_job(job.uid)

    def gang(self, job: GPUJobRecord) -> Gang | None:
        """The gang that a GPUJob is, as its pods stand; None when they start one by one."""
        jobs, pods = self.jobs_of(job.key), self.records(job.key)
        return gang_of(job.spec, jobs, pods, self._assumed.keys(), self._leaving, self.ledger)

    def jobs_of(self, key: JobKey) -> Iterable[JobRecord]:
        """The Jobs of a GPUJob; not those of an earlier one of the same name."""
        owner = self._gpujobs.get(key)
        known = self.job_book.of(key)
        return [job for job in known if owner is None or job.owner_uid == owner.uid]

    def _judge_job(self, new: JobRecord) -> JobRecord | None:
        """Believe a Job, or not (None)."""
        old = self.jobs.get(new.uid)
        for lost in self.job_book.judge(new, self._gpujobs.get(new.owner)):
            self.replan(1 + self.waiting.disown(lost.uid))
            self._occupy_by(lost.uid)
        self._members_changed(new.owner)
        if new.uid not in self.jobs:
            return None
        if old is None:
            for pod in self._pods.part_strangers(new):
                self._member_changed(pod)
                self.replan(self.waiting.drop(pod.uid))
        self.replan(self.waiting.adopt(new))
        if old is None or old.moves != new.moves:
            self._occupy_by(new.uid)
            self.replan(bool(new.moves or old is not None))  # who may move now is another
        return new

    def _drop_pod(self, uid: PodUID, *, gone: bool) -> None:
        old = self._pods.drop(uid, gone=gone)
        self._assumed.pop(uid, None)
        self._leaving.discard(uid)
        self.running_pods.forget(uid)
        waited, held = self.waiting.drop(uid), self.ledger.release_pod(uid)
        self.replan(waited | held | self._neighbours.drop(uid))
        self._member_changed(old)

    def _member_changed(self, pod: PodRecord | None) -> bool:
        """Whether it is one of a GPUJob."""
        key = self.job_of(pod) if pod is not None else None
        if key is not None:
            self._members_changed(key)
        return key is not None

    def _members_changed(self, key: JobKey) -> None:
        self.waiting.members_changed(key)
        self._touched.add(key)

    def _touch_pods(self, pods: Iterable[PodUID]) -> None:
        known = (self.pods[uid] for uid in pods if uid in self.pods)
        self._touched.update(key for key in map(self.job_of, known) if key is not None)

    def _node_refreshed(self, name: str, changed: bool) -> None:
        """Its devices may have other names now, and what is held on them with them."""
        if changed:
            self.replan()
            for held in tuple(self.running_pods.on(name)):
                self._occupy(self.pods[held.uid])

    def _seat(self, new: PodRecord, pod: Pod) -> bool:
        """Count a pod for rules about others; True when somebody has any about it."""
        if new.stage is not Stage.ENDED and new.node:
            peers = peers_of(pod)
            return self._neighbours.put(new.uid, peers, new.node, ending=new.deleting)
        return new.uid not in self._assumed and self._neighbours.drop(new.uid)

    def _occupy(self, pod: PodRecord) -> None:
        """Tell the planner what a pod holds, or that it holds nothing."""
        held = self.ledger.held(pod.uid)
        job, project = self.gpujob_of(pod), self.projects.owner(pod.namespace)
        if held is None or not held.grants or pod.uid in self._assumed:
            self.running_pods.drop(pod.uid)
        elif job is None:
            self.running_pods.put(running_pod(pod, held, None, project))
        else:
            self.running_pods.hold(pod, held, self.jobs[pod.job_uid], job, project)

    def _occupy_by(self, job_uid: str) -> None:
        for pod in self._pods.of_job(job_uid):
            self._occupy(pod)

    def _classes_settled(self) -> tuple[JobKey, ...]:
        self.replan()
        jobs = self._gpujobs.values()
        changed = tuple(job.key for job in jobs if resolve_models(job, self.classes))
        for key in changed:
            self.waiting.forget_job(key)
            for own in self.jobs_of(key):
                self._occupy_by(own.uid)
        self._touched.update(changed)
        return changed

    def _projects_settled(self, changed: bool) -> None:
        if not changed:
            return
        self.replan()
        for pod in self.pods.values():
            if pod.allocation is not None:
                self._occupy(pod)
        self._touched.update(self._gpujobs)
