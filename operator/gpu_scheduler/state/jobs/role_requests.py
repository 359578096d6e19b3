"""What the pods of a GPUJob ask for, role by role, as the planner's values.

A job without roles has one entry, under the empty name.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gpu_scheduler.api import requests
from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.parts import parts
from gpu_scheduler.core.model.request import DeviceRequest


@dataclass(frozen=True, slots=True)
class RoleRequest:
    """What each pod of a role asks for; ``at_once`` of its ``pods`` run at the same time."""

    devices: tuple[DeviceRequest, ...]
    models: tuple[str, ...]
    at_once: int
    first_rank: int
    pods: int = 0


def role_requests_of(spec: GPUJobSpec) -> Mapping[str, RoleRequest]:
    """By role, in the order of the spec."""
    return {
        part.role: RoleRequest(
            requests.device_requests(part.spec),
            requests.models(part.spec),
            part.spec.pods_at_once,
            part.first_rank,
            part.pods,
        )
        for part in parts(spec)
    }
