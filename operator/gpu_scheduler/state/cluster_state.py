"""Everything the operator knows, kept up to date by watch events and by its own decisions.

Between a decision and its echo in the watch an assumed allocation counts: ``assume`` charges it,
the pod's next event with a node confirms it, ``forget`` takes it back. An event older than what is
known of a pod is ignored. ``version`` grows with every change that could alter a plan; ``touched``
collects the jobs whose status may have changed. Single-threaded: called from one event loop.
"""

from collections.abc import Iterable, Iterator

from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Place
from gpu_scheduler.core.model.request import Gang, JobKey, PodUID, Project, ProjectName, WaitingJob
from gpu_scheduler.kube.objects import Job, Node, Pod
from gpu_scheduler.state import devices
from gpu_scheduler.state.agents import Reports
from gpu_scheduler.state.charging import charge
from gpu_scheduler.state.classes import ClassBook, ClassRecord, resolve_models
from gpu_scheduler.state.departed import Departed
from gpu_scheduler.state.gangs import gang_of
from gpu_scheduler.state.jobs import GPUJobRecord, JobRecord, job_record
from gpu_scheduler.state.ledger import Charge, Ledger
from gpu_scheduler.state.moves import Moves
from gpu_scheduler.state.neighbours import NeighbourBook
from gpu_scheduler.state.node_book import NodeBook
from gpu_scheduler.state.own_jobs import JobBook
from gpu_scheduler.state.peers import peers_of
from gpu_scheduler.state.pods import PodRecord, Stage, record, without_stranger
from gpu_scheduler.state.projects import ProjectBook, ProjectRecord
from gpu_scheduler.state.running_pods import RunningPodBook, running_pod
from gpu_scheduler.state.waiting import PendingPods


