"""What frameworks are told of the cap, so that they stay below it by themselves.

Where libgpucap holds the cap this is a courtesy, and a user's own value wins: CuPy gets bytes, JAX
nothing, since its default is a fraction of the total and the total is the cap. Without the library
it is all there is, so a user's value wins only where it is known to be lower. Rendering knows the
cap of a request in bytes and of whole GPUs; a fraction's depends on the device that it lands on.
JAX gets the fraction of the total that it sees, which is the whole device; of a request in bytes
nobody knows it before the pod is placed, and JAX is not told.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from gpu_scheduler.api.names import memory_bytes_annotation
from gpu_scheduler.api.pod_env import Env, from_annotation
from gpu_scheduler.core.model.request import DeviceRequest
from gpu_scheduler.core.model.units import DEVICE_MILLI, MIB

CUPY_LIMIT = "CUPY_GPU_MEMORY_LIMIT"  # bytes: a per cent value would be taken of the capped total
JAX_FRACTION = "XLA_PYTHON_CLIENT_MEM_FRACTION"
JAX_FRACTION_NEW = "XLA_CLIENT_MEM_FRACTION"  # of newer versions, which refuse both at once

# Of JAX's share: the rest is for what it does not count, contexts and libraries.
_JAX_PART = Decimal("0.9")


def framework_env(
    request: DeviceRequest, theirs: Sequence[Mapping[str, Any]] | None, *, capped: bool
) -> Env:
    """Variables that tell frameworks the cap, without those for which the user's value stands.

    Args:
        request: what the container asks for.
        theirs: ``env`` of the user's container; entries of the same names are to be dropped.
        capped: libgpucap holds the cap.
    """
    chosen = {entry.get("name"): entry.get("value") for entry in theirs or ()}
    ours: Env = []
    if not (CUPY_LIMIT in chosen and (capped or _cupy_is_lower(chosen[CUPY_LIMIT], request))):
        ours.append(from_annotation(CUPY_LIMIT, memory_bytes_annotation(request.container)))
    if capped or request.mib or request.milli == DEVICE_MILLI:
        return ours
    share = Decimal(request.milli) / DEVICE_MILLI
    name = JAX_FRACTION_NEW if JAX_FRACTION_NEW in chosen else JAX_FRACTION
    if not _is_share(chosen.get(name), share):
        ours.append({"name": name, "value": f"{share * _JAX_PART:f}"})
    return ours


def _cupy_is_lower(value: object, request: DeviceRequest) -> bool:
    if request.milli == DEVICE_MILLI:
        return True  # the cap is all that the device has
    if not (isinstance(value, str) and value.isascii() and value.isdecimal()):
        return False
    digits = value.lstrip("0")
    return bool(digits) and len(digits) < 20 and int(digits) <= request.mib * MIB  # 0: no limit


def _is_share(value: object, most: Decimal) -> bool:
    try:
        return 0 < Decimal(str(value)) <= most
    except InvalidOperation:
        return False
