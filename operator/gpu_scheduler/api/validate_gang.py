"""What is wrong with the names of roles, hosts and the Service, which CEL cannot see."""

import re
from collections.abc import Iterator

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.parts import is_distributed, job_name
from gpu_scheduler.api.problem import Problem

_LABEL_LENGTH = 63  # of a DNS label
# A Service is named after the job, and its name must start with a letter.
_SERVICE_NAME = re.compile(r"[a-z][-a-z0-9]*")


def gang_problems(spec: GPUJobSpec) -> Iterator[Problem]:
    """Problems of a job whose pods have roles, whatever its name is."""
    if spec.roles is None:
        return
    if not spec.roles:
        yield Problem("spec.roles", "needs at least one entry")
    seen: set[str] = set()
    for index, role in enumerate(spec.roles):
        if role.name in seen:
            yield Problem(f"spec.roles[{index}].name", f"{role.name} is listed twice")
        seen.add(role.name)


def gang_name_problems(name: str, spec: GPUJobSpec) -> Iterator[Problem]:
    """Problems of the name of a job whose pods may know of each other."""
    for role in spec.roles or ():
        last = f"{job_name(name, role.name)}-{role.replicas - 1}"
        if len(last) > _LABEL_LENGTH:
            yield Problem(
                "metadata.name",
                f"the host name {last} has {len(last)} characters, at most {_LABEL_LENGTH} are "
                f"possible: shorten the name of the job or of role {role.name}",
            )
    if is_distributed(spec) and not _SERVICE_NAME.fullmatch(name) and "." not in name:
        yield Problem(
            "metadata.name",
            f"{name} does not start with a letter, as the Service of that name must, through which "
            "the pods find each other",
        )
