"""What work asks for: GPUs in words, CPU and memory of its containers' requests. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gpu_scheduler.api.names import ASK_GPU, ASK_MEMORY
from gpu_scheduler.api.unstructured import Body, listed, part
from gpu_scheduler.core.model import quantity

_MIB = 2**20


@dataclass(frozen=True, slots=True)
class AskedAmounts:
    """What is asked for; empty or None: not said.

    Attributes:
        gpus: in words, of each pod.
        cpu_milli: requests of all pods that are there, or of one pod where none is.
        ram_mib: the same of memory.
    """

    gpus: str = ""
    cpu_milli: int | None = None
    ram_mib: int | None = None


def asked(job: Body | None, pods: Sequence[Body]) -> AskedAmounts:
    """Of a GPUJob, or of pods without one; pods that have ended ask for nothing any more."""
    there = [pod for pod in pods if part(pod, "status").get("phase") not in ("Succeeded", "Failed")]
    containers = [each for pod in there for each in _containers(pod)]
    if not containers and job is not None:
        containers = [*_of_spec(part(job, "spec"))]
    return AskedAmounts(
        _gpus_of_job(part(job, "spec")) if job is not None else _gpus_of_pods(pods),
        _sum(containers, "cpu", 1000),
        _sum(containers, "memory", Fraction(1, _MIB)),
    )


def _gpus_of_job(spec: Body) -> str:
    roles = [each for each in listed(spec, "roles") if isinstance(each, Mapping)]
    if roles:
        said = (f"{r.get('replicas', 1)} {r.get('name')} of {_amount(r)}" for r in roles)
        return ", ".join(said)
    pods = spec.get("parallelism") or 1
    return f"{_amount(spec)} for each of {pods} pods" if pods != 1 else _amount(spec)


def _amount(spec: Body) -> str:
    devices = spec.get("gpuDevices")
    each = f" on each of {devices} GPUs" if devices else ""
    if (gpu := spec.get("gpu")) is not None:
        return f"{gpu} GPU{'' if gpu == 1 else 's'}{each}"
    if memory := spec.get("gpuMemory"):
        return f"{memory} of GPU memory{each}"
    return f"shape {spec['shape']}" if spec.get("shape") else "no GPU"


def _gpus_of_pods(pods: Sequence[Body]) -> str:
    """As the first pod says it in its labels and annotations."""
    meta = part(pods[0], "metadata") if pods else {}
    said = {**part(meta, "annotations"), **part(meta, "labels")}
    if ASK_GPU in said:
        text = f"{said[ASK_GPU]} GPUs"
    elif ASK_MEMORY in said:
        text = f"{said[ASK_MEMORY]} of GPU memory"
    else:
        return ""
    return f"{text} for each of {len(pods)} pods" if len(pods) > 1 else text


def _containers(pod: Body) -> list[Body]:
    return [c for c in listed(pod, "spec", "containers") if isinstance(c, Mapping)]


def _of_spec(spec: Body) -> Iterator[Body]:
    """Containers of one pod of a GPUJob without roles."""
    template = part(spec, "template")
    if template:
        yield from _containers(template)
    elif not listed(spec, "roles"):
        yield spec


def _sum(containers: Sequence[Body], name: str, factor: Fraction | int) -> int | None:
    """Requests; a limit is one where there is no other. None: a container has neither."""
    found = []
    for each in containers:
        resources = part(each, "resources")
        said = part(resources, "requests").get(name) or part(resources, "limits").get(name)
        try:
            found.append(quantity.parse(str(said)))
        except ValueError:
            return None
    return round(sum(found, Fraction(0)) * factor) if found else None
