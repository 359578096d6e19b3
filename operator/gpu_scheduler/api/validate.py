"""What is wrong with a spec, field by field: all that can be told without asking the cluster.

The CRD's rules are checked once more (``rules``), and so is what CEL cannot see. An empty answer
means that ``requests`` and rendering will not fail. Called when an object is judged; the problems
become ``Accepted=False``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from gpu_scheduler.api import checkpoint_rules, rules
from gpu_scheduler.api.checkpoint import Checkpoint
from gpu_scheduler.api.gpuclass import GPUClassSpec
from gpu_scheduler.api.gpujob import GPUContainer, GPUJobSpec
from gpu_scheduler.api.gpuproject import GPUProjectSpec
from gpu_scheduler.api.model import ApiModel
from gpu_scheduler.api.names import CAP_PREFIX, VISIBLE_DEVICES
from gpu_scheduler.api.numbering import ENDS, passing
from gpu_scheduler.api.problem import Problem
from gpu_scheduler.api.requests import container_numbers
from gpu_scheduler.api.roles import Role
from gpu_scheduler.api.rule import broken
from gpu_scheduler.api.sweep_problems import sweep_name_problems, sweep_problems
from gpu_scheduler.api.validate_gang import gang_name_problems, gang_problems
from gpu_scheduler.core.model.quantity import MOST, MOST_CPU_MILLI, cpu_milli, whole

_LABEL_LENGTH = 63  # of a DNS label, and of a label's value

Spec = TypeVar("Spec", bound=ApiModel)


def read(model: type[Spec], raw: Mapping[str, Any]) -> Spec | tuple[Problem, ...]:
    """The spec as a model, or why it is none."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        return tuple(
            Problem(_path(e["loc"]), e["msg"].removeprefix("Value error, ")) for e in error.errors()
        )


def readable(model: type[ApiModel], raw: object) -> Mapping[str, Any]:
    """What of a status is as the model has it; a field of another type was never there.

    What only lacks something stays: another version may have written it.
    """
    if not isinstance(raw, Mapping):
        return {}
    try:
        model.model_validate(raw)
    except ValidationError as error:
        odd = {each["loc"][0] for each in error.errors() if each["type"] != "missing"}
        return {field: value for field, value in raw.items() if field not in odd}
    return raw


def problems(name: str, namespace: str, spec: GPUJobSpec) -> list[Problem]:
    """What is wrong with a GPUJob."""
    return [*name_problems(name, spec), *spec_problems(spec)]


def name_problems(name: str, spec: GPUJobSpec) -> list[Problem]:
    """What is wrong with the name of a GPUJob that has this spec."""
    return [
        *_name_problems(name, 0 if spec.roles or spec.sweep else spec.total_pods),
        *gang_name_problems(name, spec),
        *sweep_name_problems(name, spec),
    ]


def spec_problems(spec: GPUJobSpec) -> list[Problem]:
    """What is wrong with the spec of a GPUJob, whatever its name is."""
    return [
        *broken(rules.GPU_JOB_SPEC, spec, "spec"),
        *_part_problems("spec", spec),
        *_checkpoint_problems(spec.checkpoint),
        *gang_problems(spec),
        *sweep_problems(spec),
        *_listed_problems(spec),
    ]


def env_problems(field: str, names: Iterable[object]) -> Iterator[Problem]:
    """Variables that only the scheduler may set, by their position in a list of env."""
    for index, name in enumerate(names):
        if name == VISIBLE_DEVICES:
            yield Problem(
                f"{field}[{index}].name",
                f"{VISIBLE_DEVICES} is set by the scheduler to the GPUs of the pod; remove it",
            )
        elif isinstance(name, str) and name.startswith(CAP_PREFIX):
            yield Problem(
                f"{field}[{index}].name",
                f"variables that begin with {CAP_PREFIX} are kept for the memory cap; remove it",
            )


def class_problems(spec: GPUClassSpec) -> list[Problem]:
    """What is wrong with a GPUClass."""
    found = [
        Problem(f"spec.shapes[{name}]", rules.SHAPE_NAMES)
        for name in spec.shapes or {}
        if len(name) > _LABEL_LENGTH or not re.fullmatch(rules.SHAPE_NAME, name)
    ]
    return [*found, *broken(rules.GPU_CLASS_SPEC, spec, "spec")]


def project_problems(name: str, spec: GPUProjectSpec) -> list[Problem]:
    """What is wrong with a GPUProject."""
    found = []
    if len(name) > _LABEL_LENGTH:
        found.append(
            Problem(
                "metadata.name",
                f"has {len(name)} characters; at most {_LABEL_LENGTH}, as pods bear it as a label",
            )
        )
    amounts = {"spec.quota": spec.quota, "spec.limit": spec.limit}
    amounts |= {f"spec.quotaByModel.{k}": v for k, v in (spec.quota_by_model or {}).items()}
    for field, amount in amounts.items():
        found += broken(rules.AMOUNT, amount, field)
    return [*found, *broken(rules.GPU_PROJECT_SPEC, spec, "spec")]


