"""What a GPUJob asks for, as the planner's values.

``container`` is a number of the pod template (``numbering``); in the short form there is only
``main``, number 0. A top-level ``gpu`` or ``gpuMemory`` goes to the first container of the
template. Called for specs in which ``validate.problems`` found nothing.
"""

from gpu_scheduler.api.gpujob import MAIN_CONTAINER, GPUContainer, GPUJobSpec
from gpu_scheduler.api.numbering import numbered, programs
from gpu_scheduler.core.model.quantity import whole
from gpu_scheduler.core.model.request import DeviceRequest
from gpu_scheduler.core.model.units import DEVICE_MILLI, MIB, milli_from_gpu


def container_numbers(spec: GPUJobSpec) -> dict[str, int]:
    """Numbers of the pod's containers that may hold GPUs, by name and in order."""
    if spec.template is None:
        return {MAIN_CONTAINER: 0}
    return {str(c.get("name")): number for number, c in numbered(spec.template["spec"])}


def device_requests(spec: GPUJobSpec) -> tuple[DeviceRequest, ...]:
    """Devices per container, in the order of the containers; roles have theirs (``parts``).

    Raises:
        ValueError: more than three decimals, no quantity, or an unknown container.
    """
    if spec.roles is not None:
        return ()
    if spec.containers is None:
        return (_request(0, spec),)
    numbers = container_numbers(spec)
    if unknown := [c.name for c in spec.containers if c.name not in numbers]:
        raise ValueError(f"no container is named {unknown[0]}")
    found = [_request(numbers[c.name], c) for c in spec.containers]
    return tuple(sorted(found, key=lambda request: request.container))


def compute_capability(spec: GPUJobSpec) -> tuple[int, int]:
    """Lowest accepted compute capability as (major, minor); (0, 0) = any."""
    if spec.min_compute_capability is None:
        return (0, 0)
    major, minor = spec.min_compute_capability.split(".")
    return int(major), int(minor)


def models(spec: GPUJobSpec) -> tuple[str, ...]:
    """Accepted parts of product names, lower case; empty = any model."""
    return tuple(model.lower() for model in spec.gpu_models or ())


def _request(container: int, ask: GPUJobSpec | GPUContainer) -> DeviceRequest:
    count = ask.gpu_devices or 1
    if ask.gpu_memory is not None:
        mib = -(-whole(ask.gpu_memory) // MIB)
        return DeviceRequest(container, count, 0, mib)
    if ask.gpu is None and isinstance(ask, GPUJobSpec) and ask.shape is not None:
        return DeviceRequest(container, 1, DEVICE_MILLI)  # how many, its class says
    if ask.gpu is None:
        raise ValueError("neither gpu nor gpuMemory is set")
    milli = milli_from_gpu(ask.gpu)
    if milli >= DEVICE_MILLI:
        return DeviceRequest(container, milli // DEVICE_MILLI, DEVICE_MILLI)
    return DeviceRequest(container, count, milli)


def program_containers(spec: GPUJobSpec) -> list[str]:
    """Names of the containers whose ends are those of a pod of such a GPUJob."""
    return [MAIN_CONTAINER] if spec.template is None else programs(spec.template.get("spec") or {})