class ClusterState:
    """Pods, nodes, jobs and projects, and what follows from them."""

    def __init__(self, holders_in: str = "", *, consolidation: bool = False) -> None:
        """Start knowing nothing; ``holders_in``: see ``state.pods.record``."""
        self._holders_in = holders_in
        self.holders: dict[PodUID, PodRecord] = {}
        self.ledger = Ledger()
        self.projects = ProjectBook()
        self.classes = ClassBook()
        self.gpujobs: dict[JobKey, GPUJobRecord] = {}
        self.job_book = JobBook()
        self.jobs = self.job_book.believed  # by uid
        self._departed_pods = Departed()
        self.pods: dict[PodUID, PodRecord] = {}
        self.pods_of_job: dict[str, dict[PodUID, None]] = {}
        self.assumed: dict[PodUID, Place] = {}
        self.leaving: set[PodUID] = set()  # their eviction was decided here
        self.waiting = PendingPods()
        self.neighbours = NeighbourBook(self.projects.owner)
        self.running_pods = RunningPodBook(Moves(on=consolidation))
        self.terminating: set[str] = set()  # namespaces in which nothing can be made any more
        self.version = 0
        self.touched: set[JobKey] = set()
        self.nodes = NodeBook(self.ledger)
        self.agents = self.nodes.agents

    # --- what the planner reads ---

    def snapshot(self) -> Cluster:
        """The cluster as it stands, assumed allocations included. Not a copy: read only."""
        cluster = self.ledger.cluster
        cluster.allocated_milli = self.projects.holdings(self.ledger.held_milli)
        cluster.catalogue = self.classes.catalogue
        self.neighbours.begin()
        cluster.neighbours = self.neighbours
        by_model: dict[tuple[ProjectName, str], int] = {}
        for (namespace, product), milli in self.ledger.held_by_model.items():
            owner = self.projects.owner(namespace)
            if owner is not None and milli:
                by_model[owner, product] = by_model.get((owner, product), 0) + milli
        cluster.held_by_model = by_model
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
        job = self.gpujobs.get(key)
        if job is None or job.spec is None or job.deleting or job.spec.suspend or job.problem:
            return None
        project = self.projects.owner(job.namespace)
        return (
            self.waiting.job(job, project, lambda: self.gang(job)) if project is not None else None
        )

    # --- watch events ---

    def pod_changed(self, pod: Pod) -> PodRecord | None:
        """Take over a pod's news; None when it is older than what is known, or the pod is gone."""
        new = record(pod, self._holders_in)
        if self._departed_pods.outdates(new.uid, new.version):
            return None
        new = without_stranger(new, self.jobs.get(new.job_uid))
        old = self.pods.get(new.uid)
        if old is not None and old.version > new.version:
            return None
        if old is not None and old.job_uid != new.job_uid:
            self._leave_job(old)
        self.pods[new.uid] = new
        if new.holds:
            self.holders[new.uid] = new
        if new.job_uid:
            self.pods_of_job.setdefault(new.job_uid, {})[new.uid] = None
        if new.stage is Stage.ENDED or new.node:
            self.assumed.pop(new.uid, None)
        self.version += charge(self.ledger, new, pod) | self._seat(new, pod)
        self.running_pods.moves.see(new, pod)
        self._occupy(new)
        key = self.job_of(new)
        if new.stage is Stage.WAITING and new.uid not in self.assumed:
            if self.waiting.put(new, pod, self.jobs.get(new.job_uid)):
                self.version += 1
        elif self.waiting.drop(new.uid):
            self.version += 1
        if key is not None:
            self._member_changed(key)
        return new

    def pod_gone(self, uid: PodUID) -> None:
        """Forget a pod that is gone; what is said of it later is old."""
        self._departed_pods.note(uid)
        self.pod_dismissed(uid)

    def pod_dismissed(self, uid: PodUID) -> None:
        """Forget a pod that has ended and of which nothing need be known."""
        old = self.pods.pop(uid, None)
        self.holders.pop(uid, None)
        self.assumed.pop(uid, None)
        self.leaving.discard(uid)
        self.running_pods.forget(uid)
        if self.waiting.drop(uid) | self.ledger.release_pod(uid) | self.neighbours.drop(uid):
            self.version += 1
        if old is not None:
            self._leave_job(old)

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
        self._touch(pods)

    def gpunode_gone(self, name: str) -> None:
        """Fall back to the node's labels; what is held by UUID is on none of their devices."""
        pods = self.agents.drop(name)
        self._node_refreshed(name, self.nodes.refresh(name))
        self._touch(pods)

    def agent_silent(self, node: str, why: str) -> None:
        """Note that a node's agent is not heard of (``why``), or that it is again (empty)."""
        if self.agents.set_silent(node, why):
            self._node_refreshed(node, self.nodes.refresh(node))
            self._touch(pod.uid for pod in self.pods.values() if pod.node == node)

    def job_changed(self, job: Job) -> JobRecord | None:
        """Take over a Job's news; None when it is not a GPUJob's, or old."""
        new = job_record(job)
        return None if new is None or self.job_book.outdates(new) else self._judge_job(new)

    def job_gone(self, uid: str) -> JobKey | None:
        """Forget a Job, and say whose it was; its pods are forgotten when they are gone."""
        old = self.job_book.depart(uid)
        if old is None:
            return None
        self.version += self.waiting.disown(uid)
        self.touched.add(old.owner)
        return old.owner

    def gpujob_changed(self, job: GPUJobRecord) -> None:
        """Take over a GPUJob's news."""
        old = self.gpujobs.get(job.key)
        self.gpujobs[job.key] = job
        if old is None or (old.uid, old.generation, old.deleting, old.problem) != (
            job.uid,
            job.generation,
            job.deleting,
            job.problem,
        ):
            self.waiting.forget_job(job.key)
            self.version += 1
            self.touched.add(job.key)
            for own in self.job_book.claims(job.key):
                self._judge_job(own)
                self._occupy_by(own.uid)

    def gpujob_gone(self, key: JobKey) -> None:
        """Forget a GPUJob."""
        self.job_book.forget(key)
        if self.gpujobs.pop(key, None) is not None:
            self.version += 1

    def project_changed(self, project: ProjectRecord) -> None:
        """Take over a project's news; its namespaces' jobs may now be valid, or no longer."""
        if self.projects.put(project):
            self._projects_settled()

    def project_gone(self, name: ProjectName) -> None:
        """Forget a project."""
        if self.projects.drop(name):
            self._projects_settled()

    def class_changed(self, record: ClassRecord) -> tuple[JobKey, ...]:
        """Take over a GPUClass's news; the jobs that now mean something else."""
        return self._classes_settled() if self.classes.put(record) else ()

    def class_gone(self, name: str) -> tuple[JobKey, ...]:
        """Forget a GPUClass; the jobs that now mean something else."""
        return self._classes_settled() if self.classes.drop(name) else ()

    # --- our own decisions ---

    def assume(self, place: Place) -> None:
        """Charge a decision before its write; the pod no longer waits."""
        pod = self.pods[place.pod]
        need = self.waiting.resources(place.pod)
        self.assumed[place.pod] = place
        held = Charge(place.node, pod.namespace, *need, place.grants, pod.name)
        self.ledger.charge_pod(place.pod, held)
        peers = self.waiting.peers(place.pod)
        self.version += self.neighbours.put(place.pod, peers, place.node, ending=False)
        self.waiting.drop(place.pod)
        self._member_changed(place.job)

    def forget(self, uid: PodUID, pod: Pod | None) -> None:
        """Take back a decision whose write failed; ``pod`` as just read, None = gone."""
        if self.assumed.pop(uid, None) is None:
            return
        self.leaving.discard(uid)
        self.version += 1
        if pod is None:
            self.pod_gone(uid)
            return
        self.ledger.release_pod(uid)
        self.neighbours.drop(uid)
        known = self.pods.get(uid)
        if known is not None and known.version <= int(pod.metadata.resource_version or 0):
            self.pod_changed(pod)

    def set_leaving(self, uid: PodUID, leaving: bool) -> None:
        """Note that a pod's eviction was decided, or given up: what it holds will be free."""
        if leaving:
            self.leaving.add(uid)
        else:
            self.leaving.discard(uid)
        self.running_pods.set_evicting(uid, leaving)
        pod = self.pods.get(uid)
        key = self.job_of(pod) if pod is not None else None
        if key is not None:
            self._member_changed(key)
            self.version += 1

    # --- look-ups ---

    def job_of(self, pod: PodRecord) -> JobKey | None:
        """The GPUJob that a pod belongs to, as far as known."""
        job = self.jobs.get(pod.job_uid)
        return job.owner if job else None

    def records(self, key: JobKey) -> Iterator[PodRecord]:
        """The pods of a GPUJob."""
        for job in self.jobs_of(key):
            for pod in self.pods_of_job.get(job.uid, ()):
                yield self.pods[pod]

    def gang(self, job: GPUJobRecord) -> Gang | None:
        """The gang that a GPUJob is, as its pods stand; None when they start one by one."""
        jobs, pods = self.jobs_of(job.key), self.records(job.key)
        return gang_of(job.spec, jobs, pods, self.assumed.keys(), self.leaving, self.ledger)

    def jobs_of(self, key: JobKey) -> Iterable[JobRecord]:
        """The Jobs of a GPUJob; not those of an earlier one of the same name."""
        owner = self.gpujobs.get(key)
        known = self.job_book.of(key)
        return [job for job in known if owner is None or job.owner_uid == owner.uid]

    # --- consequences ---

    def _judge_job(self, new: JobRecord) -> JobRecord | None:
        """Believe a Job, or not (None)."""
        old = self.jobs.get(new.uid)
        for lost in self.job_book.judge(new, self.gpujobs.get(new.owner)):
            self.version += 1 + self.waiting.disown(lost.uid)
            self._occupy_by(lost.uid)
        self._member_changed(new.owner)
        if new.uid not in self.jobs:
            return None
        if old is None:
            self._part_strangers(new)
        self.version += self.waiting.adopt(new)
        if old is None or old.moves != new.moves:
            self._occupy_by(new.uid)
            self.version += bool(new.moves or old is not None)  # who may move now is another
        return new

    def _leave_job(self, pod: PodRecord) -> None:
        siblings = self.pods_of_job.get(pod.job_uid, {})
        siblings.pop(pod.uid, None)
        if not siblings:
            self.pods_of_job.pop(pod.job_uid, None)
        key = self.job_of(pod)
        if key is not None:
            self._member_changed(key)

    def _part_strangers(self, job: JobRecord) -> None:
        """Pods seen before the Job that they call theirs, and are of another namespace."""
        for uid in tuple(self.pods_of_job.get(job.uid, ())):
            pod = self.pods[uid]
            self.pods[uid] = without_stranger(pod, job)
            if self.pods[uid] is not pod:
                self._leave_job(pod)
                self.version += self.waiting.drop(uid)

    def _member_changed(self, key: JobKey) -> None:
        self.waiting.members_changed(key)
        self.touched.add(key)

    def _touch(self, pods: Iterable[PodUID]) -> None:
        for uid in pods:
            pod = self.pods.get(uid)
            key = self.job_of(pod) if pod is not None else None
            if key is not None:
                self.touched.add(key)

    def _node_refreshed(self, name: str, changed: bool) -> None:
        """Its devices may have other names now, and what is held on them with them."""
        if changed:
            self.version += 1
            for held in tuple(self.running_pods.on(name)):
                self._occupy(self.pods[held.uid])

    def _seat(self, new: PodRecord, pod: Pod) -> bool:
        """Count a pod for rules about others; True when somebody has any about it."""
        if new.stage is not Stage.ENDED and new.node:
            peers = peers_of(pod)
            return self.neighbours.put(new.uid, peers, new.node, ending=new.deleting)
        return new.uid not in self.assumed and self.neighbours.drop(new.uid)

    def _occupy(self, pod: PodRecord) -> None:
        """Tell the planner what a pod holds, or that it holds nothing."""
        held = self.ledger.held(pod.uid)
        key = self.job_of(pod)
        job = self.gpujobs.get(key) if key is not None else None
        project = self.projects.owner(pod.namespace)
        if held is None or not held.grants or pod.uid in self.assumed:
            self.running_pods.drop(pod.uid)
        elif job is None:
            self.running_pods.put(running_pod(pod, held, None, project))
        else:
            self.running_pods.hold(pod, held, self.jobs[pod.job_uid], job, project)

    def _occupy_by(self, job_uid: str) -> None:
        for uid in self.pods_of_job.get(job_uid, ()):
            self._occupy(self.pods[uid])

    def _classes_settled(self) -> tuple[JobKey, ...]:
        self.version += 1
        changed = tuple(
            key for key, job in self.gpujobs.items() if resolve_models(job, self.classes)
        )
        for key in changed:
            self.waiting.forget_job(key)
            for own in self.jobs_of(key):
                self._occupy_by(own.uid)
        self.touched.update(changed)
        return changed

    def _projects_settled(self) -> None:
        self.version += 1
        for pod in self.pods.values():
            if pod.allocation is not None:
                self._occupy(pod)
        self.touched.update(self.gpujobs)