def _path(location: tuple[int | str, ...]) -> str:
    """A field's path as kubectl writes it: ``spec.containers[0].gpu``."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return "spec" + "".join(steps)


def _name_problems(name: str, pods: int) -> Iterator[Problem]:
    """Pods are named after the job and their index, and a pod's hostname is a DNS label.

    ``pods``: 0 when roles are a part of these names, too.
    """
    last = f"-{pods - 1}"
    if pods and len(name) + len(last) > _LABEL_LENGTH:
        yield Problem(
            "metadata.name",
            f"has {len(name)} characters; with {pods} pods ({last} is appended for the last) at "
            f"most {_LABEL_LENGTH - len(last)} are possible",
        )
    if "." in name:
        yield Problem("metadata.name", f"{name} has a dot, which hostnames of pods cannot have")


def _part_problems(field: str, spec: GPUJobSpec | Role) -> Iterator[Problem]:
    """What a job and its roles have in common."""
    if spec.template is not None:
        yield from _template_problems(spec.template, f"{field}.template.spec")
    yield from _share_problems(field, spec)
    yield from _resource_problems(field, spec)
    yield from env_problems(f"{field}.env", [e.name for e in spec.env or ()])
    for index, role in enumerate(spec.roles or () if isinstance(spec, GPUJobSpec) else ()):
        yield from broken(rules.ROLE, role, f"{field}.roles[{index}]")
        yield from _part_problems(f"{field}.roles[{index}]", role)


def _checkpoint_problems(checkpoint: Checkpoint | None) -> Iterator[Problem]:
    if checkpoint is None:
        return
    volume, field = checkpoint.volume, "spec.checkpoint.volume"
    yield from broken(checkpoint_rules.VOLUME, volume, field)
    yield from broken(checkpoint_rules.MOUNT, checkpoint.mount_path, "spec.checkpoint.mountPath")
    claim = volume.persistent_volume_claim and volume.persistent_volume_claim.claim_name
    claim_field = f"{field}.persistentVolumeClaim.claimName"
    yield from broken(checkpoint_rules.CLAIM, claim, claim_field)
    paths = {"nfs": volume.nfs, "hostPath": volume.host_path}
    for kind, source in paths.items():
        path = source and source.path
        yield from broken(checkpoint_rules.SOURCE, path, f"{field}.{kind}.path")


def _template_problems(
    template: Mapping[str, Any], field: str = "spec.template.spec"
) -> Iterator[Problem]:
    if not isinstance(template.get("metadata") or {}, dict):
        yield Problem(f"{field.removesuffix('spec')}metadata", "must be an object")
    pod = template.get("spec")
    for key in template if pod is None else ():
        if key not in ("metadata", "spec"):
            name = f"{field.removesuffix('spec')}{key[:_LABEL_LENGTH]}"
            yield Problem(name, "unknown field; a pod template has metadata and spec")
    containers = pod.get("containers") if isinstance(pod, dict) else None
    if not isinstance(containers, list) or not containers:
        yield Problem(f"{field}.containers", "needs at least one container")
        return
    for index, container in enumerate(containers):
        if not isinstance(container, dict) or not isinstance(container.get("name"), str):
            yield Problem(f"{field}.containers[{index}].name", "needs a name")
    policy = (pod or {}).get("restartPolicy") or "Never"
    yield from broken((rules.RESTART_POLICY_RULE,), str(policy), f"{field}.restartPolicy")


def _listed_problems(spec: GPUJobSpec) -> Iterator[Problem]:
    if spec.containers is None:
        return
    if not spec.containers:
        yield Problem("spec.containers", "needs at least one entry")
    readable = spec.template is None or not any(_template_problems(spec.template))
    known = container_numbers(spec) if readable else {}
    ends = passing(spec.template["spec"]) if readable and spec.template is not None else ()
    seen: set[str] = set()
    for index, container in enumerate(spec.containers):
        field = f"spec.containers[{index}]"
        yield from broken(rules.GPU_CONTAINER, container, field)
        if container.name in seen:
            yield Problem(f"{field}.name", f"{container.name} is listed twice")
        elif container.name in ends:
            yield Problem(
                f"{field}.name",
                f"init container {container.name} {ENDS}",
            )
        elif known and container.name not in known:
            yield Problem(
                f"{field}.name",
                f"no container is named {container.name}; the pod has {', '.join(known)}",
            )
        seen.add(container.name)
        yield from _share_problems(field, container)


def _share_problems(field: str, ask: GPUJobSpec | GPUContainer | Role) -> Iterator[Problem]:
    yield from broken(rules.GPU, ask.gpu, f"{field}.gpu")
    yield from broken(rules.GPU_MEMORY, ask.gpu_memory, f"{field}.gpuMemory")


def _resource_problems(field: str, spec: GPUJobSpec | Role) -> Iterator[Problem]:
    """CPU and memory that cannot be read, or that no node can have."""
    if spec.resources is not None:
        asks = {"requests": spec.resources.requests, "limits": spec.resources.limits}
        yield from _quantity_problems(f"{field}.resources", asks)
    pod = spec.template.get("spec") if spec.template is not None else None
    for part in ("containers", "initContainers"):
        containers = pod.get(part) if isinstance(pod, dict) else None
        for index, container in enumerate(containers if isinstance(containers, list) else ()):
            found = container.get("resources") if isinstance(container, dict) else None
            where = f"{field}.template.spec.{part}[{index}].resources"
            yield from _quantity_problems(where, found if isinstance(found, dict) else {})


def _quantity_problems(field: str, asks: Mapping[str, Any]) -> Iterator[Problem]:
    for part in ("requests", "limits"):
        amounts = asks.get(part)
        if not isinstance(amounts, dict):
            continue
        yield from broken(rules.RESOURCE_AMOUNTS, amounts, f"{field}.{part}")
        for name, amount in amounts.items():
            read, most = (cpu_milli, MOST_CPU_MILLI) if name == "cpu" else (whole, MOST)
            try:
                if read(str(amount)) >= most:
                    yield Problem(f"{field}.{part}.{name}", f"{amount} {rules.AMOUNT_LARGE}")
            except ValueError:
                yield Problem(f"{field}.{part}.{name}", rules.NO_AMOUNT)
