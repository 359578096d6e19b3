"""From custom resources as JSON to the records of the state.

Whatever is in the object, a record comes out: a spec that cannot be read becomes a record with a
``problem``, which the status tells the user.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from gpu_scheduler.api.gpuclass import GPUClassSpec, GPUClassStatus
from gpu_scheduler.api.gpujob import GPUJobStatus
from gpu_scheduler.api.gpuproject import GPUProjectSpec, GPUProjectStatus
from gpu_scheduler.api.unstructured import Body
from gpu_scheduler.api.validate import (
    class_problems,
    name_problems,
    project_problems,
    read,
    readable,
)
from gpu_scheduler.core.model.request import JobKey, Project, ProjectName
from gpu_scheduler.core.model.units import milli_from_gpu
from gpu_scheduler.core.model.wording import clip
from gpu_scheduler.jobs.marks import inherited
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.informers.bodies import MOST_FINALIZERS, SHORT_BYTES, said_of_size
from gpu_scheduler.runtime.informers.spec_room import SpecRoom
from gpu_scheduler.runtime.informers.specs import ReadSpec, Specs
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.departed import Departed
from gpu_scheduler.state.jobs.job import GPUJobRecord, job_key
from gpu_scheduler.state.jobs.projects import ProjectRecord
from gpu_scheduler.state.nodes import devices
from gpu_scheduler.state.nodes.agents import failed_isolation, reports_from_gpunode
from gpu_scheduler.state.nodes.classes import ClassRecord, ClassStore, class_record, resolve_models

GPUJOBS, GPUPROJECTS, GPUNODES = "gpujobs", "gpuprojects", "gpunodes"
GPUCLASSES = "gpuclasses"
_MOST_CHARS = 300  # of an exception, in a sentence
Name = tuple[str, str, str]  # kind, namespace, name
# Told of a GPUNode's name and uid, and of its devices before and after.
DevicesChanged = Callable[
    [str, str, tuple[devices.NodeDevice, ...], tuple[devices.NodeDevice, ...]], object
]


def gpujob_record(
    body: Body,
    classes: ClassStore | None = None,
    specs: Specs | None = None,
    room: SpecRoom | None = None,
) -> GPUJobRecord:
    """The record of a GPUJob as the API server shows it.

    ``classes``: what names in it mean; ``specs``: what was read before; ``room``: for what it says.
    """
    meta = body["metadata"]
    record = GPUJobRecord(
        key=job_key(meta["namespace"], meta["name"]),
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        generation=_generation(body),
        created=meta.get("creationTimestamp", ""),
        deleting=bool(meta.get("deletionTimestamp")),
        finalizers=_finalizers(meta),
        labels=_labels(meta),
        too_large=bool(said_of_size(body)),
        spec=None,
        status=(status := readable(GPUJobStatus, body.get("status"))),
        shown=status,
    )
    try:
        said = _said(body, specs or Specs())
        full = room.take(record.namespace, record.name, said) if room is not None else ""
        if full:
            record.problem = full
            record.unread = True
        else:
            _judge(record, said, classes or ClassStore())
    except Exception as error:  # a mistake of ours about one object must not stop all others
        unexpected("intake", record.key)
        record.said = record.spec = None
        why = clip(str(error), _MOST_CHARS)
        record.problem = f"spec: the operator cannot work with it ({type(error).__name__}: {why})"
    return record


def _said(body: Body, specs: Specs) -> ReadSpec:
    if problem := said_of_size(body):
        return ReadSpec(None, problem=problem)
    return specs.read(body.get("spec") or {})


def _finalizers(meta: Body) -> tuple[str, ...]:
    return tuple(meta.get("finalizers") or ())[:MOST_FINALIZERS]


def _labels(meta: Body) -> tuple[tuple[str, str], ...]:
    labels = meta.get("labels") or {}
    if sum(len(key) + len(value) for key, value in labels.items()) > SHORT_BYTES:
        return ()
    return tuple(sorted(inherited(labels).items()))


def _judge(record: GPUJobRecord, said: ReadSpec, classes: ClassStore) -> None:
    record.problem = said.problem
    if said.spec is None:
        return
    if found := name_problems(record.name, said.spec):
        record.problem = str(found[0])
        return
    record.said = said.spec
    record.min_compute = said.min_compute
    resolve_models(record, classes)


def project_record(body: Body) -> ProjectRecord:
    """The record of a GPUProject as the API server shows it.

    One that cannot be used keeps its namespaces, so that nobody else is charged for them.
    """
    meta, raw = body["metadata"], body.get("spec") or {}
    name = ProjectName(meta["name"])
    created, generation = meta.get("creationTimestamp", ""), _generation(body)
    spec = read(GPUProjectSpec, raw)
    found = spec if isinstance(spec, tuple) else project_problems(name, spec)
    if found or isinstance(spec, tuple):
        nothing = Project(name, 0, 0)
        return ProjectRecord(
            nothing, _namespaces(raw), created, generation, meta["uid"], str(found[0])
        )
    by_model = {m: milli_from_gpu(q) for m, q in (spec.quota_by_model or {}).items()}
    project = Project(
        name, spec.quota_milli, spec.limit_milli, spec.weight, by_model, spec.min_runtime_seconds
    )
    return ProjectRecord(
        project,
        tuple(spec.namespaces),
        created,
        generation,
        meta["uid"],
        over_cap_policy=spec.over_cap_policy or "",
        start_timeout_seconds=spec.start_timeout_seconds,
    )


def gpuclass_record(body: Body) -> ClassRecord:
    """The record of a GPUClass as the API server shows it."""
    meta = body["metadata"]
    created, generation = meta.get("creationTimestamp", ""), _generation(body)
    spec = read(GPUClassSpec, body.get("spec") or {})
    found = spec if isinstance(spec, tuple) else class_problems(spec)
    if found or isinstance(spec, tuple):
        return ClassRecord(meta["name"], created, generation, meta["uid"], problem=str(found[0]))
    return class_record(meta["name"], created, generation, meta["uid"], spec)


def _namespaces(raw: object) -> tuple[str, ...]:
    claimed = raw.get("namespaces") if isinstance(raw, Mapping) else None
    return tuple(ns for ns in claimed if isinstance(ns, str)) if isinstance(claimed, list) else ()


class CustomResources:
    """Takes custom resources in; ``changed`` is told which GPUJobs to look at."""

    def __init__(
        self,
        state: ClusterState,
        *,
        changed: Callable[[JobKey], None],
        look: Callable[[JobKey], None] | None = None,
        devices_changed: DevicesChanged = lambda node, uid, before, after: None,
        node_changed: Callable[[str], object] = lambda node: None,
        read_again: Callable[[], object] = lambda: None,
    ) -> None:
        """Know nothing yet.

        Args:
            state: Where what is read goes.
            changed: Told of which GPUJobs there are news.
            look: Told which are to be looked at although there are none of themselves; by default
                ``changed``.
            devices_changed: Told of the devices of a GPUNode.
            node_changed: Told of a GPUNode that is new, another or gone; empty: what a project
                says of all nodes.
            read_again: Asks for a list of GPUJobs, since there is room for what some of them say.
        """
        self._devices_changed = devices_changed
        self._node_changed = node_changed
        self._state = state
        self._changed = changed
        self._look = look or changed
        self._known: dict[Name, tuple[str, int]] = {}  # uid and resourceVersion
        self._departed = Departed()
        self._specs = Specs()
        self._read_again = read_again
        self._room = SpecRoom(lambda namespace: state.projects.owner(namespace) is not None)
        self._unread: dict[str, set[JobKey]] = {}  # by namespace: GPUJobs without room

    def gpujob(self, body: Body) -> None:
        """A GPUJob was added or changed; its spec is read once for each generation."""
        if not self._newer(GPUJOBS, body):
            return
        meta = body["metadata"]
        key = job_key(meta["namespace"], meta["name"])
        known = self._state.gpujobs.get(key)
        same = known is not None and (known.uid, known.generation) == (
            meta["uid"],
            _generation(body),
        )
        if known is None or not same or known.unread:
            record = gpujob_record(body, self._state.classes, self._specs, self._room)
            self._note_unread(record)
            if known is not None and known.uid == record.uid:
                record.status = known.status
                record.stored = known.stored
            self._state.gpujob_changed(record)
        elif not self._told_again(known, body):
            return
        self._changed(key)

    def _told_again(self, known: GPUJobRecord, body: Body) -> bool:
        """Take over what changes without the spec; False where that is known, as of our own write.

        What was found wrong only later (no project, refused dry run) stays known, and what we said
        in the status, whatever stands there now.
        """
        meta, told = body["metadata"], body.get("status") or {}
        deleting, kept = bool(meta.get("deletionTimestamp")), _finalizers(meta)
        labels = _labels(meta)
        before = (known.deleting, known.finalizers, known.labels, known.shown)
        if (deleting, kept, labels, told) == before:
            known.shown = told  # as of now: whoever awaits the answer to a write has to know
            return False
        shown = readable(GPUJobStatus, told)
        if (known.status, known.finalizers) != (shown, kept):
            self._state.changes.touch(
                known.key
            )  # somebody else's, or an old write that arrived late
        job = replace(known, deleting=deleting, finalizers=kept, labels=labels, shown=shown)
        if labels != known.labels:
            job.templates = None  # its next pods have them: they are planned anew
        self._state.gpujob_changed(job)
        return True

    def gpujob_gone(self, namespace: str, name: str, uid: str) -> None:
        """A GPUJob was deleted; its Jobs and pods follow by their owner references."""
        if self._forget((GPUJOBS, namespace, name), uid):
            key = job_key(namespace, name)
            self._state.gpujob_gone(key)
            unread = self._unread.get(namespace, set())
            unread.discard(key)
            if self._room.leave(namespace, name) and unread:
                self._read_again()

    def _note_unread(self, job: GPUJobRecord) -> None:
        if job.unread:
            self._unread.setdefault(job.namespace, set()).add(job.key)
        elif job.namespace in self._unread:
            self._unread[job.namespace].discard(job.key)
            if not self._unread[job.namespace]:
                del self._unread[job.namespace]

    def project(self, body: Body) -> None:
        """A GPUProject was added or changed."""
        record = project_record(body)
        if not self._newer(GPUPROJECTS, body):
            return
        told = readable(GPUProjectStatus, body.get("status"))
        self._state.projects.told(record.project.name, told)
        before = self._state.changes.version
        self._state.project_changed(record)
        if self._state.changes.version != before:
            self._projects_changed()

    def project_gone(self, name: str, uid: str) -> None:
        """A GPUProject was deleted."""
        if self._forget((GPUPROJECTS, "", name), uid):
            self._state.project_gone(ProjectName(name))
            self._projects_changed()

    def node(self, body: Body) -> None:
        """A GPUNode was added or changed."""
        meta, status = body["metadata"], body.get("status") or {}
        if not self._newer(GPUNODES, body):
            return
        if "devices" in status:
            found = devices.from_gpunode(status)
            before = self._state.nodes.agents.devices.get(meta["name"], found)
            self._state.nodes.reported(
                meta["name"], found, reports_from_gpunode(status), failed_isolation(status)
            )
            if before != found:
                self._devices_changed(meta["name"], meta["uid"], before, found)
        else:  # just created: the node's labels are all that is known
            self._state.nodes.report_gone(meta["name"])
        self._node_changed(meta["name"])

    def node_gone(self, name: str, uid: str) -> None:
        """A GPUNode was deleted."""
        if self._forget((GPUNODES, "", name), uid):
            self._state.nodes.report_gone(name)
            self._node_changed(name)

    def gpuclass(self, body: Body) -> None:
        """A GPUClass was added or changed."""
        record = gpuclass_record(body)
        if self._newer(GPUCLASSES, body):
            self._state.classes.told(record.name, readable(GPUClassStatus, body.get("status")))
            self._names_changed(self._state.class_changed(record))

    def gpuclass_gone(self, name: str, uid: str) -> None:
        """A GPUClass was deleted."""
        if self._forget((GPUCLASSES, "", name), uid):
            self._names_changed(self._state.class_gone(name))

    def _names_changed(self, jobs: Iterable[JobKey]) -> None:
        for key in jobs:
            self._changed(key)

    def _projects_changed(self) -> None:
        self._state.projects.touched.update(self._state.projects.records)
        if any(self._state.projects.owner(namespace) is not None for namespace in self._unread):
            self._read_again()
        self.look_at_all()
        self._node_changed("")

    def look_at_all(self) -> None:
        """Ask for a look at every GPUJob, whether or not anything about it is new."""
        for key in tuple(self._state.gpujobs):
            self._look(key)

    def node_version(self, name: str) -> tuple[str, str] | None:
        """UID and resourceVersion of a node's GPUNode; None when there is none."""
        known = self._known.get((GPUNODES, "", name))
        return None if known is None else (known[0], str(known[1]))

    def known(self) -> set[tuple[Name, str]]:
        """Names and uids of all that is known."""
        return {(name, uid) for name, (uid, _) in self._known.items()}

    def gone(self, name: Name, uid: str) -> None:
        """An object of any of our kinds was deleted."""
        kind, namespace, called = name
        if kind == GPUJOBS:
            self.gpujob_gone(namespace, called, uid)
        else:
            gone = {GPUPROJECTS: self.project_gone, GPUNODES: self.node_gone}
            gone.get(kind, self.gpuclass_gone)(called, uid)

    def _forget(self, name: Name, uid: str) -> bool:
        """Whether it is this one that is known; a successor of the name stays."""
        self._departed.note(uid)
        if self._known.get(name, ("", 0))[0] != uid:
            return False
        del self._known[name]
        return True

    def _newer(self, kind: str, body: Body) -> bool:
        """Whether these are news: versions of a kind count up, also from an object to the next."""
        uid, version = body["metadata"]["uid"], _version(body)
        name = name_of(kind, body)
        if self._departed.outdates(uid, version) or version < self._known.get(name, ("", -1))[1]:
            return False
        self._known[name] = (uid, version)
        return True


def name_of(kind: str, body: Body) -> Name:
    """Kind, namespace and name."""
    meta = body["metadata"]
    return kind, meta.get("namespace") or "", meta["name"]


def _generation(body: Body) -> int:
    return int(body["metadata"].get("generation", 1))


def _version(body: Body) -> int:
    return int(body["metadata"].get("resourceVersion") or 0)
