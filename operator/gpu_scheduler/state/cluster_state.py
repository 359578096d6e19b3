"""Everything the operator knows, kept up to date by watch events and by its own decisions.

Between a decision and its echo in the watch an assumed allocation counts: ``decisions`` charges it,
the pod's next event with a node confirms it, ``forget`` takes it back. An event older than what is
known of a pod is ignored. Single-threaded: called from one event loop.
"""

from collections.abc import Mapping

from gpu_scheduler.core.model.request import JobKey, PodUID, ProjectName
from gpu_scheduler.kube.objects import Job, Node, Pod
from gpu_scheduler.state.affinity.pod_affinity import pod_affinity_of
from gpu_scheduler.state.cluster_view import ClusterView
from gpu_scheduler.state.jobs.doubts import About
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord, job_record
from gpu_scheduler.state.jobs.projects import ProjectRecord
from gpu_scheduler.state.nodes import devices
from gpu_scheduler.state.nodes.agents import Reports
from gpu_scheduler.state.nodes.classes import ClassRecord, resolve_models
from gpu_scheduler.state.nodes.ledger import charge
from gpu_scheduler.state.pods.pod import PodRecord, Stage, without_stranger


class ClusterState(ClusterView):
    """The view, and all that changes it."""

    # --- watch events ---

    def pod_changed(self, pod: Pod) -> PodRecord | None:
        """Take over a pod's news; None when it is older than what is known, or the pod is gone."""
        new = self._pods.read(pod)
        if new is None:
            return None
        old = self.pods.get(new.uid)
        self._join(new, pod)
        new = without_stranger(new, self.jobs.get(new.job_uid))
        self._left(self._pods.upsert(new))
        if new.stage is Stage.ENDED or new.node:
            self.decisions.assumed.pop(new.uid, None)
        self.changes.replan(charge(self.ledger, new, pod) | self._seat(new, pod))
        self.running_pods.moves.see(new, pod)
        self._occupy(new)
        if new.stage is Stage.WAITING and new.uid not in self.decisions.assumed:
            self.changes.replan(self.waiting.put(new, pod, self.jobs.get(new.job_uid)))
        else:
            self.changes.replan(self.waiting.drop(new.uid))
        self._member_changed(new)
        self.changes.replan(new.stage is Stage.ENDED and self._makes_room(old))
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
        self, name: str, found: tuple[devices.NodeDevice, ...], reports: Reports | None = None
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
        new, uid = job_record(job), job.metadata.uid
        if new is not None and self.job_store.outdates(new):
            return None
        if self.bereft.job_seen(uid, ours=new is not None):
            self._occupy_by(uid)
        return None if new is None else self._judge_job(new)

    def job_gone(self, uid: str) -> JobKey | None:
        """Forget a Job, and say whose it was; its pods are forgotten when they are gone."""
        old = self.job_store.depart(uid)
        self.bereft.job_gone(uid)
        self._occupy_by(uid)
        if old is None:
            return None
        self.decisions.let_be(uid)
        if self._gpujobs.get(old.owner) is not None and not old.ended:
            self.vanished.setdefault(old.owner, []).append(old)
        self.decisions.give_back(old.owner)
        self.changes.members_changed(old.owner)
        self.changes.replan(self.waiting.disown(uid))
        self.changes.touch(old.owner)
        return old.owner

    def gpujob_changed(self, job: GPUJobRecord) -> None:
        """Take over a GPUJob's news."""
        old = self._gpujobs.get(job.key)
        if old is not None and old.uid == job.uid:
            job.began = old.began
        elif job.began is None:
            job.began = self.beginnings.order(job.created_seconds)
        self._gpujobs[job.key] = job
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
            for own in self.job_store.claims(job.key):
                self._judge_job(own)
                self._occupy_by(own.uid)

    def gpujob_gone(self, key: JobKey) -> None:
        """Forget a GPUJob."""
        self.job_store.forget(key)
        self.decisions.withheld.pop(key, None)
        self.vanished.pop(key, None)
        self.waiting.set_open(key, False)
        self.decisions.give_back(key)
        if self._gpujobs.pop(key, None) is not None:
            self.changes.replan()
            for own in self.job_store.of(key):
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

    # --- our own decisions ---

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
        self._leaving.discard(uid)
        self.changes.replan()
        if pod is None:
            self.pod_gone(uid)
            return
        known, version = self.pods.get(uid), int(pod.metadata.resource_version or 0)
        if known is None or known.version > version:
            return
        if known.version == version and known.stage is Stage.WAITING:
            # It may be slim, so that nothing else is to be read off it: the record stands.
            self.changes.replan(self.waiting.put(known, pod, self.jobs.get(known.job_uid)))
            self._member_changed(known)
        else:
            self.pod_changed(pod)

    def set_leaving(self, uid: PodUID, leaving: bool) -> None:
        """Note that a pod's eviction was decided, or given up: what it holds will be free."""
        (self._leaving.add if leaving else self._leaving.discard)(uid)
        self.running_pods.set_evicting(uid, leaving)
        self.changes.replan(self._member_changed(self.pods.get(uid)))

    def spare(self, uid: PodUID, spared: bool) -> None:
        """Choose this pod for no eviction, until further notice."""
        self.running_pods.set_spared(uid, spared)
        self.changes.replan(spared)

    def give_up_on(self, uid: PodUID) -> None:
        """A pod that leaves, or was to go with its owner, does not: its room is not counted on."""
        if self.bereft.leave(uid):
            self._occupy(self.pods[uid])
        else:
            self.running_pods.give_up_on(uid)
        self.changes.replan()

    def namespace_changed(self, name: str, *, terminating: bool) -> bool:
        """Note whether nothing can be made in a namespace any more; True when that is news."""
        news = terminating != (name in self._terminating)
        self._terminating ^= {name} if news else set()
        return news

    def _judge_job(self, new: JobRecord) -> JobRecord | None:
        """Believe a Job, or not (None)."""
        old = self.jobs.get(new.uid)
        for lost in self.job_store.judge(new, self._gpujobs.get(new.owner)):
            self.changes.replan(1 + self.waiting.disown(lost.uid))
            self._occupy_by(lost.uid)
        self.changes.members_changed(new.owner)
        if new.uid not in self.jobs:
            return None
        if old is None:
            for pod in self._pods.part_strangers(new):
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
        old = self.pods.get(new.uid)
        if old is None or old.stage is not new.stage:
            self.projects.touch(new.namespace)  # it counts those that run
        if new.warnings or self.agents.reports(new):
            self.agents.note_news([new.uid])
        problem, request = new.share.problem, new.share.request
        if request is not None and new.stage is Stage.WAITING:
            problem = self.lacks(pod, request)
        own, changed = self._shares.put(pod, new.share, problem)
        if old is None and new.stage is Stage.WAITING and new.unscheduled is not None:
            about = About(own.uid, 0, alike=self.groups[own.owner].alike)
            self.waiting.doubts.read(own.owner, about, new.unscheduled.message)
        if changed:
            group = self.groups.get(own.owner)
            if group is not None and group.began is None:
                group.began = self.beginnings.order(group.created_seconds)
            self.job_store.enter(own)
            self.waiting.forget_job(own.owner)
            self.changes.replan()

    def _left(self, old: PodRecord | None) -> None:
        """A pod is gone, or is another Job's now."""
        self._member_changed(old)
        if old is None or old.share is None:
            return
        group = self._shares.drop(old.job_uid, old.uid)
        if group is not None:
            self.job_store.leave(group.uid)

    def _drop_pod(self, uid: PodUID, *, gone: bool) -> None:
        old = self._pods.drop(uid, gone=gone)
        self.decisions.assumed.pop(uid, None)
        self._leaving.discard(uid)
        self.running_pods.forget(uid)
        self.bereft.forget(uid)
        self.beginnings.forget(uid)
        waited, held = self.waiting.drop(uid), self.ledger.release_pod(uid)
        self.changes.replan(waited | held | self._placed_pods.drop(uid))
        self._left(old)
        self.changes.replan(self._makes_room(old))

    def _node_refreshed(self, name: str, changed: bool) -> None:
        """Its devices may have other names now, and what is held on them with them."""
        if changed:
            self.changes.replan()
            self.waiting.all_changed()
            for key in self.decisions.nominated.on(name):
                self.decisions.give_back(key)
            for held in tuple(self.running_pods.on(name)):
                self._occupy(self.pods[held.uid])

    def _seat(self, new: PodRecord, pod: Pod) -> bool:
        """Count a pod for rules about others; True when somebody has any about it."""
        if new.stage is not Stage.ENDED and new.node:
            affinity = pod_affinity_of(pod)
            return self._placed_pods.put(new.uid, affinity, new.node, ending=new.deleting)
        return new.uid not in self.decisions.assumed and self._placed_pods.drop(new.uid)

    def _occupy(self, pod: PodRecord) -> None:
        """Tell the planner what a pod holds, or that it holds nothing."""
        held = self.ledger.held(pod.uid)
        job, project = self.work_of(pod), self.projects.owner(pod.namespace)
        holds = held is not None and bool(held.grants) and pod.uid not in self.decisions.assumed
        self.bereft.see(pod, holds=holds, owned=job is not None)
        if held is None or not holds:
            self.running_pods.drop(pod.uid)
        elif job is None or pod.share is not None:
            self.running_pods.occupy(pod, held, job, project)
        else:
            self.running_pods.hold(pod, held, self.jobs[pod.job_uid], job, project)

    def _occupy_by(self, job_uid: str) -> None:
        for pod in self._pods.of_job(job_uid):
            self._occupy(pod)

    def _classes_settled(self) -> tuple[JobKey, ...]:
        self.changes.replan()
        jobs = self._gpujobs.values()
        changed = tuple(job.key for job in jobs if resolve_models(job, self.classes))
        for key in changed:
            self.waiting.forget_job(key)
            self.decisions.give_back(key)
            for own in self.jobs_of(key):
                self._occupy_by(own.uid)
        self.changes.touch_statuses(changed)
        return changed

    def _projects_settled(self, changed: bool) -> None:
        if not changed:
            return
        self.changes.replan()
        self.waiting.all_changed()
        for pod in self.pods.values():
            if pod.allocation is not None:
                self._occupy(pod)
        self.changes.touch_statuses(self._gpujobs)
