"""From custom resources as JSON to the records of the state.

Whatever is in the object, a record comes out: a spec that cannot be read becomes a record with a
``problem``, which the status tells the user. Called by the kopf handlers, and by ``resync``, which
lists our own objects because a watch that lost its place can miss a deletion.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gpu_scheduler.api import requests
from gpu_scheduler.api.gpuclass import GPUClassSpec
from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.gpuproject import GPUProjectSpec
from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.api.validate import class_problems, problems, project_problems, read
from gpu_scheduler.core.request import JobKey, Project, ProjectName
from gpu_scheduler.core.units import milli_from_gpu
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.listing import list_all
from gpu_scheduler.kube.paths import of_group
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.state import devices
from gpu_scheduler.state.agents import reports_from_gpunode
from gpu_scheduler.state.classes import ClassBook, ClassRecord, class_record, settle
from gpu_scheduler.state.jobs import GPUJobRecord, job_key
from gpu_scheduler.state.projects import ProjectRecord
from gpu_scheduler.state.world import World

GPUJOBS, GPUPROJECTS, GPUNODES = "gpujobs", "gpuprojects", "gpunodes"
GPUCLASSES = "gpuclasses"
Body = Mapping[str, Any]
# Told of a GPUNode's name and uid, and of its devices before and after.
DevicesChanged = Callable[
    [str, str, tuple[devices.Device, ...], tuple[devices.Device, ...]], object
]


def gpujob_record(body: Body, classes: ClassBook | None = None) -> GPUJobRecord:
    """The record of a GPUJob as the API server shows it; ``classes``: what names in it mean."""
    meta = body["metadata"]
    record = GPUJobRecord(
        key=job_key(meta["namespace"], meta["name"]),
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        generation=int(meta.get("generation", 1)),
        created=meta.get("creationTimestamp", ""),
        deleting=bool(meta.get("deletionTimestamp")),
        spec=None,
        status=body.get("status") or {},
    )
    try:
        _judge(record, body, classes or ClassBook())
    except Exception as error:  # a mistake of ours about one object must not stop all others
        unexpected("intake", record.key)
        record.said = record.spec = None
        record.problem = f"spec: the operator cannot work with it ({type(error).__name__}: {error})"
    return record


def _judge(record: GPUJobRecord, body: Body, classes: ClassBook) -> None:
    spec = read(GPUJobSpec, body.get("spec") or {})
    if isinstance(spec, tuple):
        record.problem = str(spec[0])
        return
    if found := problems(record.name, record.namespace, spec):
        record.problem = str(found[0])
        return
    record.said = spec
    record.min_compute = requests.compute_capability(spec)
    settle(record, classes)


def project_record(body: Body) -> ProjectRecord:
    """The record of a GPUProject as the API server shows it.

    One that cannot be used keeps its namespaces, so that nobody else is charged for them.
    """
    meta, raw = body["metadata"], body.get("spec") or {}
    name = ProjectName(meta["name"])
    created, generation = meta.get("creationTimestamp", ""), int(meta.get("generation", 1))
    spec = read(GPUProjectSpec, raw)
    found = spec if isinstance(spec, tuple) else project_problems(name, spec)
    if found or isinstance(spec, tuple):
        nothing = Project(name, 0, 0)
        return ProjectRecord(
            nothing, _namespaces(raw), created, generation, meta["uid"], str(found[0])
        )
    by_model = {m: milli_from_gpu(q) for m, q in (spec.quota_by_model or {}).items()}
    project = Project(name, spec.quota_milli, spec.limit_milli, spec.weight, by_model)
    return ProjectRecord(
        project,
        tuple(spec.namespaces),
        created,
        generation,
        meta["uid"],
        over_cap_policy=spec.over_cap_policy or "",
    )


def gpuclass_record(body: Body) -> ClassRecord:
    """The record of a GPUClass as the API server shows it."""
    meta = body["metadata"]
    created, generation = meta.get("creationTimestamp", ""), int(meta.get("generation", 1))
    spec = read(GPUClassSpec, body.get("spec") or {})
    found = spec if isinstance(spec, tuple) else class_problems(spec)
    if found or isinstance(spec, tuple):
        return ClassRecord(meta["name"], created, generation, meta["uid"], problem=str(found[0]))
    return class_record(meta["name"], created, generation, meta["uid"], spec)


def _namespaces(raw: object) -> tuple[str, ...]:
    claimed = raw.get("namespaces") if isinstance(raw, Mapping) else None
    return tuple(ns for ns in claimed if isinstance(ns, str)) if isinstance(claimed, list) else ()


class Intake:
    """Takes custom resources in; ``changed`` is told which GPUJobs to look at."""

    def __init__(
        self,
        world: World,
        *,
        changed: Callable[[JobKey], None],
        wake: Callable[[], None],
        devices_changed: DevicesChanged = lambda node, uid, before, after: None,
    ) -> None:
        """``wake``: the planner may have something to do."""
        self._devices_changed = devices_changed
        self._world, self._changed, self._wake = world, changed, wake
        self._versions: dict[str, int] = {}  # by uid
        self._gone: set[str] = set()  # uids, since the latest list began
        self._nodes: dict[str, str] = {}  # GPUNodes' uids
        self.project_status: dict[ProjectName, Body] = {}
        self.projects_touched: set[ProjectName] = set()
        self.class_status: dict[str, Body] = {}

    def gpujob(self, body: Body) -> None:
        """A GPUJob was added or changed."""
        record = gpujob_record(body, self._world.classes)
        if not self._newer(record.uid, body):
            return
        known = self._world.gpujobs.get(record.key)
        if known and (known.uid, known.generation) == (record.uid, record.generation):
            # What was found wrong only later (no project, refused dry run) stays known.
            record.problem = record.problem or known.problem
            record.unfollowed = known.unfollowed
            if known.status.get("phase") != record.status.get("phase"):
                self.phase_changed(record)
        self._world.gpujob_changed(record)
        self._changed(record.key)
        self._wake()

    def phase_changed(self, job: GPUJobRecord) -> None:
        """Its project counts the jobs that run; what it holds need not have changed with them."""
        owner = self._world.projects.owner(job.namespace)
        if owner is not None:
            self.projects_touched.add(owner)

    def gpujob_gone(self, namespace: str, name: str, uid: str) -> None:
        """A GPUJob was deleted; its Jobs and pods follow by their owner references."""
        key = job_key(namespace, name)
        self._forget(uid)
        known = self._world.gpujobs.get(key)
        if known is not None and known.uid == uid:
            self._world.gpujob_gone(key)
            self._wake()

    def project(self, body: Body) -> None:
        """A GPUProject was added or changed."""
        record = project_record(body)
        if not self._newer(record.uid, body):
            return
        name = record.project.name
        self.project_status[name] = body.get("status") or {}
        before = self._world.version
        self._world.project_changed(record)
        if self._world.version != before:
            self._projects_changed()

    def project_gone(self, name: str, uid: str) -> None:
        """A GPUProject was deleted."""
        self._forget(uid)
        record = self._world.projects.records.get(ProjectName(name))
        if record is None or record.uid != uid:
            return
        self.project_status.pop(ProjectName(name), None)
        self._world.project_gone(ProjectName(name))
        self._projects_changed()

    def node(self, body: Body) -> None:
        """A GPUNode was added or changed."""
        meta, status = body["metadata"], body.get("status") or {}
        if not self._newer(meta["uid"], body):
            return
        self._nodes[meta["name"]] = meta["uid"]
        if "devices" in status:
            found = devices.from_gpunode(status)
            before = self._world.agents.devices.get(meta["name"], found)
            self._world.gpunode_changed(meta["name"], found, reports_from_gpunode(status))
            if before != found:
                self._devices_changed(meta["name"], meta["uid"], before, found)
        else:  # just created: the node's labels are all that is known
            self._world.gpunode_gone(meta["name"])
        self._wake()

    def node_gone(self, name: str, uid: str) -> None:
        """A GPUNode was deleted."""
        self._forget(uid)
        if self._nodes.get(name) == uid:
            del self._nodes[name]
            self._world.gpunode_gone(name)
            self._wake()

    def gpuclass(self, body: Body) -> None:
        """A GPUClass was added or changed."""
        record = gpuclass_record(body)
        if self._newer(record.uid, body):
            self.class_status[record.name] = body.get("status") or {}
            self._names_changed(self._world.class_changed(record))

    def gpuclass_gone(self, name: str, uid: str) -> None:
        """A GPUClass was deleted."""
        self._forget(uid)
        record = self._world.classes.records.get(name)
        if record is not None and record.uid == uid:
            self.class_status.pop(name, None)
            self._names_changed(self._world.class_gone(name))

    def _names_changed(self, jobs: Iterable[JobKey]) -> None:
        for key in jobs:
            self._changed(key)
        self._wake()

    def _projects_changed(self) -> None:
        self.projects_touched.update(self._world.projects.records)
        for key in tuple(self._world.gpujobs):
            self._changed(key)
        self._wake()

    def nodes(self) -> set[tuple[str, str]]:
        """Names and uids of the GPUNodes that are known."""
        return set(self._nodes.items())

    def list_begins(self) -> None:
        """What is said to be gone from now on stays so, whatever the list holds."""
        self._gone.clear()

    def _forget(self, uid: str) -> None:
        self._versions.pop(uid, None)
        self._gone.add(uid)

    def _newer(self, uid: str, body: Body) -> bool:
        version = int(body["metadata"].get("resourceVersion") or 0)
        if uid in self._gone or version < self._versions.get(uid, -1):
            return False
        self._versions[uid] = version
        return True


async def resync(client: Client, intake: Intake, world: World) -> None:
    """List all our objects, take them in and forget those that are gone.

    Raises:
        ApiError: a list could not be read; nothing was forgotten then.
    """
    known = {(job.namespace, job.name, job.uid) for job in world.gpujobs.values()}
    known_projects = {(name, r.uid) for name, r in world.projects.records.items()}
    known_nodes = intake.nodes()
    known_classes = {(name, r.uid) for name, r in world.classes.records.items()}
    intake.list_begins()
    listed = [
        await _listed(client, plural) for plural in (GPUCLASSES, GPUPROJECTS, GPUNODES, GPUJOBS)
    ]
    classes, projects, nodes, jobs = listed
    for take, bodies in (
        (intake.gpuclass, classes),
        (intake.project, projects),
        (intake.node, nodes),
        (intake.gpujob, jobs),
    ):
        for body in bodies:
            _take_in(take, body)
    seen = {(m["namespace"], m["name"], m["uid"]) for m in (b["metadata"] for b in jobs)}
    for namespace, name, uid in known - seen:
        intake.gpujob_gone(namespace, name, uid)
    seen_classes = {(b["metadata"]["name"], b["metadata"]["uid"]) for b in classes}
    for name, uid in known_classes - seen_classes:
        intake.gpuclass_gone(name, uid)
    seen_projects = {(b["metadata"]["name"], b["metadata"]["uid"]) for b in projects}
    for name, uid in known_projects - seen_projects:
        intake.project_gone(name, uid)
    seen_nodes = {(b["metadata"]["name"], b["metadata"]["uid"]) for b in nodes}
    for name, uid in known_nodes - seen_nodes:
        intake.node_gone(name, uid)


def _take_in(take: Callable[[Body], None], body: Body) -> None:
    try:
        take(body)
    except Exception:  # what was known of it stays; all others are taken in
        meta = body.get("metadata") or {}
        place = f"{meta.get('namespace') or ''}/{meta.get('name')}".lstrip("/")
        unexpected("intake", f"{take.__name__} {place}")


async def _listed(client: Client, plural: str) -> Sequence[Body]:
    """All objects of a kind."""
    try:
        return await list_all(client, of_group(GROUP, VERSION, plural))
    except errors.NotFound:
        if plural != GPUCLASSES:
            raise
        return []  # they are optional, and so is their CRD
