"""What GPUClasses mean: shapes as numbers of GPUs, names as models, prices for the planner.

Whose a shape's name is, see ``owners``. ``resolve`` turns what a GPUJob says into what its
pods need now: when classes change, pods that wait follow, pods that run keep what they hold. Owned
by ``ClusterState``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from gpu_scheduler.api.gpuclass import GPUClassSpec
from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.core.model.catalogue import Catalogue, GPUType
from gpu_scheduler.core.model.request import Project
from gpu_scheduler.core.model.wording import names
from gpu_scheduler.state.jobs.job import GPUJobRecord
from gpu_scheduler.state.jobs.owners import OwnerStore

MICRO = 1_000_000


@dataclass(frozen=True, slots=True)
class ClassRecord:
    """A GPUClass as last seen; one with a ``problem`` stands for nothing."""

    name: str
    created: str
    generation: int
    uid: str
    match: str = ""  # lower case; empty = every GPU
    cost_micro: int | None = None
    shapes: Mapping[str, int] = field(default_factory=dict)
    counts: tuple[int, ...] = ()
    problem: str = ""


def class_record(
    name: str, created: str, generation: int, uid: str, spec: GPUClassSpec
) -> ClassRecord:
    """The record of a class whose spec can be used."""
    cost = None if spec.cost_per_hour is None else int(Decimal(spec.cost_per_hour) * MICRO)
    return ClassRecord(
        name,
        created,
        generation,
        uid,
        (spec.match or "").lower(),
        cost,
        dict(spec.shapes or {}),
        tuple(sorted(spec.counts or ())),
    )


class ClassStore(OwnerStore[str, ClassRecord]):
    """All classes, and what follows from them together."""

    def __init__(self) -> None:
        """Start empty."""
        super().__init__()
        self.catalogue = Catalogue()
        self._by_name: dict[str, ClassRecord] = {}  # lower case

    def part(self, model: str) -> str:
        """The part of a product name that a model means, lower case; classes go by their names."""
        known = self._by_name.get(model.lower())
        return model.lower() if known is None else known.match

    def resolve_quota(self, project: Project) -> Project:
        """The project with classes in place of their names; of two names for one, the sum."""
        if not project.quota_by_model:
            return project
        by_part: dict[str, int] = {}
        for model, milli in project.quota_by_model.items():
            part = self.part(model)
            by_part[part] = by_part.get(part, 0) + milli
        return replace(project, quota_by_model=by_part)

    def resolve(self, spec: GPUJobSpec) -> GPUJobSpec | str:
        """The spec with models and numbers of GPUs in place of names; or why that cannot be."""
        if spec.shape is not None:
            return self._shaped(spec, spec.shape)
        changed: dict[str, object] = {}
        if spec.gpu_models and any(self._is_class(model) for model in spec.gpu_models):
            changed["gpu_models"] = self._models(spec.gpu_models)
        if spec.roles and any(self._is_class(m) for r in spec.roles for m in r.gpu_models or ()):
            changed["roles"] = [
                role.model_copy(update={"gpu_models": self._models(role.gpu_models)})
                if role.gpu_models
                else role
                for role in spec.roles
            ]
        return spec.model_copy(update=changed) if changed else spec

    def _shaped(self, spec: GPUJobSpec, shape: str) -> GPUJobSpec | str:
        name = self.owner(shape)
        if name is None:
            return self._unknown(shape)
        owner = self.records[name]
        update = {"shape": None, "gpu": Decimal(owner.shapes[shape])}
        models = {"gpu_models": [owner.match] if owner.match else None}
        return spec.model_copy(update=update | models)

    def _unknown(self, shape: str) -> str:
        if not self.owners:
            there = "there is no GPUClass with shapes"
        else:
            there = f"there are {names(sorted(self.owners))}"
        return (
            f"spec.shape: no GPUClass has a shape {shape}; {there}. See kubectl get gpuclasses, or "
            "ask by gpu and gpuModels"
        )

    def _is_class(self, model: str) -> bool:
        return model.lower() in self._by_name

    def _models(self, models: Iterable[str]) -> list[str] | None:
        """Parts of product names; None = any, where one of them is a class of every GPU."""
        parts = list(dict.fromkeys(self.part(model) for model in models))
        return parts if all(parts) else None

    def _claims(self, record: ClassRecord) -> tuple[str, str, Iterable[str]]:
        return record.created, record.name, [] if record.problem else sorted(record.shapes)

    def _settle(self) -> None:
        super()._settle()
        usable = [record for record in self.in_order() if not record.problem]
        self._by_name = {record.name.lower(): record for record in usable}
        self.catalogue = Catalogue(
            tuple(GPUType(r.name, r.match, r.cost_micro, r.counts) for r in usable)
        )


def resolve_models(job: GPUJobRecord, classes: ClassStore) -> bool:
    """Work out what a GPUJob needs, by the classes as they are; False when that is as before."""
    if job.said is None:
        return False
    found = classes.resolve(job.said)
    spec, unknown = (job.said, found) if isinstance(found, str) else (found, "")
    if (spec, unknown) == (job.spec, job.unknown):
        return False
    if unknown or job.problem == job.unknown:
        job.problem = unknown
    job.spec = spec
    job.unknown = unknown
    return True
