"""What is wrong with roles and with what only a gang can have: names, numbers, what goes together.

Images and amounts of a role are judged by ``validate`` like those of a job. Called by it.
"""

import re
from collections.abc import Iterator

from gpu_scheduler.api import rules
from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.parts import is_distributed, job_name
from gpu_scheduler.api.problem import Problem

_LABEL_LENGTH = 63  # of a DNS label
# A Service is named after the job, and its name must start with a letter.
_SERVICE_NAME = re.compile(r"[a-z][-a-z0-9]*")


def gang_problems(name: str, spec: GPUJobSpec) -> Iterator[Problem]:
    """Problems of a job whose pods may know of each other."""
    if spec.roles is not None:
        yield from _role_problems(name, spec)
    yield from _companions(spec)
    if not is_distributed(spec):
        return
    if not _SERVICE_NAME.fullmatch(name) and "." not in name:
        yield Problem(
            "metadata.name",
            f"{name} does not start with a letter, as the Service of that name must, through which "
            "the pods find each other",
        )


def _role_problems(name: str, spec: GPUJobSpec) -> Iterator[Problem]:
    if not spec.roles:
        yield Problem("spec.roles", "needs at least one entry")
    seen: set[str] = set()
    for index, role in enumerate(spec.roles or ()):
        field = f"spec.roles[{index}]"
        if role.name in seen:
            yield Problem(f"{field}.name", f"{role.name} is listed twice")
        seen.add(role.name)
        if role.gpu is not None and role.gpu_memory is not None:
            yield Problem(field, rules.ROLE_AMOUNT)
        if role.image is not None and role.template is not None:
            yield Problem(field, rules.ROLE_SOURCE)
    for role in spec.roles or ():
        last = f"{job_name(name, role.name)}-{role.replicas - 1}"
        if len(last) > _LABEL_LENGTH:
            yield Problem(
                "metadata.name",
                f"the host name {last} has {len(last)} characters, at most {_LABEL_LENGTH} are "
                f"possible: shorten the name of the job or of role {role.name}",
            )
    if spec.total_pods > rules.MAX_GANG_PODS:
        yield Problem("spec.roles", rules.ROLES_PODS)
    if spec.parallelism != 1:
        yield Problem("spec.parallelism", rules.ROLES_COUNT)
    if spec.completions is not None:
        yield Problem("spec.completions", rules.ROLES_COUNT)


def _companions(spec: GPUJobSpec) -> Iterator[Problem]:
    gang = spec.gang if spec.gang is not None else spec.roles is not None
    if gang and spec.completions not in (None, spec.parallelism):
        yield Problem("spec.completions", rules.GANG_COMPLETIONS)
    alone = spec.roles is None and spec.sweep is None
    if gang and alone and spec.total_pods > rules.MAX_GANG_PODS:
        yield Problem("spec.parallelism", rules.GANG_PODS)
    for field, value in (("distinctGPUs", spec.distinct_gpus), ("topology", spec.topology)):
        if value is not None and not gang:
            yield Problem(f"spec.{field}", f"{field} {rules.NEEDS_GANG}")
    if spec.framework is not None and not is_distributed(spec):
        yield Problem("spec.framework", f"framework {rules.NEEDS_PEERS}")
